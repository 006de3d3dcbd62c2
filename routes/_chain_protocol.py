"""What a run needs from its chain, and from the rule that cuts it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import trio

R = TypeVar("R", contravariant=True)


class CutRule(Protocol):
    """A rule that cuts a run."""

    @property
    def written(self) -> str:
        """The rule as written."""
        ...

    @property
    def handler(self) -> Callable[..., Any] | None:
        """What is called once the run has unwound; ``None`` for nothing."""
        ...


class CutLedger(Protocol[R]):
    """Keeps the runs that were cut until their cut is reported."""

    def add_cut(self, run: R) -> None:
        """Keep a run that is cut now."""
        ...

    def report_soon(self) -> None:
        """Report the cuts within this publication: a run that was cut has ended already."""
        ...

    def call_in_next_step(self) -> None:
        """Finish the deferred work in the next scheduler step, unless somebody does so before."""
        ...

    def report_in_time(self, cause: Any) -> None:
        """Report the cuts that are not reported yet: now, or later if they may wait."""
        ...


class Gate(Protocol):
    """What a run needs from the gate of its router."""

    async def passed(self) -> None:
        """Wait while it is shut."""
        ...


class RunningChain(Protocol[R]):
    """What a run needs from its chain."""

    @property
    def written(self) -> str:
        """The chain as written."""
        ...

    @property
    def source(self) -> str:
        """The bridge that declared it."""
        ...

    @property
    def gate(self) -> Gate:
        """Shut while nothing may begin."""
        ...

    @property
    def streams(self) -> bool:
        """Whether it streams something and broadcasts it."""
        ...

    @property
    def scope(self) -> trio.CancelScope:
        """The scope whose cancellation ends all runs of all chains."""
        ...

    @property
    def cuts(self) -> CutLedger[R]:
        """The object that reports each cut."""
        ...

    @property
    def has_queue(self) -> bool:
        """Whether triggers are queued."""
        ...

    def rule_with_handler_for(self, cause: Any) -> CutRule | None:
        """Return the rule whose handler runs after a cut that no rule made."""
        ...

    def is_cut_by(self, event_class: type) -> bool:
        """Return whether a rule would cut runs for an event of this class."""
        ...

    def note_cut(self, run: R) -> None:
        """Count the cut of a run and record why it was made; forget the run if it had ended."""
        ...

    def watch_unwinding(self, run: R) -> None:
        """Limit how long the chain waits for a run to unwind, if it still runs."""
        ...

    def was_kept(self, run: R) -> None:
        """Keep a run that has finished interruptible."""
        ...

    def was_released(self, run: R) -> None:
        """Forget a run whose output has all arrived."""
        ...

    def ask_for_background(self, run: R) -> None:
        """Ask the listener to move a run to the background."""
        ...

    def move_to_background(self, run: R) -> None:
        """Move a run to the background."""
        ...
