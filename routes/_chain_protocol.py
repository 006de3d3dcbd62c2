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


class Cuts(Protocol[R]):
    """Keeps the runs that were cut until their cuts are reported: the dispatch of a router."""

    @property
    def nursery(self) -> trio.Nursery:
        """Owns the tasks of all runs."""
        ...

    def note_cut(self, run: R) -> None:
        """Keep a run that is cut now."""
        ...

    def cuts_are_made(self) -> None:
        """Report cuts that no rule made."""
        ...

    def ask_for_background(self, run: R) -> None:
        """Ask the listener to move a run to the background."""
        ...


class Gate(Protocol):
    """The gate of a router."""

    async def passed(self) -> None:
        """Wait while it is shut."""
        ...


class RunningChain(Protocol[R]):
    """What a run needs from its chain; ``RouteRuntime`` documents it."""

    source: str

    @property
    def gate(self) -> Gate:
        """Shut while nothing may begin."""
        ...

    @property
    def route(self) -> Any:
        """The chain as written."""
        ...

    @property
    def kept(self) -> Any:
        """Its runs."""
        ...

    @property
    def queue(self) -> Any:
        """Its queued triggers."""
        ...

    @property
    def cuts(self) -> Cuts[R]:
        """What reports each cut."""
        ...

    @property
    def written(self) -> str:
        """The chain as text."""
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

    def was_released(self, run: R) -> None:
        """Forget a run whose output has all arrived."""
        ...

    def move_to_background(self, run: R) -> None:
        """Move a run to the background."""
        ...
