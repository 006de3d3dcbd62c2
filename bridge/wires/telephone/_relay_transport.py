"""A caller whose carrier hears and speaks: text out and in, no I/O."""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING, Literal, assert_never, final

import trio

from bargein.routes import Message
from bargein.routes.error_containment import as_error
from bargein.routes.logs import get_logger

from ..._transport_protocol import CallActionError
from ...events import (
    AgentSpeechCut,
    AgentStoppedSpeaking,
    Button,
    DTMFInput,
    TranscriptionFailed,
    UserStartedSpeaking,
    UserStoppedSpeaking,
    UserTranscriptionReceived,
)
from ...protocol._outbox import Outbox
from ...websocket import Data
from .._limits import RateLimit
from .._wire import HostedCall
from ._relay_codec import (
    CarrierError,
    Ignored,
    Opened,
    PlayedWords,
    PlayMedia,
    PressedKey,
    Prompt,
    RelayCodec,
    RelayEvent,
    SpeechChange,
    Stopped,
    SwitchLanguage,
)

if TYPE_CHECKING:
    from ...call._call import Call

LONGEST_TURN_S = 60.0
"""After how many seconds without a word a caller who has interrupted counts as not understood."""

WORDS_S = 5.0
"""How many seconds after the caller's voice has stopped its words may take."""

IN_FLIGHT_S = 1.0
"""For how many seconds text may be on its way to the carrier when that is interrupted."""

log = get_logger()


