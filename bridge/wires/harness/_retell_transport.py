"""A caller whose platform hears and speaks: Retell.

Rule 1. Retell decides when the caller has interrupted: it asks for another response, or tells that
it is the caller's turn.  Words that the caller says meanwhile, such as "mm-hm", end nothing.
Rule 2. What was heard is what the agent has said according to Retell's transcript.
Rule 3. Nothing silences Retell but the caller.  A newer request makes the text of an older one
void; what no route has cut is said again, as the newer one, from the first unheard word.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, final

import trio

from bargein.routes import Event, Message
from bargein.routes.logs import get_logger

from ...events import Button, CustomReceived, ToolCall, ToolResult, UserStoppedSpeaking
from ...protocol._outbox import Outbox
from ...websocket import Data
from .._server_limits import HARD_LIMIT_FACTOR
from .._wire import CallEnd, HostedCall
from ..text._text_events import Ignored, Prompt
from ..text._text_transport import LONGEST_TURN_S, TextWireTransport, checked_number
from . import _retell_codec as codec
from ._line_transport import SendCustom
from ._retell_codec import BEGIN, CallDetails, RetellPing, Saying, Transcript

if TYPE_CHECKING:
    from ...call._call import Call

FIRST_WORDS_S = 1.0
"""How long an agent may take to its first word, in seconds; after that Retell is told to wait for
the caller."""

log = get_logger()


class ReminderWanted(Event):
    """The platform wants the agent to speak, because the caller is silent."""

    type: Literal["user.reminder_wanted"] = "user.reminder_wanted"


@final
class RetellTransport(TextWireTransport):
    """The caller's side of a call over Retell."""

    silences: ClassVar[bool] = False
    length_factor: ClassVar[int] = HARD_LIMIT_FACTOR  # each message has the whole transcript

    def __init__(self, outbox: Outbox, hosted: HostedCall) -> None:
        """Keep what messages need.

        Args:
            outbox: Where they are queued.
            hosted: The call.
        """
        super().__init__(outbox, hosted)
        self._asked: int | None = BEGIN
        self._newest = BEGIN
        self._interrupts = 0
        self._utterance = 0
        self._saying = Saying(BEGIN)
        self._is_open = False
        self._is_interruptible = True
        self._dropped = 0
        self._agent: list[str] = []
        self._user: list[str] = []
        self._is_transferred = False
        outbox.enqueue(codec.config())

    # --- to the caller --------------------------------------------------------------------------

    def opened(self, call: Call) -> None:
        """Say that the caller begins, if the agent does not."""
        call.answers.audio.report_speech("silent")
        at_s = trio.current_time() + FIRST_WORDS_S
        call.router.call_at((self, "first words"), at_s, self._wait_for_caller)
        super().opened(call)

    def _wait_for_caller(self) -> None:
        if self._asked == BEGIN and not self._is_open:
            self._asked = None
            self.outbox.enqueue(Saying(BEGIN).piece("", last=True))

    def send(self, message: Message) -> None:
        """Send which tools are called, and data of the app's own."""
        match message.event:
            case ToolCall() as asked if not asked.for_operator:
                self.outbox.enqueue(codec.tool_call(asked.id, asked.name, asked.arguments))
            case ToolResult() as result if not result.for_operator:
                self.outbox.enqueue(codec.tool_result(result.id, result.content))
            case SendCustom(metadata=metadata):
                self.outbox.enqueue(codec.metadata(metadata))
        super().send(message)

    def speak(self, utterance: int, text: str, last: bool, interruptible: bool) -> None:
        """Let Retell speak text; see ``SpeaksText``."""
        if utterance == self._dropped or (self.user_speaks and interruptible):
            self._dropped = utterance  # it is said once the caller is silent
            return
        if utterance != self._utterance or not self._is_open:
            self._utterance, self._saying = utterance, self._next_saying()
        self._is_interruptible = interruptible
        self._is_open = not last
        self.outbox.enqueue(self._saying.piece(text, last=last, interruptible=interruptible))
        if last and self._saying.is_asked:
            self._asked = None

    def _next_saying(self) -> Saying:
        """Return what the next speech belongs to: the response that is asked for, or none."""
        if self._asked is not None:
            return Saying(self._asked)
        self._interrupts += 1
        return Saying(self._interrupts, is_asked=False)

    def clear(self, utterance: int, reason: str) -> None:
        """Say that no more of it comes; what Retell has, only the caller stops."""
        self.count_barge_in()
        if self._is_open:
            self._is_open = False
            self.outbox.enqueue(self._saying.piece("", last=True))
            if self._saying.is_asked and self._saying.response == self._asked:
                self._asked = None

    async def transfer(self, target_phone_number: str) -> None:
        """Let Retell transfer the caller, once what is being said was heard.

        The call ends when Retell leaves it.

        Args:
            target_phone_number: The number, or a SIP address.

        Raises:
            CallActionError: It is neither.
        """
        target = checked_number(target_phone_number)
        await self.quiet()
        self._is_transferred = True
        self.outbox.enqueue(self._next_saying().piece("", last=True, transfer_number=target))
        self._asked = None

    async def send_dtmf(self, button: Button) -> None:
        """Let Retell press a key."""
        self.outbox.enqueue(self._next_saying().piece("", last=False, digit_to_press=button))
        await trio.lowlevel.checkpoint()

    def goodbye(self, end: CallEnd) -> Sequence[Data]:
        """Return what ends the call at Retell."""
        return (self._next_saying().piece("", last=True, end_call=True),)

    def end_reason(self) -> str:
        """Return why the call is over when Retell leaves it."""
        return "transferred" if self._is_transferred else "hangup"

    # --- from the caller ------------------------------------------------------------------------

    def decode(self, data: Data) -> codec.RetellEvent | Ignored:
        """Return what a message of Retell's means; never raises."""
        return codec.decode(data)

    def obey(self, event: Any, call: Call) -> None:
        """Apply what a message of Retell's means."""
        match event:
            case RetellPing(timestamp=timestamp):
                self.outbox.enqueue_first(codec.pong(timestamp))
            case CallDetails(call=details):
                call.publish(CustomReceived(metadata={"call": details}))
            case Transcript():
                self._note_heard(event.agent, call)
                if event.response is not None:
                    self._answer(event, event.response, call)
                elif event.turn == "user":
                    self._start_caller_speech(call)

    def _note_heard(self, agent: Sequence[str], call: Call) -> None:
        """Report what of the agent's words is new in the transcript."""
        for at, told in enumerate(agent):
            known = self._agent[at] if at < len(self._agent) else ""
            if told == known:
                continue
            self._agent[at : at + 1] = [told]
            new = told[len(known) :] if told.startswith(known) else told
            if new.strip():
                self.note_spoken(new, call)

    def _start_caller_speech(self, call: Call) -> None:
        """It is the caller's turn: Retell has fallen silent, where it may be interrupted."""
        front = call.answers.playout.front
        if front is not None and front.number == self._utterance and self._is_interruptible:
            self._dropped = self._utterance
        self.start_turn(call)
        self.await_words(call, LONGEST_TURN_S)

    def _answer(self, said: Transcript, response: int, call: Call) -> None:
        """Retell wants a response: to what the caller has said since, or because nobody speaks."""
        if response < self._newest:
            self.ignore("an older request")
            return
        is_newer = response > self._newest
        words = self._new_words(said.user)
        if words and not self.may_say_more():
            return
        if words:
            self._start_caller_speech(call)
        self._newest = self._asked = response
        if is_newer:
            self._is_open = False  # text of an older one is void
        self._say_again_what_was_dropped(call)
        if words:
            self.publish_words(Prompt(words, final=True), call)
            self.end_turn(call)
            call.publish(UserStoppedSpeaking())
        elif self.user_speaks:
            self.not_understood(call, "no_words")
        elif said.reminder:
            call.publish(ReminderWanted())

    def _new_words(self, user: Sequence[str]) -> str:
        """Return what the caller has said since the last request."""
        words: list[str] = []
        for at, said in enumerate(user):
            known = self._user[at] if at < len(self._user) else ""
            if said != known:
                words.append(said[len(known) :] if said.startswith(known) else said)
                self._user[at : at + 1] = [said]
        return " ".join(each.strip() for each in words if each.strip())

    def _say_again_what_was_dropped(self, call: Call) -> None:
        front = call.answers.playout.front
        dropped, self._dropped = self._dropped, 0
        if front is not None and front.number == dropped:
            self.count_barge_in()
            call.answers.audio.report_speech("stopped")
