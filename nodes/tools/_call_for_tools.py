"""Protocols for the parts of a ``Call`` that an agent's tools use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    import trio

    from bargein.bridge import History, PermissionQuestion
    from bargein.bridge.control import AnswerPhase, JobEnd, RunningTools, Verb
    from bargein.bridge.events import ToolResult
    from bargein.routes import Router, Run


class AnswerForTools(Protocol):
    """The part of an answer that its tools use."""

    @property
    def number(self) -> int:
        """The number of the answer in the call, from 1."""
        ...

    @property
    def phase(self) -> AnswerPhase:
        """What the answer is doing, as a phase."""
        ...

    @property
    def label(self) -> str:
        """What the answer is doing, in a few words."""
        ...

    def show(self, phase: AnswerPhase, label: str = "", *, step: bool = False) -> bool:
        """Show what the answer is doing; return whether that has changed."""
        ...

    def stand(self, reason: str, now_s: float) -> None:
        """Stop the answer's clock until ``resume()`` is called for every reason."""
        ...

    def resume(self, reason: str, now_s: float) -> None:
        """Withdraw a reason, and restart the answer's clock after the last one."""
        ...


class QuestionsOfTools(Protocol):
    """The questions that tools have asked the caller."""

    def interrupt(self, call_id: str, verb: Verb) -> None:
        """Close the questions of a tool that a verb interrupts."""
        ...


class PermissionsOfTools(Protocol):
    """Decides whether tools may run, and asks for permission."""

    @property
    def pending(self) -> tuple[PermissionQuestion, ...]:
        """The open questions."""
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


class JobResults(Protocol):
    """Delivers the results of background jobs."""

    def bring(self, result: ToolResult, ended: JobEnd) -> None:
        """Deliver a result at the next boundary of the conversation."""
        ...


class CallOfTools(Protocol):
    """The part of a ``Call`` that tools need."""

    @property
    def router(self) -> Router:
        """The router, which publishes events of tools and logs their errors."""
        ...

    @property
    def nursery(self) -> trio.Nursery:
        """The nursery that owns the tasks of the tools."""
        ...

    @property
    def ended(self) -> trio.Event:
        """Set once the call is over, so that no further tool starts."""
        ...

    @property
    def history(self) -> History:
        """The history, which records that a tool began."""
        ...

    @property
    def running_tools(self) -> RunningTools:
        """The running tools."""
        ...

    @property
    def delivery(self) -> JobResults:
        """Delivers the results of background jobs."""
        ...

    @property
    def permissions(self) -> PermissionsOfTools:
        """The permissions of tools."""
        ...

    @property
    def questions(self) -> QuestionsOfTools:
        """The questions that tools have asked the caller."""
        ...

    def answer_of(self, run: Run | None) -> AnswerForTools | None:
        """Return the open answer that a run works on; ``None`` if there is none."""
        ...

    def touch_state(self) -> None:
        """Have the state of the call recomputed."""
        ...
