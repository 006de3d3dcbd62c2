"""The budgets of each address: calls, handshakes, wrong tokens and waiting connections.

Rule 1. This machine, and a line without an address, have no budget: an untrusted proxy would count
as one caller, and lock out everybody behind it.
Rule 2. Memory is bounded: addresses that have reserved nothing are forgotten, the oldest first.
"""

from __future__ import annotations

import ipaddress
from collections import Counter, OrderedDict
from typing import Literal, final

from ._limits import Limits, RateLimit

MAX_ADDRESSES = 10_000
"""How many addresses that have reserved nothing are remembered, at about 1 KB each."""

IPV6_PREFIX = 64
"""The smallest network given to one customer (RFC 6177); it has 2**64 addresses."""

HANDSHAKES_PER_S = 2.0
HANDSHAKE_BURST = 30
"""A page that reconnects tries every few seconds; an office behind one address, several at once."""

WRONG_TOKENS_PER_S = 0.1
WRONG_TOKEN_BURST = 10
"""A person mistypes a few times; after ten the address waits 10 s for each further attempt."""

SILENT_CONNECTIONS = HANDSHAKE_BURST
"""Connections of one address that have not sent their request yet.  A request arrives within a
round trip, except on the one or two that browsers open ahead; more is an attack."""

Reserved = Literal["calls", "resumes", "silent"]

Budget = Literal[
    "calls", "handshakes", "failed_tokens", "resumes", "silent", "audio", "turns", "verbs"
]
"""What is counted in ``bargein_over_budget_total``; the last three by call."""


@final
class _AddressUse:
    """What an address has used."""

    __slots__ = ("handshakes", "reserved", "wrong_tokens")

    def __init__(self) -> None:
        self.reserved: Counter[str] = Counter()
        self.handshakes = RateLimit(HANDSHAKES_PER_S, HANDSHAKE_BURST)
        self.wrong_tokens = RateLimit(WRONG_TOKENS_PER_S, WRONG_TOKEN_BURST)


@final
class Addresses:
    """The budgets of all addresses; use it only on the event loop."""

    def __init__(self, limits: Limits, over: Counter[str]) -> None:
        """Start without addresses.

        Args:
            limits: The server's.
            over: Counts refusals, by budget.
        """
        self._most = {
            "calls": limits.calls_per_address,
            "resumes": limits.resumes_per_address,
            "silent": SILENT_CONNECTIONS,
        }
        self._over = over
        self._usage_of: OrderedDict[str, _AddressUse] = OrderedDict()

    def __len__(self) -> int:
        """Return how many addresses are remembered."""
        return len(self._usage_of)

    def may_knock(self, peer: str) -> bool:
        """Whether an address may try to open a WebSocket now; counts the attempt."""
        usage = self._usage(peer)
        return usage is None or self._counted(usage.handshakes.take(), "handshakes")

    def may_guess(self, peer: str) -> bool:
        """Whether to check a token of an address; not after too many wrong ones."""
        usage = self._usage(peer)
        return usage is None or self._counted(usage.wrong_tokens.has_some, "failed_tokens")

    def guessed_wrong(self, peer: str) -> None:
        """Count a wrong token."""
        usage = self._usage(peer)
        if usage is not None:
            usage.wrong_tokens.take()

    def has_room(self, peer: str, budget: Reserved) -> bool:
        """Whether an address may reserve one more; counts the refusal if not."""
        most, usage = self._most[budget], self._usage(peer)
        return usage is None or most is None or self._counted(usage.reserved[budget] < most, budget)

    def reserve(self, peer: str, budget: Reserved) -> None:
        """Count one more of a budget as taken, until ``give_back()``."""
        usage = self._usage(peer)
        if usage is not None:
            usage.reserved[budget] += 1

    def give_back(self, peer: str, budget: Reserved) -> None:
        """Count one less."""
        usage = self._usage(peer)
        if usage is not None:
            usage.reserved[budget] -= 1
            if not usage.reserved[budget]:
                del usage.reserved[budget]

    def _counted(self, is_within: bool, budget: Budget) -> bool:
        self._over[budget] += not is_within
        return is_within

    def _usage(self, peer: str) -> _AddressUse | None:
        key = key_of(peer)
        if key is None:
            return None
        usage = self._usage_of.pop(key, None) or _AddressUse()
        self._usage_of[key] = usage
        if len(self._usage_of) > MAX_ADDRESSES:
            self._forget_one(key)
        return usage

    def _forget_one(self, but: str) -> None:
        for key, usage in self._usage_of.items():
            if not usage.reserved and key != but:
                del self._usage_of[key]
                return


def key_of(peer: str) -> str | None:
    """Return the key of an address: itself, or its IPv6 network; ``None`` if it is not counted."""
    try:
        address = ipaddress.ip_address(peer.partition("%")[0])
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is None:
            if address.is_loopback:
                return None
            return str(ipaddress.ip_network((int(address), IPV6_PREFIX), strict=False))
        address = address.ipv4_mapped
    return None if address.is_loopback else str(address)
