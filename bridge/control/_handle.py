"""What people hold: the verbs, the input and the view of one call's agent."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import trio

from .._verbs import Verb
from ..events import UserStoppedSpeaking, UserTranscriptionReceived
from ._argument_checks import (
    check_answer,
    check_event,
    check_instruction,
    check_number,
    check_string,
    check_verb,
)
from ._describe import describe, over
from ._feed import Snapshot, Subscription
from ._receipt import Receipt

if TYPE_CHECKING:
    from .._call import Call
    from ..history._history import History
    from ._running_tools import BackgroundJob

T = TypeVar("T")


class Handle:
    """Holds the agent of a call: tells it things, stops it, watches it.

    Handles are cheap to make, equal for the same call, safe to use from any task and any thread,
    and harmless once the call is over.  All verbs act on the turn that is under way, at once, and
    return a receipt; see "Pause, redirect, cancel, background" in the docs.
    """

    __slots__ = ("_call", "_token")

    def __init__(self, call: Call, token: trio.lowlevel.TrioToken) -> None:
        self._call = call
        self._token = token

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Handle) and other._call is self._call

    def __hash__(self) -> int:
        return hash(id(self._call))

    # --- verbs ------------------------------------------------------------------------------------

    def pause(self) -> Receipt:
        """Hold speech, text and what would follow, in place."""
        return self._use("pause")

    def resume(self, note: str = "") -> Receipt:
        """Go on exactly where a pause has stopped everything.

        Args:
            note: What the model is told besides, as one line; empty for nothing.

        Raises:
            TypeError: The note is no string.
        """
        check_string("resume", "note", note)
        return self._use("resume", note)

    def redirect(self, text: str) -> Receipt:
        """Cut the current step; what is finished is kept, and the text is what is done next.

        Args:
            text: The new instruction; with nothing under way it is plain input.

        Raises:
            ValueError: The text is empty.
            TypeError: It is no string.
        """
        check_instruction(text)
        return self._use("redirect", text)

    def cancel(self) -> Receipt:
        """End the work; tools end by their policies, and what is finished is kept."""
        return self._use("cancel")

    interrupt = cancel

    def background(self) -> Receipt:
        """Let the turn go on unheard; its result comes later, once."""
        return self._use("background")

    def barge_in(self) -> Receipt:
        """Do what the caller does by speaking: silence, and nothing is said about it."""
        return self._use("barge_in")

    def emergency_stop(self) -> Receipt:
        """Stop everything, past every condition and grace."""
        return self._use("emergency_stop")

    def shutdown(self, deadline_s: float = 5.0) -> Receipt:
        """Refuse new input, cancel, and end the call.

        Args:
            deadline_s: How long tools may take to end, in seconds.

        Raises:
            TypeError: The deadline is no number.
            ValueError: It is negative.
        """
        check_number("shutdown", "deadline_s", deadline_s, finite=False)
        return self._run(lambda: self._call.control.shut_down(deadline_s), self._stale("shutdown"))

    def _use(self, verb: Verb, text: str = "") -> Receipt:
        return self._run(lambda: self._call.control.use(verb, text), self._stale(verb))

    @staticmethod
    def _stale(verb: Verb) -> Callable[[], Receipt]:
        return lambda: Receipt(0, verb, None, "idle", "the call is over")

    # --- talking to it --------------------------------------------------------------------------

    def send_input(self, text: str) -> bool:
        """Tell the agent something, as if the user had typed it; it interrupts nothing.

        What comes while the agent works is answered after; nothing is lost.

        Args:
            text: What the user says.

        Returns:
            Whether it was taken; False for a text without a word, and once the call is over or is
            shutting down.

        Raises:
            TypeError: It is no string.
        """
        check_string("send_input", "text", text)
        return self._run(lambda: self._take_input(text), lambda: False)

    def _take_input(self, text: str) -> bool:
        call = self._call
        if not text.strip() or call.control.is_closing or call.ended.is_set():
            return False
        call.router.publish_detached(UserTranscriptionReceived(content=text), "caller")
        call.router.publish_detached(UserStoppedSpeaking(), "caller")
        return True

    def respond(self, permission: str, allow: bool, remember: bool = False) -> bool:
        """Answer the question whether a tool may run.

        Args:
            permission: The id of the question, which is that of the tool's call.
            allow: Whether it may.
            remember: Whether the answer holds for further calls of the tool in this conversation.

        Returns:
            False if nobody waits for the answer any more.

        Raises:
            TypeError: The id is no string, or an answer is neither True nor False.
        """
        check_answer(permission, allow, remember)
        return self._run(
            lambda: self._call.permissions.respond(permission, allow, remember), lambda: False
        )

    def answer(self, question: str, text: str) -> bool:
        """Answer what a tool has asked, in the caller's name.

        It goes into the history as what the caller said.

        Args:
            question: The id of the question, as ``QuestionAsked`` and the snapshot tell it.
            text: The answer; "never mind" withdraws the question.

        Returns:
            False if nobody waits for the answer any more, or the text has no word.

        Raises:
            TypeError: One of them is no string.
        """
        check_string("answer", "question", question)
        check_string("answer", "text", text)
        return self._run(lambda: self._call.questions.answer(question, text), lambda: False)

    def publish(self, event: Any) -> bool:
        """Publish an event as the caller's side, now: what a client or a microphone would.

        Args:
            event: An instance of any event class.

        Returns:
            Whether it was taken; False once the call is over.

        Raises:
            TypeError: The event is None or a class.
        """
        check_event(event)
        return self._run(lambda: self._publish(event), lambda: False)

    def _publish(self, event: Any) -> bool:
        if self._call.ended.is_set():
            return False
        self._call.router.publish_detached(event, "caller")
        return True

    # --- watching it ----------------------------------------------------------------------------

    def subscribe(self) -> Subscription:
        """Watch: a snapshot first, then every event of the call as it happens, but for audio.

        A watcher that is too slow holds up nobody: it gets a new snapshot in place of what it has
        missed.  Only from tasks of the call's own event loop.

        Returns:
            What to iterate: ``async for message in handle.subscribe()``.  A message has the event,
            or a snapshot, as ``event``; who published it, as ``source``; and when, as ``at_s``, in
            seconds of trio's clock.
        """
        return self._call.watch()

    def snapshot(self) -> Snapshot:
        """Return what the call is doing at this moment."""
        return self._run(self._call.snapshot, self._call.last_snapshot)

    def describe(self, verb: Verb) -> str:
        """Say in one line what a verb would do now; the receipt then shows the same.

        Args:
            verb: The verb.

        Raises:
            ValueError: There is no such verb.
        """
        check_verb("describe", verb)
        return self._run(lambda: self._describe(verb), lambda: over(verb))

    def _describe(self, verb: Verb) -> str:
        call = self._call
        return describe(call.control, call.speaking, verb, call.why_not(verb))

    @property
    def call(self) -> Call:
        """The call, for what the handle has no word for; only from tasks of its event loop."""
        return self._call

    @property
    def history(self) -> History:
        """What was said and done so far, and what of it was heard."""
        return self._run(lambda: self._call.history, lambda: self._call.last_history)

    @property
    def jobs(self) -> tuple[BackgroundJob, ...]:
        """The background jobs of all agents, those that have ended too; in the order of each."""
        return self._run(self._all_jobs, self._all_jobs)

    def _all_jobs(self) -> tuple[BackgroundJob, ...]:
        nodes = (bridge.node for bridge in self._call.bridges)
        return tuple(job for node in nodes for job in getattr(node, "jobs", ()))

    def _run(self, fn: Callable[[], T], stale: Callable[[], T]) -> T:
        """Call a function in the call's event loop, wherever this is called from."""
        if trio.lowlevel.in_trio_run() and trio.lowlevel.current_trio_token() is self._token:
            return fn()
        try:
            return trio.from_thread.run_sync(fn, trio_token=self._token)
        except trio.RunFinishedError:
            return stale()

    def __repr__(self) -> str:
        return f"<Handle of call {self._call.call_id!r}>"
