"""Checks what every request of a model carries, so that a mistake is told where it is written."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""RFC 9110, section 5.1: a field name is a token."""


def checked_base_url(base_url: str, variable: str) -> str:
    """Return a base URL without the slash at its end.

    Args:
        base_url: The URL.
        variable: The environment variable that may have named it.

    Raises:
        ValueError: It is no address of HTTP.
    """
    try:
        parts = urlsplit(base_url)
        is_url = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_url = False
    if not is_url:
        raise ValueError(
            f"base_url= or {variable} is {base_url!r}; write a whole URL, such as "
            "'http://localhost:8000/v1'"
        )
    return base_url.rstrip("/")


def checked_options(options: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a copy of further fields of a request.

    Raises:
        TypeError: They are no mapping.
        ValueError: A request, which is JSON, cannot hold one of them.
    """
    if not isinstance(options, Mapping | None):
        raise TypeError(f"options= is a mapping, such as {{'temperature': 0.3}}, not {options!r}")
    for name, value in (options or {}).items():
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError) as error:
            problem = f"options= has a value that is no JSON: {name!r} is {value!r}"
            raise ValueError(problem) from error
    return dict(options or {})


def checked_headers(headers: Mapping[str, str] | None) -> dict[str, str]:
    """Return a copy of further headers of a request; a value may be secret, so none is shown.

    Raises:
        TypeError: They are no mapping.
        ValueError: A name is none, or a value is no text that a header can hold.
    """
    if not isinstance(headers, Mapping | None):
        raise TypeError(f"headers= is a mapping of texts, not {type(headers).__name__}")
    for name, value in dict[Any, Any](headers or {}).items():
        if not isinstance(name, str) or not _HEADER_NAME.fullmatch(name):
            raise ValueError(f"headers= has a name that is none of a header: {name!r}")
        if not isinstance(value, str) or not (value.isascii() and value.isprintable()):
            raise ValueError(
                f"headers= has a value that no header can hold: that of {name!r} is not a str of "
                "printable ASCII"
            )
    return dict(headers or {})
