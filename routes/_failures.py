"""Which failures were told, so that one that goes on is told once and then counted.

Rules:
1. A failure is told when it is new: by its stage and the class of its error.
2. The same failure is withheld and counted until that stage works again.
3. Then the count is told, once, and the next failure is new.
"""

from __future__ import annotations

KINDS_KEPT = 32
"""How many kinds of failure are told apart at most.  One more forgets the oldest, which would be
told anew: a chain has few stages, and few ways to fail."""


class Failures:
    """Remembers the failures that go on, of one chain or of one transport."""

    __slots__ = ("_withheld",)

    def __init__(self) -> None:
        self._withheld: dict[tuple[str, type], int] = {}

    def is_news(self, stage: str, error: Exception) -> bool:
        """Return whether a failure should be told; one that should not is counted.

        Args:
            stage: What failed.
            error: How; its class counts, its text does not.
        """
        key = (stage, type(error))
        if key in self._withheld:
            self._withheld[key] += 1
            return False
        if len(self._withheld) >= KINDS_KEPT:
            del self._withheld[next(iter(self._withheld))]
        self._withheld[key] = 0
        return True

    def works(self, stage: str) -> int | None:
        """Take note that a stage works; return how often its failures were withheld.

        Args:
            stage: What worked.

        Returns:
            ``None`` if it had not failed since it was last seen to work.
        """
        keys = [key for key in self._withheld if key[0] == stage]
        return sum(self._withheld.pop(key) for key in keys) if keys else None

    @property
    def stages(self) -> tuple[str, ...]:
        """What fails at present, each once."""
        return tuple(dict.fromkeys(stage for stage, _ in self._withheld))
