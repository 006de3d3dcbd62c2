"""Which providers of the process work, and which rest, for ``/metrics``.

A circuit is closed while its provider works, and open while the provider rests after a failure.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, final
from weakref import WeakSet

ProviderKind = Literal["ear", "voice", "model"]


@final
class Circuit:
    """Whether one provider works; all calls of the process share it.

    Attributes:
        kind: What it provides.
        name: Its name, in logs and metrics.
        is_open: Whether the provider rests: nobody asks it until a probe finds it working.
        failures: How often it has failed since the process started.
    """

    def __init__(self, kind: ProviderKind, name: str) -> None:
        """Start closed; ``/metrics`` shows it for as long as a reference to it exists."""
        self.kind: ProviderKind = kind
        self.name = name
        self.is_open = False
        self.failures = 0
        _all.add(self)

    def open(self) -> None:
        """Record that the provider failed and rests."""
        self.is_open = True
        self.failures += 1

    def close(self) -> None:
        """Record that the provider works."""
        self.is_open = False


_all: WeakSet[Circuit] = WeakSet()


def circuits() -> Iterator[tuple[ProviderKind, str, bool, int]]:
    """Yield the status of the providers of the process, by kind and name.

    Yields:
        The kind, the name, whether a provider of that name rests, and how often any failed.
    """
    known: dict[tuple[ProviderKind, str], tuple[bool, int]] = {}
    for circuit in tuple(_all):
        is_open, failures = known.get((circuit.kind, circuit.name), (False, 0))
        now = is_open or circuit.is_open, failures + circuit.failures
        known[circuit.kind, circuit.name] = now
    for (kind, name), (is_open, failures) in sorted(known.items()):
        yield kind, name, is_open, failures
