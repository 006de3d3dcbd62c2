"""Says fillers such as "one moment" while an answer is late, and an apology if it fails.

Rules:
1. These texts are synthesised in advance, because the voice may be what has failed.
2. They are played at once, before text that waits for its audio, and a barge-in interrupts them
   like anything the agent says. If words of the answer wait for the rest of their clause, those are
   said first, so a slow model is heard word by word.
3. The history records them as notices: they were heard, but no model sees them as its own answer.
4. A slow tool never counts as a failure: its answer continues in the background.
5. A filler or an apology that fails itself is followed by nothing: the next one would fail, too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import trio

from bargein.bridge.answers.apology import APOLOGY
from bargein.bridge.events import (
    AnswerEnded,
    ListeningFailed,
    ListeningResumed,
    StageStalled,
    TranscriptionFailed,
    UserTranscriptionReceived,
    VoiceStarted,
)
from bargein.routes.error_containment import CONTAINED
from bargein.routes.logs import get_logger

from ._clause_texts import WrittenWords, whole_text
from ._engine_results import check_piece, pieces_by
from ._protocols import SpeechPiece, TextToSpeech
from ._spoken_form import NewSpokenForm, spoken_form_for
from ._streaming_protocols import StreamingTTS, TextSaid, VoiceStyle

if TYPE_CHECKING:
    from bargein.bridge import AnswerHandle, Bridge, Message

log = get_logger()

PREPARE_S = 5.0
"""How long a voice may take for each text when the speech stack opens, in seconds; a call that
starts without them tries again."""

WAITS_AFTER = 2
"""After so many turns in a row without a word, no filler promises words that do not come."""

_REMEMBERED = 8
"""How many of the last texts are known when they end; hardly ever more than two wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fillers:
    """The texts to say while an answer is late; an empty text is not said."""

    fillers: tuple[str, ...] = (
        "One moment.",
        "I am still working on it. Thank you for your patience.",
    )
    """Said one after the other, each time a stage of the answer stalls.  With the default budgets
    the second one ends about eight seconds after the caller's turn."""
    apology: str = APOLOGY
    """Said when an answer has failed, which includes a stall after the last filler, when it reached
    a cap before it said anything, and when the ear is lost.  With the default budgets that is about
    ten seconds after the caller's turn, the limit for keeping people's attention (Nielsen,
    "Response Times: The 3 Important Limits", 1993)."""
    in_background: str = "This takes a little longer. I will tell you as soon as it is done."
    """Said instead if a tool takes that long; the answer continues in the background."""

    def __post_init__(self) -> None:
        """Check the texts.

        Raises:
            TypeError: `fillers` is not a tuple of texts, or another field is not a text.
        """
        if not isinstance(self.fillers, tuple):
            raise TypeError(f"Fillers(fillers=) is a tuple of texts, not {self.fillers!r}")
        for text in (*self.fillers, self.apology, self.in_background):
            if not isinstance(text, str):
                raise TypeError(f"Fillers() takes texts, not {text!r}")

    @property
    def texts(self) -> tuple[str, ...]:
        """All texts."""
        texts = (*self.fillers, self.apology, self.in_background)
        return tuple(text for text in dict.fromkeys(texts) if text.strip())


DEFAULT_FILLERS = Fillers()


class SpokenFillers:
    """The fillers of one speech stack, synthesised in advance; shared by all calls."""

    def __init__(
        self,
        fillers: Fillers,
        voice: TextToSpeech | StreamingTTS,
        spoken_form: NewSpokenForm | None = None,
    ) -> None:
        """Keep the texts; nothing is synthesised yet.

        Args:
            fillers: The texts.
            voice: Says them.
            spoken_form: Makes what the voice says of a text; ``None`` means the voice's own, or
                ``PlainWords``.
        """
        self.fillers = fillers
        self._voice = voice
        self._new_form = spoken_form_for(voice, spoken_form)
        self._pieces: dict[str, tuple[SpeechPiece, ...]] = {}
        self._is_preparing = False

    @property
    def is_ready(self) -> bool:
        """Whether all texts are synthesised or being synthesised."""
        return self._is_preparing or all(text in self._pieces for text in self.fillers.texts)

    def pieces_of(self, text: str) -> tuple[SpeechPiece, ...]:
        """Return the audio of a text; empty if it is not a filler, or not ready.

        Args:
            text: The whole text.
        """
        return self._pieces.get(text, ())

    async def prepare(self) -> None:
        """Synthesise the texts that are not ready.

        A failure of the voice is logged; the next call tries again.  Cancelling this is safe.
        """
        self._is_preparing = True
        try:
            for text in self.fillers.texts:
                if text not in self._pieces:
                    with trio.fail_after(PREPARE_S), CONTAINED:
                        said = whole_text(text, self._new_form())
                        words, pieces = WrittenWords(said), await _said_by(self._voice, said.spoken)
                        self._pieces[text] = tuple(
                            SpeechPiece(piece.pcm, words.times(piece.words)) for piece in pieces
                        )
        except Exception as error:  # noqa: BLE001  # user code; calls work without fillers
            log.warning("fillers_not_ready", error=type(error).__name__)
        finally:
            self._is_preparing = False


