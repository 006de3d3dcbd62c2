"""Which providers of the process work, and which rest: for ``/metrics``.

A circuit is closed while its provider works, and open while the provider rests after a failure.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, final
from weakref import WeakSet

ProviderKind = Literal["ear", "voice", "model"]


@final
class Circuit:
    """Whether one provider works, as all calls of the process know it.

    Attributes:
        kind: What it provides.
        name: Its name, in logs and metrics.
        is_open: Whether it rests: nobody asks it before a probe has found it working.
        failures: How often it has failed since the process began.
    """

    def __init__(self, kind: ProviderKind, name: str) -> None:
        """Begin closed; it is shown for as long as somebody has it.

        Args:
            kind: What the provider provides.
            name: Its name.
        """
        self.kind: ProviderKind = kind
        self.name = name
        self.is_open = False
        self.failures = 0
        _all.add(self)

    def open(self) -> None:
        """Record that the provider has failed, and rests."""
        self.is_open = True
        self.failures += 1

    def close(self) -> None:
        """Record that the provider works."""
        self.is_open = False


_all: WeakSet[Circuit] = WeakSet()


def circuits() -> Iterator[tuple[ProviderKind, str, bool, int]]:
    """Yield what is known of the providers of the process, by kind and name.

    Yields:
        The kind; the name; whether a provider of that name rests; and how often any has failed.
    """
    known: dict[tuple[ProviderKind, str], tuple[bool, int]] = {}
    for circuit in tuple(_all):
        is_open, failures = known.get((circuit.kind, circuit.name), (False, 0))
        now = is_open or circuit.is_open, failures + circuit.failures
        known[circuit.kind, circuit.name] = now
    for (kind, name), (is_open, failures) in sorted(known.items()):
        yield kind, name, is_open, failures
