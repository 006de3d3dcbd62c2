"""What a run needs of the chain that it runs, and of the rule that cuts it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import trio

R = TypeVar("R", contravariant=True)
C = TypeVar("C", contravariant=True)


class CutRule(Protocol):
    """The rule of a chain that cuts a run."""

    @property
    def written(self) -> str:
        """The rule, as it was written."""
        ...

    @property
    def handler(self) -> Callable[..., Any] | None:
        """What is called once the run has unwound; ``None`` for nothing."""
        ...


class CutLedger(Protocol[C, R]):
    """What is told of each cut."""

    def run_cut(self, chain: C, run: R, cause: Any) -> None:
        """Note and tell that a run of a chain was cut, by a message or by none."""
        ...


class RunningChain(Protocol[R]):
    """What a run needs of the chain that it runs."""

    @property
    def written(self) -> str:
        """The chain, as it was written."""
        ...

    @property
    def source(self) -> str:
        """The bridge that declared it."""
        ...

    @property
    def streams(self) -> bool:
        """Whether it streams something and broadcasts it."""
        ...

    @property
    def scope(self) -> trio.CancelScope:
        """What ends all runs of all chains when it is cancelled."""
        ...

    @property
    def cuts(self) -> CutLedger[Any, R]:
        """What is told of each cut."""
        ...

    @property
    def has_line(self) -> bool:
        """Whether triggers wait for their turn."""
        ...

    def rule_told_of(self, cause: Any) -> CutRule | None:
        """Return the rule whose handler is told of a cut that no rule made."""
        ...

    def is_cut_by(self, event_class: type) -> bool:
        """Return whether a rule would cut runs for an event of a class."""
        ...

    def was_held(self, run: R) -> None:
        """Keep a run that has finished interruptible."""
        ...

    def was_released(self, run: R) -> None:
        """Forget a run of which nothing is outstanding."""
        ...

    def ask_for_background(self, run: R) -> None:
        """Have whoever keeps the runs move this one to the background."""
        ...

    def set_aside(self, run: R) -> None:
        """Let a run go on in the background."""
        ...
