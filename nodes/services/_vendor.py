"""What all classes of one vendor share: where it is, how it takes its key, what its errors mean.

Each vendor has one `Vendor`, and its classes hand it what their users gave them; so ``api_key=``,
``base_url=``, ``headers=`` and ``query=`` mean the same everywhere.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypedDict, final

import trio

from bargein.bridge.websocket import Data

from ._credentials import with_key
from ._error_table import ErrorTable
from ._http_service import HttpService
from ._request_retries import Backoff
from ._request_settings import Query, checked_query, endpoint
from ._session_settings import SessionLimits, VendorAddress

if TYPE_CHECKING:
    import httpx2


class LineArguments(TypedDict, total=False):
    """What each ear, voice and speech-to-speech model over a WebSocket takes beside its own."""

    base_url: str | None
    """The URL that the path is appended to, before its query if it has one; ``None`` for the
    vendor's own.  Elsewhere no key is needed."""
    headers: Mapping[str, str] | None
    """Further headers of the handshake, which override ours, the key included."""
    query: Query | None
    """Further parameters of the address, which override others; ``None`` as a value removes one."""
    limits: SessionLimits | None
    """The limits of a session; ``None`` for the defaults."""
    dial: Callable[[], Awaitable[trio.abc.Stream]] | None
    """Opens the stream of a connection; ``None`` connects to the address."""


class ServiceArguments(TypedDict, total=False):
    """What each model, voice and recogniser over HTTP takes beside its own."""

    headers: Mapping[str, str] | None
    """Further headers of each request, which override ours, the key included."""
    query: Query | None
    """Further parameters of each address, which override others; ``None`` as a value removes
    one."""
    transport: httpx2.AsyncBaseTransport | None
    """Carries the requests instead of the network; ``None`` uses the network, with the proxies that
    the environment names."""


WORDS_FOR_ADDRESS = ("url", "base_url", "endpoint")
"""What others call an address, and what our own classes did."""


def check_arguments(
    owner: str, given: Mapping[str, Any], known: type, *, address: str = "base_url"
) -> None:
    """Refuse an argument that a class does not take.

    Args:
        owner: The class.
        given: What it was given by name.
        known: The `TypedDict` of what it takes.
        address: What it calls its address.

    Raises:
        TypeError: There is another one.
    """
    for name in given.keys() - known.__annotations__.keys():
        if name in WORDS_FOR_ADDRESS:
            raise TypeError(f"{owner}({name}=) is {owner}({address}=): write {address}=")
        raise TypeError(f"{owner}() got an unexpected keyword argument {name!r}")


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
        self, owner: str, api_key: str | None, url: str, headers: Mapping[str, str] | None
    ) -> dict[str, str]:
        """Return the headers of a request, with the key unless the user's own carry one.

        Args:
            owner: The class that needs the key, for the error.
            api_key: The key; ``None`` reads the environment, an empty text sends none.
            url: Where requests go; elsewhere than at the vendor no key is needed.
            headers: The user's own, which override others.

        Raises:
            TypeError: `headers` is no mapping.
            ValueError: There is no key and there must be one, or a header cannot hold something.
        """
        sent = with_key(
            owner,
            api_key,
            f"{self.variables}_API_KEY",
            self.key_header,
            self.key_form,
            headers=headers,
            is_required=url.rstrip("/") == self.url,
        )
        return {**self.headers, **sent}

    def at(self, owner: str, api_key: str | None, line: LineArguments) -> VendorEndpoint:
        """Return where the lines of a user's ear, voice or speech-to-speech model go.

        Args:
            owner: The class, for errors.
            api_key: The key; ``None`` reads the environment.
            line: What the user gave beside.

        Raises:
            TypeError: The class does not take one of the arguments, or one is no mapping.
            ValueError: There is no key and there must be one, or a header cannot hold something.
        """
        check_arguments(owner, line, LineArguments)
        given = line.get("base_url")
        url = self.url if given is None else given
        sent = self.headers_for(owner, api_key, url, line.get("headers"))
        return VendorEndpoint(self.errors, url, sent, checked_query(line.get("query")))

    def service(
        self,
        owner: str,
        api_key: str | None,
        base_url: str,
        given: ServiceArguments,
        *,
        extra: str,
        missing: Callable[[str, str, str], Exception],
        variable: str = "base_url=",
        connect_s: float | None = 5.0,
        backoff: Backoff | None = None,
    ) -> HttpService:
        """Return the service that sends a user's requests over HTTP.

        Args:
            owner: The class, for errors.
            api_key: The key; ``None`` reads the environment.
            base_url: The URL that the paths of requests are appended to.
            given: What the user gave beside.
            extra: As for `HttpService`, and so are the arguments behind it.

        Raises:
            Exception: What `missing` returns: httpx2 is not installed.
            TypeError: The class does not take one of the arguments, or one is no mapping.
            ValueError: There is no key and there must be one, or a request cannot carry something.
        """
        check_arguments(owner, given, ServiceArguments)
        return HttpService(
            owner,
            base_url,
            errors=self.errors,
            extra=extra,
            missing=missing,
            variable=variable,
            headers=self.headers_for(owner, api_key, base_url, given.get("headers")),
            query=given.get("query"),
            connect_s=connect_s,
            backoff=backoff,
            transport=given.get("transport"),
        )


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