class SilenceFiller:
    """Says the fillers in one call."""

    def __init__(
        self, bridge: Bridge, spoken: SpokenFillers, say_waiting: Callable[[], bool]
    ) -> None:
        """Declare the route.

        Args:
            bridge: The voice's bridge.
            spoken: The fillers of the speech stack.
            say_waiting: Says the words of the answer that wait for the rest of their clause;
                returns whether there were any.
        """
        self._bridge = bridge
        self._spoken = spoken
        self._say_waiting = say_waiting
        self._said = 0  # how many fillers during this wait
        self._own: deque[AnswerHandle] = deque(maxlen=_REMEMBERED)
        self._in_turn: AnswerHandle | None = None  # a filler within the caller's own turn
        self._is_deaf = False  # no words come, so asking the caller to wait would be untrue
        self._not_understood = 0  # turns without words in a row
        bridge.on([StageStalled, AnswerEnded, VoiceStarted]).map(self._follow)
        bridge.on([ListeningFailed, ListeningResumed]).map(self._note_ear)
        bridge.on([TranscriptionFailed, UserTranscriptionReceived]).map(self._note_words)
        if not spoken.is_ready:
            bridge.call.nursery.start_soon(spoken.prepare, name="fillers")

    def _follow(self, message: Message) -> None:
        match message.event:
            case StageStalled() as stalled:
                self._fill(stalled)
            case AnswerEnded() as ended if ended.outcome == "failed" or ended.unanswered:
                is_own = any(said.number == ended.answer for said in self._own)
                if self._bridge.call.has_floor(ended.agent) and not is_own:
                    self._say(self._spoken.fillers.apology)
            case VoiceStarted() if self._in_turn is not None:
                # The caller continues the same turn, which is not a barge-in.
                in_turn, self._in_turn = self._in_turn, None
                in_turn.interrupt()

    def _note_ear(self, message: Message) -> None:
        self._is_deaf = isinstance(message.event, ListeningFailed)
        if self._is_deaf:
            self._say(self._spoken.fillers.apology)

    def _note_words(self, message: Message) -> None:
        is_failure = isinstance(message.event, TranscriptionFailed)
        self._not_understood = self._not_understood + 1 if is_failure else 0

    def _fill(self, stalled: StageStalled) -> None:
        fillers = self._spoken.fillers
        if stalled.count == 1:
            self._said = 0
        is_ear = stalled.stage in ("ear", "end_of_turn")
        if is_ear and (self._is_deaf or self._not_understood >= WAITS_AFTER):
            return  # untrue, or said to a radio
        if stalled.stage == "line" or self._say_waiting():
            return  # nobody would hear it, or the answer's own words are said instead
        if self._said < len(fillers.fillers):
            self._said += 1
            said = self._say(fillers.fillers[self._said - 1])
            self._in_turn = said if is_ear else None
        elif stalled.stage == "tool" and self._bridge.move_answer_to_background():
            self._say(fillers.in_background)
        elif stalled.answer:
            # Without an answer the ears are late, and turn taking gives up the turn itself.
            log.error("answer_given_up", stage=stalled.stage, answer=stalled.answer)
            self._bridge.give_up_answer(f"{stalled.stage} stalled")

    def _say(self, text: str) -> AnswerHandle | None:
        if not self._spoken.pieces_of(text):
            return None
        said = self._bridge.say_notice(text)
        self._own.append(said)
        return said


async def _said_by(voice: TextToSpeech | StreamingTTS, text: str) -> tuple[SpeechPiece, ...]:
    """Return the audio of a text, from a voice of either kind."""
    if callable(getattr(voice, "synthesize", None)):
        async with aclosing(pieces_by(cast(TextToSpeech, voice), text)) as pieces:
            all_pieces = [piece async for piece in pieces]
        for one in all_pieces:
            check_piece(voice, one)
        return tuple(all_pieces)
    said = []
    async with cast(StreamingTTS, voice).open_context(VoiceStyle()) as context:
        await context.send(text)
        await context.flush()
        await context.end()
        while (piece := await context.receive()) is not None:
            if not isinstance(piece, TextSaid):
                said.append(piece)
    return tuple(said)
