"""What a tool that runs knows of its call, and can do besides returning a result."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Literal, final

import trio

from bargein.bridge.control import Answer, ToolOutcome
from bargein.bridge.events import (
    AgentResponse,
    Button,
    CallActionCompleted,
    CallActionFailed,
    ToolOutput,
    ToolProgress,
    ToolResult,
)

from ._commit import COMMIT_S, CommitSection
from ._tool_body import Body, Conclusion

if TYPE_CHECKING:
    from bargein.bridge import Call, InterruptToken

ASK_S = 30.0
"""For how long a caller may be silent after a question, in seconds: time to look something up."""

TOO_LATE = "the result of the tool was given already"

_current: ContextVar[ToolContext | None] = ContextVar("bargein_tool", default=None)


@final
class ToolContext:
    """A tool at work, as the tool itself sees it.

    A function gets it by a parameter annotated ``ToolContext``, or by ``current_tool()``.
    """

    __slots__ = ("_body", "_call")

    def __init__(self, call: Call, body: Body) -> None:
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
    def turn(self) -> int:
        """The number of the turn that called it; 0 for a job that no turn began."""
        return self._body.turn

    @property
    def token(self) -> InterruptToken:
        """Asked when the tool is cut, so that code in a thread can poll; asking it cuts the tool.

        ``is_background_requested`` tells that the tool goes on as a background job.
        """
        return self._body.token

    @property
    def is_stopping(self) -> bool:
        """Whether an interrupt lets the tool finish within a grace or a cap, and waits for it."""
        return self._body.is_stopping

    def progress(self, text: str = "", fraction: float | None = None) -> None:
        """Tell how far the tool is.  Safe from any thread.

        Args:
            text: What it is doing, for a person.
            fraction: 0 to 1; ``None`` where it cannot say.

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
        """Publish a fact, also when the turn that called the tool was cut.  Safe from any thread.

        What a tool publishes by ``call.publish()`` is dropped once its turn was cut.

        Args:
            event: An instance of any event class.
        """
        self._body.publish(event)

    def output(self, stream: Literal["stdout", "stderr", "tty"], text: str) -> None:
        """Pass on what the tool wrote to its terminal.  Safe from any thread.

        Args:
            stream: Where it wrote.
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
        """Whether no caller is told of the tool."""
        return self._body.tool.permission == "operator"

    async def say(self, text: str) -> bool:
        """Let the agent say something while the caller waits, such as "One moment".

        It becomes part of the turn under way and is cut with it.  Does not wait until it was heard.
        From a thread use ``trio.from_thread.run(context.say, text)``.

        Args:
            text: What to say.

        Returns:
            False if nothing is said: the turn was cut, or the tool goes on in the background.
        """
        body = self._body
        await trio.lowlevel.checkpoint()
        if body.run is None or body.run.is_stale or body.is_closed or not text.strip():
            return False
        turn = self._call.turn_of(body.run)
        glue = " " if turn is not None and turn.generated[-1:].strip() else ""
        said = AgentResponse(content=f"{glue}{text.strip()} ")
        self._call.router.publish(said, body.source, body.run)
        return True

    async def ask(
        self, question: str, *, choices: Sequence[str] = (), timeout_s: float | None = ASK_S
    ) -> Answer:
        """Let the agent ask the caller something, and wait for the answer.

        The caller's next turn is the answer, or what they type or key.  It begins no other answer
        of the agent.  A second question waits until the first is closed.  The tool's own time limit
        and those of its turn stand still meanwhile.  Cancelling this withdraws the question.
        From a thread use ``trio.from_thread.run(context.ask, question)``.

        Args:
            question: What the agent says.
            choices: What the answer is compared with: its words, its place ("the second"), or its
                number.  They are shown where there is a screen, and not said.
            timeout_s: Seconds of silence, after the question was heard, until it has timed out;
                ``None`` for no end.

        Returns:
            The answer, with its outcome.  It is ``interrupted`` at once where nobody can be asked:
            in a background job, after the turn was cut, and for an agent without the floor.

        Raises:
            TypeError: The question is no text, the choices are no list of texts, or the time is no
                number.
            ValueError: Text or a choice is empty, a choice comes twice, or the time is not above 0.
        """
        body = self._body
        await trio.lowlevel.checkpoint()
        if body.is_closed:
            return Answer("interrupted")
        people = nullcontext() if body.run is None else body.run.waiting_for_people()
        with body.waits(), people:
            return await self._call.questions.ask(
                self.id, self.name, question, choices, timeout_s, body.run, body.source,
                for_operator=self._is_operators,
            )  # fmt: skip

    async def transfer(self, target_phone_number: str) -> CallActionCompleted | CallActionFailed:
        """Pass the caller on to a telephone number, and return what has become of it.

        Cancelling gives the transfer up; whether it was made is not known then.
        From a thread use ``trio.from_thread.run(context.transfer, number)``.

        Args:
            target_phone_number: Where to.

        Returns:
            What a tool may return as it is.  ``CallActionFailed`` says why the caller was not
            passed on, for one that the transport of this call cannot transfer calls.
        """
        if self._body.is_closed:
            return CallActionFailed(action="transfer", reason=TOO_LATE)
        actions = self._call.actions
        return await actions.transfer(target_phone_number, source=self._body.source)

    async def send_dtmf(self, button: Button) -> CallActionCompleted | CallActionFailed:
        """Press a key, for a menu at the other end, and return what has become of it.

        Cancelling gives it up; whether it was pressed is not known then.
        From a thread use ``trio.from_thread.run(context.send_dtmf, button)``.

        Args:
            button: The key.

        Returns:
            As for ``transfer()``.

        Raises:
            ValidationError: There is no such key; pydantic's, which names those that there are.
        """
        if self._body.is_closed:
            return CallActionFailed(action="dtmf", reason=TOO_LATE)
        return await self._call.actions.send_dtmf(button, source=self._body.source)

    def commit(self, deadline_s: float = COMMIT_S) -> CommitSection:
        """Return the tool's commit section, for ``async with``; in a thread, for ``with``.

        Args:
            deadline_s: Seconds within which it must be over, above 0 and finite.

        Returns:
            A context manager.  Entering raises ``Interrupted``, or is cancelled, once the tool was
            cut; ``RuntimeError`` the second time.  Leaving raises ``CommitOverrunError`` when the
            deadline passed inside.
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
        """Settle what the result will say, however the body ends from here on.

        For a tool that is being cut and knows better than the rules what became of it; let the
        cancellation pass afterwards.

        Args:
            content: What the model is told, beside the words of an outcome other than completed.
            outcome: What became of it; ``None`` leaves that to the rules.
            error: Whether it failed.
        """
        self._body.conclude(Conclusion(content, outcome, error))

    def share(self, result: ToolResult) -> None:
        """Settle that the result is that of another call.

        Args:
            result: The other's final result.
        """
        self._body.conclude(Conclusion(result.content, result.outcome, result.error, True))

    def become_current(self) -> None:
        """Make this the tool that ``current_tool()`` returns, for the rest of this task."""
        _current.set(self)

    def __repr__(self) -> str:
        return f"<ToolContext of {self.name!r} {self.id!r}>"


def current_tool() -> ToolContext:
    """Return the tool that this code works for, in its task or its thread.

    Raises:
        RuntimeError: No tool is running here.
    """
    context = _current.get()
    if context is None:
        raise RuntimeError("no tool is running here; current_tool() is for the body of a tool")
    return context


def commit(deadline_s: float = COMMIT_S) -> CommitSection:
    """Return the commit section of the tool that this code works for.

    Args:
        deadline_s: As in ``ToolContext.commit()``.

    Raises:
        RuntimeError: No tool is running here.
    """
    return current_tool().commit(deadline_s)
