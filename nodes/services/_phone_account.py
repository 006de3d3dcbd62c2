"""What the accounts of telephone carriers share: errors, credentials, and answers in JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from pydantic_core import from_json

from bargein.routes import BargeinError

from ._errors import VendorError

_WAS = "was"
"""The parameter of our own voice URL that has what answered the number before."""


class PhoneExtraError(BargeinError, ImportError):
    """A package of the extra ``phone`` is missing."""

    def __init__(self, owner: str, package: str, extra: str) -> None:
        super().__init__(
            f"{owner} needs {package} to set a number's voice URL: pip install 'bargein[{extra}]'"
        )


class PhoneNumberError(BargeinError, ValueError):
    """The account has no such number, or nothing to put back."""


def credentials(
    owner: str, given: Mapping[str, tuple[str, str | None]], where: str
) -> tuple[str, ...]:
    """Return the credentials of an account.

    Args:
        owner: Who needs them, such as ``Twilio()``.
        given: Names of variables, each with the argument in its place and what either says.
        where: Where the carrier shows them, for the error.

    Raises:
        ValueError: Some are missing.
    """
    missing = [name for name, (_, value) in given.items() if not value]
    if missing:
        arguments = " and ".join(argument for argument, _ in given.values())
        raise ValueError(
            f"{owner} needs {' and '.join(missing)} in the environment, or {arguments}; {where}"
        )
    return tuple(value or "" for _, value in given.values())


def json_fields(vendor: str, body: bytes) -> dict[str, Any]:
    """Return the fields of an answer.

    Raises:
        VendorError: It is no JSON object.
    """
    try:
        fields = from_json(body)
    except ValueError:
        fields = None
    if not isinstance(fields, dict):
        raise VendorError(vendor, "the answer is no JSON object", retryable=False)
    return fields


def url_after(url: str, was: str) -> str:
    """Return our voice URL, which keeps what answered a number before.

    Args:
        url: Our voice URL, without a query.
        was: What answered before; empty for nothing.
    """
    return f"{url}?{urlencode({_WAS: was})}" if was else url


def was_before(voice_url: str) -> str:
    """Return what answered a number before our voice URL did."""
    return parse_qs(urlsplit(voice_url).query).get(_WAS, [""])[0]