@final
class RelayTransport:
    """The caller's side of a call over ConversationRelay.

    Attributes:
        audio: False: only text travels, and the carrier has the voice.
        sample_rate_hz: Of no audio.
        handoff: What the carrier is asked to do when the relay ends; ``None`` for nothing.
        barge_ins: How often the caller interrupted, or the carrier's voice was silenced.
        ignored: How many messages of the carrier meant nothing, by why.
    """

    audio = False
    sample_rate_hz = 8_000

    def __init__(self, codec: RelayCodec, outbox: Outbox, hosted: HostedCall) -> None:
        """Keep what messages need.

        Args:
            codec: Reads and writes them.
            outbox: Where they are queued.
            hosted: The call.
        """
        limits = hosted.limits
        self.handoff: dict[str, str] | None = None
        self.barge_ins = 0
        self.ignored: dict[str, int] = {}
        self._codec = codec
        self._outbox = outbox
        self._hosted = hosted
        self._metrics = hosted.metrics
        self._turns = RateLimit(limits.turns_per_s, limits.turn_burst)
        self._messages = RateLimit(limits.messages_per_s, limits.message_burst)
        self._user_speaks = False
        self._keys: deque[str] = deque(maxlen=64)
        self._is_open_cycle = False
        self._spoke_at_s = -math.inf
        self._silent = trio.Event()

    # --- to the caller --------------------------------------------------------------------------

    def send(self, message: Message) -> None:
        """Send what the carrier does besides speaking."""
        match message.event:
            case PlayMedia(source=source, times=times):
                self._outbox.enqueue(self._codec.play(source, times))
            case SwitchLanguage(spoken=spoken, heard=heard) if spoken or heard:
                self._outbox.enqueue(self._codec.language(spoken, heard))
            case AgentStoppedSpeaking() | AgentSpeechCut():
                self._silent.set()

    def play(self, utterance: int, pcm: bytes) -> None:
        """Play nothing: there is no audio."""

    def speak(self, utterance: int, text: str, last: bool, interruptible: bool) -> None:
        """Let the carrier speak text; see ``SpeaksText``."""
        self._is_open_cycle = not last
        self._spoke_at_s = trio.current_time()
        self._outbox.enqueue(self._codec.text(text, last=last, interruptible=interruptible))

    def clear(self, utterance: int, reason: str) -> None:
        """Silence the carrier's voice, where it can be."""
        self.barge_ins += 1
        self._metrics.barge_ins += 1
        self._silence()

    def _silence(self) -> None:
        silence = self._codec.clear()
        if silence is None:
            return
        if self._is_open_cycle:  # what follows would else belong to the same text
            self._is_open_cycle = False
            self._outbox.enqueue(self._codec.text("", last=True, interruptible=True))
        self._outbox.enqueue(silence)

    async def transfer(self, target_phone_number: str) -> None:
        """Let the carrier dial a number for the caller, once what is being said was heard.

        Its webhook, which the carrier asks when the relay ends, answers with the number.

        Args:
            target_phone_number: The number, or a SIP address.

        Raises:
            CallActionError: It is neither.
        """
        target = target_phone_number.strip()
        if not (target.startswith("sip:") or target.lstrip("+").replace("-", "").isdigit()):
            raise CallActionError("the number to transfer to is none, such as +15550100")
        await self._quiet()
        self.handoff = {"transfer": target}
        self._hosted.end("transferred")

    async def _quiet(self) -> None:
        """Wait until what was said before was heard or cut."""
        await trio.lowlevel.checkpoint()
        call = self._hosted.call
        while call is not None and not call.answers.playout.is_idle:
            self._silent = trio.Event()
            await self._silent.wait()

    async def send_dtmf(self, button: Button) -> None:
        """Let the carrier press a key behind what it is saying; return once it has been told to."""
        self._keys.append(button)
        self._outbox.enqueue(self._codec.keys(button))
        await trio.lowlevel.checkpoint()

    # --- from the caller ------------------------------------------------------------------------

    def receive(self, data: Data) -> None:
        """Apply a message of the carrier; never raises."""
        call = self._hosted.call
        if call is None or call.ended.is_set():
            return
        try:
            self._obey(self._event(data), call)
        except BaseException as caught:  # noqa: ASYNC103 - see as_error()
            log.error("call_failed", exc_info=as_error(caught))
            self._metrics.errors["agent_error"] += 1
            self._hosted.end("failed")

    def _event(self, data: Data) -> RelayEvent:
        if len(data) > self._hosted.limits.max_message_bytes:
            return Ignored("too long")
        if not self._messages.take():
            return Ignored("too many messages")
        return self._codec.decode(data)

    def ignore(self, why: str) -> None:
        """Count a message that means nothing."""
        self.ignored[why] = self.ignored.get(why, 0) + 1

    def _obey(self, event: RelayEvent, call: Call) -> None:
        match event:
            case Prompt():
                self._said(event, call)
            case PressedKey(button=button):
                call.publish(DTMFInput(button=button))
            case Stopped(heard=heard):
                self._stopped(heard, call)
            case PlayedWords(text=text):
                if self._keys and text.strip() == self._keys[0]:
                    self._keys.popleft()
                elif not call.answers.audio.report_speech("spoken", text):
                    self.ignore("text that was not given")
            case SpeechChange(who="agent", on=on):
                call.answers.audio.report_speech("started" if on else "silent")
            case SpeechChange(on=on):
                if self._user_speaks:
                    self._await_words(call, LONGEST_TURN_S if on else WORDS_S)
            case CarrierError(text=text):
                log.warning("carrier_error", pii_text=text)
                self.ignore("an error of the carrier")
            case Opened():
                self.ignore("a second setup")
            case Ignored(why=why):
                self.ignore(why)
            case _:
                assert_never(event)

    def _stopped(self, heard: str, call: Call) -> None:
        self.barge_ins += 1
        self._metrics.barge_ins += 1
        if self._is_open_cycle or trio.current_time() - self._spoke_at_s < IN_FLIGHT_S:
            self._silence()  # the carrier may have got this text only after it dropped the others
        if not call.answers.audio.report_speech("stopped", heard):
            self.ignore("text that was not given")
        self._start_turn(call)
        self._await_words(call, LONGEST_TURN_S)

    def _said(self, said: Prompt, call: Call) -> None:
        if not said.text.strip():
            if said.final and self._user_speaks:
                self._not_understood(call, "no_words")
            return
        if said.final and not self._turns.take():
            self._metrics.over_budget["turns"] += 1
            self.ignore("too many turns")
            return
        self._start_turn(call)
        words = UserTranscriptionReceived(
            content=said.text, final=said.final, language=said.language
        )
        call.publish(words)
        if said.final:
            self._end_turn(call)
            call.publish(UserStoppedSpeaking())
        else:
            self._await_words(call, LONGEST_TURN_S)

    def _start_turn(self, call: Call) -> None:
        if not self._user_speaks:
            self._user_speaks = True
            call.publish(UserStartedSpeaking())

    def _end_turn(self, call: Call) -> None:
        self._user_speaks = False
        call.router.forget(self)

    def _await_words(self, call: Call, within_s: float) -> None:
        at_s = trio.current_time() + within_s
        call.router.call_at(self, at_s, lambda: self._not_understood(call, "timed_out"))

    def _not_understood(self, call: Call, why: Literal["no_words", "timed_out"]) -> None:
        if self._user_speaks and not call.ended.is_set():
            self._end_turn(call)
            call.publish(TranscriptionFailed(reason=why, interrupted=True))
