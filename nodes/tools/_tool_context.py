"""What a running tool can see of its call, and do besides returning a result."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from functools import wraps
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar, final

import trio

from bargein.bridge.control import QuestionAnswer, ToolOutcome
from bargein.bridge.events import (
    AgentResponse,
    Button,
    CallActionCompleted,
    CallActionFailed,
    ToolOutput,
    ToolProgress,
    ToolResult,
)
from bargein.routes.error_hints import SuggestsNames

from ._tool_body import CommitSection, DeclaredOutcome, ToolBody
from ._tool_clock import virtual_time

if TYPE_CHECKING:
    from bargein.bridge import Call, InterruptToken

COMMIT_S = 5.0
"""How long a commit section may take unless it says otherwise, in seconds; requests to payment
services commonly wait 3 to 5 s before they give up."""


ASK_S = 30.0
"""How long a caller may be silent after a question, in seconds: time to look something up."""

TOO_LATE = "the result of the tool was given already"

P = ParamSpec("P")
R = TypeVar("R")


def _on_the_loop(
    method: Callable[P, Coroutine[Any, Any, R]],
) -> Callable[P, Coroutine[Any, Any, R]]:
    """Make an async method raise in a thread, where its coroutine would do nothing, untold."""

    @wraps(method)
    def checked(*args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R]:
        if not trio.lowlevel.in_trio_run():
            name = method.__name__
            raise RuntimeError(
                f"context.{name}() was called in a thread, where nobody can await it; in a sync "
                f"tool, write trio.from_thread.run(context.{name}, ...)"
            )
        return method(*args, **kwargs)

    return checked


_current: ContextVar[ToolContext | None] = ContextVar("bargein_tool", default=None)


@final
class ToolContext(SuggestsNames):
    """What a running tool can see and do.

    Get it through a parameter annotated ``ToolContext``, or from ``current_tool()``.
    """

    __slots__ = ("_body", "_call")

    def __init__(self, call: Call, body: ToolBody) -> None:
        self._call = call
        self._body = body

    @property
    def call(self) -> Call:
        """The conversation."""
        return self._call

    @property
    def id(self) -> str:
        """The id of this call of the tool."""
        return self._body.id

    @property
    def name(self) -> str:
        """The name of the tool."""
        return self._body.tool.name

    @property
    def answer_number(self) -> int:
        """The number of the answer that called the tool; 0 for a job outside an answer."""
        return self._body.answer

    @property
    def token(self) -> InterruptToken:
        """Requested when the tool is cancelled, for code in a thread to poll; requesting it cancels
        the tool.

        ``is_background_requested`` is true once the tool continues as a background job.
        """
        return self._body.token

    @property
    def is_stopping(self) -> bool:
        """Whether the tool was interrupted and is finishing within its grace period or cap."""
        return self._body.is_stopping

    def waiting(self) -> AbstractContextManager[None]:
        """Tell that the tool does nothing itself within the block but wait for tools of its own, as
        an agent inside it does; a pause then waits only for those."""
        return self._body.waiting()

    async def until_resumed(self) -> None:
        """Wait while the call is paused, without using up the time of the tool.

        For a tool that is an agent itself: in a pause it asks no model and starts no tool.
        Cancelling this is safe.
        """
        if self._body.gate.is_shut:
            with self._body.waits(), self._body.waiting():
                await self._body.gate.passed()

    def progress(self, text: str = "", fraction: float | None = None) -> None:
        """Report how far the tool is.  Safe from any thread.

        Args:
            text: What it is doing, for a person.
            fraction: From 0 to 1; ``None`` if unknown.

        Raises:
            ValueError: `fraction` is out of its bounds.
        """
        self._body.publish(
            ToolProgress(
                id=self.id,
                name=self.name,
                text=text,
                fraction=fraction,
                for_operator=self._is_operators,
            )
        )

    def publish(self, event: Any) -> None:
        """Publish an event even if the answer that called the tool was interrupted. Safe from any
        thread.

        By contrast, what a tool publishes with ``call.publish()`` is dropped after its answer was
        interrupted.

        Args:
            event: An instance of any event class.
        """
        self._body.publish(event)

    def output(self, stream: Literal["stdout", "stderr", "tty"], text: str) -> None:
        """Publish output of the tool. Safe from any thread.

        Args:
            stream: The output stream.
            text: What it wrote.
        """
        self._body.publish(
            ToolOutput(
                id=self.id,
                name=self.name,
                stream=stream,
                text=text,
                for_operator=self._is_operators,
            )
        )

    @property
    def _is_operators(self) -> bool:
        """Whether the tool is hidden from callers."""
        return self._body.tool.permission == "operator"

    @_on_the_loop
    async def say(self, text: str) -> bool:
        """Make the agent say something while the caller waits, such as "One moment".

        The text becomes part of the current answer and is interrupted with it. This does not wait
        until it was heard.  From a thread use ``trio.from_thread.run(context.say, text)``.

        Args:
            text: What to say.

        Returns:
            False if nothing is said, because the answer was interrupted or the tool is in the
            background.
        """
        body = self._body
        await trio.lowlevel.checkpoint()
        if body.run is None or body.run.is_stale or body.is_closed or not text.strip():
            return False
        answer = self._call.answer_of(body.run)
        glue = " " if answer is not None and answer.generated[-1:].strip() else ""
        said = AgentResponse(content=f"{glue}{text.strip()} ")
        self._call.router.publish(said, body.source, body.run)
        return True

    @_on_the_loop
    async def ask(
        self, question: str, *, choices: Sequence[str] = (), timeout_s: float | None = ASK_S
    ) -> QuestionAnswer:
        """Make the agent ask the caller a question, and wait for the answer.

        The caller's next turn is the answer, spoken, typed or keyed; the agent does not reply to
        it.  A second question waits until the first is closed.  Meanwhile the time limits of the
        tool and its answer are suspended.  Cancelling this withdraws the question.  From a thread
        use ``trio.from_thread.run(context.ask, question)``.

        Args:
            question: What the agent says.
            choices: The choices, which the caller picks by words, place ("the second") or number.
                They are shown on a screen and not spoken.
            timeout_s: Seconds of silence, from when the question was heard, until it times out;
                ``None`` for no limit.

        Returns:
            The answer, with its outcome, which is ``interrupted`` at once if nobody can be asked:
            in a background job, after an interruption, and for an agent without the floor.

        Raises:
            TypeError: The question is not a text, the choices are not a list of texts, or the time
                is not a number.
            ValueError: The question or a choice is empty, a choice occurs twice, or the time is not
                above 0.
        """
        body = self._body
        await trio.lowlevel.checkpoint()
        if body.is_closed:
            return QuestionAnswer("interrupted")
        people = nullcontext() if body.run is None else body.run.waiting_for_people()
        with body.waits(), people, virtual_time():
            # For an agent inside a tool, the agent of the answer asks.
            asks = body.source if body.run is None else body.run.source
            return await self._call.questions.ask(
                self.id, self.name, question, choices, timeout_s, body.run, asks,
                for_operator=self._is_operators,
            )  # fmt: skip

    @_on_the_loop
    async def transfer(self, target_phone_number: str) -> CallActionCompleted | CallActionFailed:
        """Transfer the caller to a telephone number, and return the outcome.

        Cancelling abandons the transfer; whether it took place is then unknown.  From a thread use
        ``trio.from_thread.run(context.transfer, number)``.

        Args:
            target_phone_number: The number.

        Returns:
            An event that a tool may return as it is.  ``CallActionFailed`` says why the caller was
            not transferred, for example because the transport cannot transfer calls.
        """
        if self._body.is_closed:
            return CallActionFailed(action="transfer", reason=TOO_LATE)
        actions = self._call.actions
        return await actions.transfer(target_phone_number, source=self._body.source)

    @_on_the_loop
    async def send_dtmf(self, button: Button) -> CallActionCompleted | CallActionFailed:
        """Press a key, for a menu at the other end, and return the outcome.

        Cancelling abandons it; whether the key was pressed is then unknown.  From a thread use
        ``trio.from_thread.run(context.send_dtmf, button)``.

        Args:
            button: The key.

        Returns:
            As for ``transfer()``.

        Raises:
            ValidationError: There is no such key (pydantic's error, which lists the keys).
        """
        if self._body.is_closed:
            return CallActionFailed(action="dtmf", reason=TOO_LATE)
        return await self._call.actions.send_dtmf(button, source=self._body.source)

    def commit(self, deadline_s: float = COMMIT_S) -> CommitSection:
        """Return the tool's commit section, for ``async with``; in a thread, for ``with``.

        Args:
            deadline_s: Seconds within which it must end, above 0 and finite.

        Returns:
            A context manager.  Entering it after a cancel raises ``Interrupted`` or is cancelled;
            entering a second one raises ``RuntimeError``.  Leaving it raises ``CommitOverrunError``
            if the deadline has passed.
        """
        return CommitSection(self._body.commit, deadline_s, self._body.trio_token)

    @property
    def commit_until_s(self) -> float:
        """The deadline of the commit section that the tool is in, in seconds of trio's clock;
        ``-inf`` outside of it."""
        return self._body.commit.until_s

    def conclude(
        self, content: str, outcome: ToolOutcome | None = None, *, error: bool = False
    ) -> None:
        """Fix the result, however the body ends from here on.

        For a tool that is being cancelled and knows its outcome better than the rules do; let the
        cancellation propagate afterwards.

        Args:
            content: The text for the model, added to the words of an outcome other than completed.
            outcome: The outcome; ``None`` leaves it to the rules.
            error: Whether it failed.
        """
        self._body.conclude(DeclaredOutcome(content, outcome, error))

    def share(self, result: ToolResult) -> None:
        """Use the result of another call.

        Args:
            result: The final result of the other call.
        """
        self._body.conclude(DeclaredOutcome(result.content, result.outcome, result.error, True))

    def become_current(self) -> None:
        """Make this the tool that ``current_tool()`` returns, for the rest of this task."""
        _current.set(self)

    def __repr__(self) -> str:
        return f"<ToolContext of {self.name!r} {self.id!r}>"


def current_tool() -> ToolContext:
    """Return the tool that runs this code, in a task or a thread.

    Raises:
        RuntimeError: No tool is running here.
    """
    return _current_tool("current_tool()")


def _current_tool(needs: str) -> ToolContext:
    context = _current.get()
    if context is None:
        raise RuntimeError(f"no tool is running here; {needs} is for the body of a tool")
    return context


def commit(deadline_s: float = COMMIT_S) -> CommitSection:
    """Return the commit section of the current tool.

    Args:
        deadline_s: As in ``ToolContext.commit()``.

    Raises:
        RuntimeError: No tool is running here.
    """
    return _current_tool("commit()").commit(deadline_s)
