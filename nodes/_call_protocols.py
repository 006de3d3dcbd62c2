"""What a node that answers needs of its call: the faces of a ``Call`` that its parts get."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import trio

    from bargein.bridge import History, Turn
    from bargein.bridge.control import WorkRoom
    from bargein.bridge.events import ToolResult
    from bargein.routes import Router, Run


class RememberedCall(Protocol):
    """The part of a ``Call`` that is remembered."""

    @property
    def history(self) -> History:
        """What was said so far, brought up to this moment."""
        ...

    def turn_of(self, run: Run | None) -> Turn | None:
        """Return the turn that a run works on; ``None`` if it works on none that is not over."""
        ...


class SpokenAnswers(Protocol):
    """What the agents of a call say."""

    def complete_text(self, turn: Turn) -> None:
        """Speak what a turn has said so far as it stands: nothing more of its clause comes."""
        ...

    def withdraw(self, turn: Turn, text: str) -> bool:
        """Take back the last text of a turn, if the caller's line has got no sound of it."""
        ...


class AnsweredCall(RememberedCall, Protocol):
    """The part of a ``Call`` in which an answer is given."""

    @property
    def router(self) -> Router:
        """Carries the warnings of caps."""
        ...

    @property
    def speaking(self) -> SpokenAnswers:
        """What its agents say."""
        ...

    @property
    def work(self) -> WorkRoom:
        """The tools that run."""
        ...

    def has_floor(self, source: str) -> bool:
        """Whether the caller hears what a source says."""
        ...

    def touch_state(self) -> None:
        """Have the state of the call worked out anew."""
        ...


class JobResults(Protocol):
    """The results of background jobs that wait for their moment."""

    def bring(self, result: ToolResult, *, is_told: bool) -> None:
        """Have a result brought at the next boundary of the conversation."""
        ...


class CallWithJobs(Protocol):
    """The part of a ``Call`` in which background jobs go on."""

    @property
    def router(self) -> Router:
        """Says when tools and turns go to the background."""
        ...

    @property
    def nursery(self) -> trio.Nursery:
        """Owns the tasks of jobs."""
        ...

    @property
    def work(self) -> WorkRoom:
        """The tools and the turns that go on in the background."""
        ...

    @property
    def delivery(self) -> JobResults:
        """Brings the results of jobs."""
        ...
