"""What the tools of an agent need of its call: the face of a ``Call`` that they get."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    import trio

    from bargein.bridge import History, Question
    from bargein.bridge.control import TurnPhase, Verb, WorkRoom
    from bargein.routes import Router, Run


class TurnOfTools(Protocol):
    """The turn that calls a tool, as far as the tool shows something in it."""

    @property
    def number(self) -> int:
        """Which turn of the call it is, from 1."""
        ...

    @property
    def phase(self) -> TurnPhase:
        """What it is at."""
        ...

    @property
    def label(self) -> str:
        """What it is doing, in a few words."""
        ...

    def show(self, phase: TurnPhase, label: str = "", *, step: bool = False) -> bool:
        """Show what it is at; return whether that is new."""
        ...

    def stand(self, reason: str, now_s: float) -> None:
        """Stop its clock, until ``go_on()`` for each reason."""
        ...

    def go_on(self, reason: str, now_s: float) -> None:
        """Take a reason back, and start its clock again after the last one."""
        ...


class QuestionsOfTools(Protocol):
    """The questions that tools have asked the caller."""

    def interrupt(self, call_id: str, verb: Verb) -> None:
        """Close the questions of a tool, as a verb interrupts it."""
        ...


class PermissionsOfTools(Protocol):
    """Whether tools may run, and who is asked."""

    @property
    def pending(self) -> tuple[Question, ...]:
        """The questions that nobody has answered yet."""
        ...

    async def ask(
        self,
        id: str,
        name: str,
        arguments: Mapping[str, Any],
        run: Run | None,
        by: Literal["caller", "operator"] = "caller",
    ) -> Literal["allowed", "denied", "withdrawn"]:
        """Ask whether a tool may run, and wait for the answer."""
        ...

    def withdraw(self, id: str) -> bool:
        """Close a question without an answer; return whether it was open."""
        ...


class CallOfTools(Protocol):
    """The part of a ``Call`` in which tools run."""

    @property
    def router(self) -> Router:
        """Carries what tools tell, and logs what they raise."""
        ...

    @property
    def nursery(self) -> trio.Nursery:
        """Owns the tasks of the tools."""
        ...

    @property
    def ended(self) -> trio.Event:
        """Set once the call is over: no tool starts any more."""
        ...

    @property
    def history(self) -> History:
        """Where it is written down that a tool began."""
        ...

    @property
    def work(self) -> WorkRoom:
        """The tools that run."""
        ...

    @property
    def permissions(self) -> PermissionsOfTools:
        """Whether tools may run."""
        ...

    @property
    def questions(self) -> QuestionsOfTools:
        """What tools have asked the caller."""
        ...

    def turn_of(self, run: Run | None) -> TurnOfTools | None:
        """Return the turn that a run works on; ``None`` if it works on none that is not over."""
        ...

    def touch_state(self) -> None:
        """Have the state of the call worked out anew."""
        ...
