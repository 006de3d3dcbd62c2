"""Protocols for the parts of a ``Call`` that an answering node uses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import trio

    from bargein.bridge import Answer, History
    from bargein.bridge.control import RunningTools
    from bargein.routes import Router, Run


class RememberedCall(Protocol):
    """The part of a ``Call`` that holds its history."""

    @property
    def history(self) -> History:
        """The conversation up to this moment."""
        ...

    def answer_of(self, run: Run | None) -> Answer | None:
        """Return the open answer that a run works on; ``None`` if there is none."""
        ...


class AnswerTexts(Protocol):
    """Takes the text of the answers of a call."""

    def complete(self, answer: Answer, /) -> None:
        """Speak the text of an answer so far without waiting for the end of its clause."""
        ...

    def withdraw(self, answer: Answer, text: str, /) -> bool:
        """Withdraw the last text of an answer if none of its audio has reached the line."""
        ...


class SpokenAnswers(Protocol):
    """Controls what the agents of a call say."""

    @property
    def text(self) -> AnswerTexts:
        """Takes what they say."""
        ...


class AnsweredCall(RememberedCall, Protocol):
    """The part of a ``Call`` that an answer needs."""

    @property
    def router(self) -> Router:
        """The router, which publishes the warnings of caps."""
        ...

    @property
    def nursery(self) -> trio.Nursery:
        """The nursery that owns the tasks of the call; a cap's warning comes from one."""
        ...

    @property
    def answers(self) -> SpokenAnswers:
        """What the agents of the call say."""
        ...

    @property
    def running_tools(self) -> RunningTools:
        """The running tools."""
        ...

    @property
    def audio(self) -> bool:
        """Whether the caller hears the agents; otherwise only text travels."""
        ...

    def has_floor(self, source: str) -> bool:
        """Whether the caller hears what a source says."""
        ...

    def touch_state(self) -> None:
        """Have the state of the call recomputed."""
        ...


class CallWithJobs(Protocol):
    """The part of a ``Call`` that background jobs need."""

    @property
    def router(self) -> Router:
        """The router, which publishes when tools and answers move to the background."""
        ...

    @property
    def nursery(self) -> trio.Nursery:
        """The nursery that owns the tasks of jobs."""
        ...

    @property
    def running_tools(self) -> RunningTools:
        """The tools and answers that run in the background."""
        ...
