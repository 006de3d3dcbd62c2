"""Finds the caller behind a proxy; only trusted proxies are believed.

Each proxy appends what it saw, so the last entries are the proxies' own, and those before them may
be anybody's.

Sources: RFC 7239 for ``Forwarded``; ``X-Forwarded-For`` and ``-Proto`` as nginx, Caddy and Envoy
write them.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple, final

from websockets.datastructures import Headers

MAX_HOPS = 20
"""How many entries are read, from the end."""

_PAIR = re.compile(
    r"""([!#$%&'*+.^_`|~0-9A-Za-z-]+)="""
    r"""(?:"((?:[^"\\]|\\.)*)"|([!#$%&'*+.^_`|~0-9A-Za-z:\[\]-]+))"""
    r"(?=[ \t]*(?:[;,]|$))"
)
"""A pair of an element: name, and value with or without quotes (RFC 7239, section 4).  Values with
a colon have to be quoted; without quotes they have only one reading, too."""

_PORT = r"(?::(?:[0-9]{1,5}|_[A-Za-z0-9._-]+))?"
_IPV6 = r"([0-9A-Fa-f]*:[0-9A-Fa-f:.]*(?:%[A-Za-z0-9._-]+)?)"
_NODE = re.compile(rf"([0-9.]+){_PORT}|\[{_IPV6}\]{_PORT}|{_IPV6}")
"""An address, and a port (RFC 7239, section 6); ``X-Forwarded-For`` has IPv6 without brackets."""


class Hop(NamedTuple):
    """What a proxy said about whom it had the request from."""

    node: str | None
    """Empty for what cannot be read; ``None`` if it said nothing."""
    proto: str = ""


class CallerAddress(NamedTuple):
    """How a caller reached the server.

    Attributes:
        peer: Its address, or that of the last proxy that is known.
        secure: Whether its connection is encrypted.
        is_named: Whether `peer` is the caller's; not if a trusted proxy names nobody in particular.
    """

    peer: str
    secure: bool
    is_named: bool = True


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
        return bool(self._nets)

    def trace(self, peer: str, secure: bool, headers: Headers) -> CallerAddress:
        """Return how the caller reached the first trusted proxy, or this server.

        Args:
            peer: The address of the other end of the socket.
        """
        if not self.trusts(peer):
            return CallerAddress(peer, secure)
        client, proto, is_named = peer, "", True
        for hop in reversed(list(_hops(headers))[-MAX_HOPS:]):
            proto = hop.proto or proto
            if hop.node is None:
                break
            address = _address(hop.node)
            is_named = address is not None
            if address is None:
                break  # anybody may have written the entries before it
            client = address
            if not self.trusts(address):
                break
        return CallerAddress(client, secure or proto.lower() == "https", is_named)

    def trusts(self, peer: str) -> bool:
        address = _parsed(peer)
        return address is not None and any(address in net for net in self._nets)


def _hops(headers: Headers) -> Iterator[Hop]:
    """Yield what proxies said, the nearest last.

    Either the headers ``X-Forwarded-*`` count or ``Forwarded``: a proxy that writes one kind passes
    on what a caller wrote of the other.
    """
    hops, lines = _listed(headers, "X-Forwarded-For"), headers.get_all("Forwarded")
    if lines and not hops:
        for line in lines:
            yield from _elements(line)
        return
    yield from map(Hop, hops[:-1])
    # Most proxies write no list, but the protocol of their own caller.
    protos = _listed(headers, "X-Forwarded-Proto") or [""]
    yield Hop(hops[-1] if hops else None, protos[-1])


def _listed(headers: Headers, name: str) -> list[str]:
    return [entry.strip() for line in headers.get_all(name) for entry in line.split(",")]


def _elements(line: str) -> Sequence[Hop]:
    """Return the elements of a ``Forwarded`` header; a line that cannot be read is one of them."""
    hops: list[Hop] = []
    pairs: dict[str, str] = {}
    at = 0
    line += ","  # which ends the last element
    while at < len(line):
        if line[at] in " \t;":
            at += 1
        elif line[at] == ",":
            if pairs:  # a list may have empty elements (RFC 9110, section 5.6.1)
                hops.append(Hop(pairs.get("for", ""), pairs.get("proto", "")))
            pairs = {}
            at += 1
        else:
            pair = _PAIR.match(line, at)
            if pair is None or pair[1].lower() in pairs:
                return [Hop("")]
            quoted, plain = pair[2], pair[3]
            pairs[pair[1].lower()] = plain if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
            at = pair.end()
    return hops


def _address(node: str) -> str | None:
    """Return the address of a node; ``None`` for one that is hidden, unknown or none."""
    found = _NODE.fullmatch(node)
    address = None if found is None else _parsed(found[1] or found[2] or found[3])
    return None if address is None else str(address)


def _parsed(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address
