"""API keys of vendors, read from an argument or the environment and kept out of every text."""

from __future__ import annotations

import os
from collections.abc import Mapping

from ._request_settings import checked_headers

_CARRY_KEYS = {"authorization", "api-key", "x-api-key", "xi-api-key"}
"""Headers that carry keys, at the vendors here, at Azure and at gateways."""


def with_key(
    vendor: str,
    api_key: str | None,
    variable: str,
    name: str,
    form: str = "{}",
    *,
    headers: Mapping[str, str] | None = None,
    is_required: bool = True,
) -> dict[str, str]:
    """Return the headers of a request, with the key unless the user's own headers carry one.

    Args:
        vendor: The vendor's name, for the error.
        api_key: The key; ``None`` reads the environment, an empty text sends none.
        variable: The environment variable to read.
        name: The header that carries the key.
        form: How the key stands in it.
        headers: The user's own headers; they override the key's.
        is_required: Whether there must be a key, as at the vendor's own address; a server of
            one's own often needs none.

    Raises:
        TypeError: `headers` is no mapping.
        ValueError: There is no key and there must be one, or a header cannot hold something.
    """
    given = checked_headers(headers)
    is_given = any(own.lower() in _CARRY_KEYS for own in given)
    known = os.environ.get(variable, "") if api_key is None else api_key
    if (is_given and api_key is None) or not (known.strip() or is_required):
        return given
    key = _checked(vendor, known.strip(), variable)
    own_names = {own.lower() for own in given}
    return given if name.lower() in own_names else {name: form.format(key), **given}


def _checked(vendor: str, key: str, variable: str) -> str:
    """Return a key that a header can hold; no error shows it."""
    if not key:
        raise ValueError(f"{vendor} requires a key: pass api_key= or set {variable}")
    if not key.isascii() or not key.isprintable():
        raise ValueError(
            f"the key for {vendor} has characters that no header may have: "
            f"look at api_key= or {variable}"
        )
    return key
