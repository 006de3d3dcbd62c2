"""What all classes of one vendor share: where it is, how it takes its key, what its errors mean.

Each vendor has one `Vendor`, and its classes make a `VendorEndpoint` of their arguments; so `url=`,
`api_key=`, `headers=` and `query=` mean the same everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import final

from bargein.bridge.websocket import Data

from ._credentials import with_key
from ._error_table import ErrorTable
from ._request_settings import Query, checked_query, endpoint
from ._session_settings import VendorAddress


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Vendor:
    """One vendor's service."""

    errors: ErrorTable
    """What its errors mean, with its name."""
    url: str
    """Its own address, at which there must be a key."""
    variables: str
    """What the names of its environment variables begin with: ``_API_KEY`` is appended for its key,
    for chat models also ``_BASE_URL`` and ``_MODEL``."""
    key_header: str = "Authorization"
    """The header that carries the key."""
    key_form: str = "Bearer {}"
    """How the key stands in it."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Further headers of each request, such as the version of an API."""

    def headers_for(
        self,
        url: str,
        api_key: str | None,
        headers: Mapping[str, str] | None,
        *,
        owner: str = "",
    ) -> dict[str, str]:
        """Return the headers of a request, with the key; see `with_key` for what it raises.

        Args:
            url: Where requests go; elsewhere than at the vendor no key is needed.
            api_key: The key; ``None`` reads the environment.
            headers: The user's own, which override others.
            owner: Who needs the key, for the error; empty for the vendor.
        """
        sent = with_key(
            owner or self.errors.vendor,
            api_key,
            f"{self.variables}_API_KEY",
            self.key_header,
            self.key_form,
            headers=headers,
            is_required=url.rstrip("/") == self.url,
        )
        return {**self.headers, **sent}

    def at(
        self,
        url: str,
        api_key: str | None,
        headers: Mapping[str, str] | None,
        query: Query | None,
    ) -> VendorEndpoint:
        """Return where a user's requests go: what each class of the vendor has as arguments."""
        sent = self.headers_for(url, api_key, headers)
        return VendorEndpoint(self.errors, url, sent, checked_query(query))


@final
@dataclass(frozen=True, slots=True)
class VendorEndpoint:
    """Where a user's requests to a vendor go, and what each of them carries."""

    errors: ErrorTable
    url: str
    headers: Mapping[str, str] = field(repr=False)
    query: Query = field(repr=False)

    def address(
        self,
        path: str = "",
        asked: Mapping[str, object] | None = None,
        *,
        greeting: Sequence[Data] = (),
        keep_alive: Data | None = None,
        farewell: Data | None = None,
    ) -> VendorAddress:
        """Return the address of a WebSocket; see `VendorAddress` and, for its URL, `endpoint`."""
        return VendorAddress(
            vendor=self.errors.vendor,
            errors=self.errors,
            url=endpoint(self.url, path, asked, self.query),
            headers=self.headers,
            greeting=greeting,
            keep_alive=keep_alive,
            farewell=farewell,
        )
