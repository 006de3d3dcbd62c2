"""Finds the caller behind a proxy; only trusted proxies are believed.

Sources: RFC 7239 for ``Forwarded``; ``X-Forwarded-For`` and ``-Proto`` as nginx, Caddy and Envoy
write them: each proxy appends the address that it saw.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from typing import NamedTuple, final

from websockets.datastructures import Headers

MAX_HOPS = 20
"""How many entries are read, from the end."""

_PAIR = re.compile(r'(?:^|[;,\s])(for|proto)\s*=\s*(?:"([^"]*)"|([^;,\s"]+))', re.IGNORECASE)


class CallerAddress(NamedTuple):
    """How a caller reached the server."""

    peer: str
    secure: bool


@final
class TrustedProxies:
    """The addresses of proxies whose headers are believed."""

    def __init__(self, proxies: Sequence[str] = ()) -> None:
        """Keep the networks.

        Args:
            proxies: Addresses or networks, such as ``"127.0.0.1"`` and ``"10.0.0.0/8"``.

        Raises:
            ValueError: One of them is neither.
        """
        try:
            self._nets = [ipaddress.ip_network(proxy) for proxy in proxies]
        except ValueError as error:
            raise ValueError(
                f"a trusted proxy is an address or a network, such as 10.0.0.0/8: {error}"
            ) from None

    def __bool__(self) -> bool:
        """Whether any proxy is trusted."""
        return bool(self._nets)

    def trace(self, peer: str, secure: bool, headers: Headers) -> CallerAddress:
        """Return how the caller reached the first trusted proxy, or this server.

        Args:
            peer: The address of the other end of the socket.
            secure: Whether the socket is encrypted.
            headers: The headers of the request.
        """
        if not self.trusts(peer):
            return CallerAddress(peer, secure)
        hops, protos = _hops(headers), _protos(headers)
        client = peer
        for hop in reversed(hops[-MAX_HOPS:]):
            address = _address(hop)
            if address is None:
                break  # anybody may have written the entries before it
            client = address
            if not self.trusts(address):
                break
        return CallerAddress(client, secure or (bool(protos) and protos[-1].lower() == "https"))

    def trusts(self, peer: str) -> bool:
        """Whether an address is that of a trusted proxy."""
        address = _parsed(peer)
        return address is not None and any(address in net for net in self._nets)


def _hops(headers: Headers) -> list[str]:
    lines = headers.get_all("X-Forwarded-For")
    if lines:
        return [hop.strip() for line in lines for hop in line.split(",")]
    return _forwarded(headers, "for")


def _protos(headers: Headers) -> list[str]:
    lines = headers.get_all("X-Forwarded-Proto")
    if lines:
        return [proto.strip() for line in lines for proto in line.split(",")]
    return _forwarded(headers, "proto")


def _forwarded(headers: Headers, name: str) -> list[str]:
    return [
        quoted or plain
        for line in headers.get_all("Forwarded")
        for key, quoted, plain in _PAIR.findall(line)
        if key.lower() == name
    ]


def _address(hop: str) -> str | None:
    """Return the address of an entry, which may have a port and brackets."""
    if hop.startswith("["):
        hop = hop[1:].partition("]")[0]
    elif hop.count(":") == 1:
        hop = hop.partition(":")[0]
    address = _parsed(hop)
    return None if address is None else str(address)


def _parsed(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address
