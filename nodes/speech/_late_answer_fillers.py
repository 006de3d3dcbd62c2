"""Says fillers such as "one moment" while an answer is late, and an apology if it fails.

Rules:
1. The sound of these texts is ready in advance, because the voice may be what has failed: a file
   of the app's, else synthesised when the stack opens. Without a voice, or if it could not say
   them, the default texts have a built-in sound, and a tone stands for any other text.
2. They are played at once, before text that waits for its audio, and a barge-in interrupts them
   like anything the agent says. If words of the answer wait for the rest of their clause, those are
   said first, so a slow model is heard word by word.
3. The history records them as notices: they were heard, but no model sees them as its own answer.
4. A slow tool never counts as a failure: its answer continues in the background.
5. A filler or an apology that fails itself is followed by nothing: the next one would fail, too.
6. A filler promises words: if the call falls idle without any, whatever the reason, the apology
   follows. Only who cuts what was waited for, or begins another turn, waits no longer.
7. Where nothing speaks, because the agent answers in writing, nothing sounds either.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, cast

import trio

from bargein.bridge.events import (
    AgentResponse,
    AnswerEnded,
    ListeningFailed,
    ListeningResumed,
    StageStalled,
    StateChanged,
    TranscriptionFailed,
    UserStartedSpeaking,
    UserTranscriptionReceived,
    VoiceStarted,
)
from bargein.bridge.languages import language, with_some
from bargein.routes.error_containment import CONTAINED
from bargein.routes.logs import get_logger

from ._clause_texts import WrittenWords, whole_text
from ._engine_results import check_piece, pieces_by
from ._filler_sounds import (
    ENGLISH,
    FALLING_TONE,
    TONE,
    PreparedSound,
    read_sounds,
    sound_without_voice,
)
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

SETTLED_S = 0.2
"""How long a call must be idle before nothing more is expected, in seconds: what follows a turn or
an answer begins in the same step."""

_CUT = ("interrupted", "redirected", "backgrounded", "disconnected", "shutdown")
"""Outcomes after which nobody waits for the answer any more."""

_REMEMBERED = 8
"""How many of the last texts are known when they end; hardly ever more than two wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fillers:
    """The texts to say while an answer is late; an empty text is not said."""

    fillers: tuple[str, ...] = ENGLISH.fillers
    """Said one after the other, each time a stage of the answer stalls.  With the default budgets
    the second one ends about eight seconds after the caller's turn."""
    apology: str = ENGLISH.apology
    """Said when an answer has failed, which includes a stall after the last filler, when it reached
    a cap before it said anything, and when the ear is lost.  With the default budgets that is about
    ten seconds after the caller's turn, the limit for keeping people's attention (Nielsen,
    "Response Times: The 3 Important Limits", 1993)."""
    in_background: str = ENGLISH.in_background
    """Said instead if a tool takes that long; the answer continues in the background."""
    sounds: Mapping[str, str | Path | bytes] = field(default_factory=dict)
    """Your own sounds for some of the texts, by text: paths or bytes of WAV files with 16-bit mono
    samples, up to 30 s long.  They are played in place of the voice; useful for an agent whose
    speech-to-speech model is its only voice."""
    _read: Mapping[str, PreparedSound] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check the texts, and read the sounds.

        Raises:
            OSError: The file of a sound cannot be read.
            TypeError: `fillers` is not a tuple of texts, another field is not a text, or a sound is
                neither a path nor bytes.
            ValueError: A sound belongs to no text, is no WAV file of 16-bit mono samples, or is
                empty or too long.
        """
        if not isinstance(self.fillers, tuple):
            raise TypeError(f"Fillers(fillers=) is a tuple of texts, not {self.fillers!r}")
        for text in (*self.fillers, self.apology, self.in_background):
            if not isinstance(text, str):
                raise TypeError(f"Fillers() takes texts, not {text!r}")
        for text in self.sounds:
            if text not in self.texts:
                raise ValueError(f"Fillers(sounds=) has a sound for {text!r}, none of its texts")
        object.__setattr__(self, "_read", read_sounds(self.sounds))

    @classmethod
    def of(cls, tag: str) -> Fillers:
        """Return the fillers of a language.

        Args:
            tag: The language's tag, such as ``"de"``.

        Raises:
            ValueError: There are no texts in the language.
        """
        known = with_some("fillers")
        if tag not in known:
            raise ValueError(f"Fillers.of() knows {', '.join(known)}, not {tag!r}")
        texts = language(tag)
        return cls(fillers=texts.fillers, apology=texts.apology, in_background=texts.in_background)

    @property
    def own_sounds(self) -> Mapping[str, PreparedSound]:
        """The sounds of the app, by text."""
        return self._read

    @property
    def texts(self) -> tuple[str, ...]:
        """All texts."""
        texts = (*self.fillers, self.apology, self.in_background)
        return tuple(text for text in dict.fromkeys(texts) if text.strip())


DEFAULT_FILLERS = Fillers()


class SpokenFillers:
    """The fillers of one speech stack, with the sounds prepared for them; shared by all calls."""

    def __init__(
        self,
        fillers: Fillers,
        voice: TextToSpeech | StreamingTTS | None = None,
        spoken_form: NewSpokenForm | None = None,
    ) -> None:
        """Keep the texts; nothing is synthesised yet.

        Args:
            fillers: The texts.
            voice: Says them; ``None`` if the stack has no voice.
            spoken_form: Makes what the voice says of a text; ``None`` means the voice's own, or
                ``PlainWords``.
        """
        self.fillers = fillers
        self._voice = voice
        self._new_form = spoken_form_for(voice, spoken_form)
        self._sounds = dict(fillers.own_sounds)
        self._is_preparing = False

    @property
    def is_ready(self) -> bool:
        """Whether all texts are synthesised or being synthesised, or there is no voice."""
        if self._voice is None or self._is_preparing:
            return True
        return all(text in self._sounds for text in self.fillers.texts)

    def sound_of(self, text: str) -> PreparedSound | None:
        """Return the sound of a text that `notice_for` has returned; ``None`` for other texts.

        Args:
            text: The whole text.
        """
        return self._sounds.get(text) or sound_without_voice(text)

    def notice_for(self, text: str, *, fails: bool = False) -> str:
        """Return what the caller hears for a text: itself, or the name of a tone.

        Args:
            text: One of the texts; an empty one is not said.
            fails: Whether it tells that something has failed.
        """
        if not text.strip() or self.sound_of(text) is not None:
            return text
        return FALLING_TONE if fails else TONE

    async def prepare(self) -> None:
        """Synthesise the texts that are not ready; do nothing without a voice.

        A failure of the voice is logged; the next call tries again.  Cancelling this is safe.
        """
        voice = self._voice
        if voice is None:
            return
        self._is_preparing = True
        try:
            for text in self.fillers.texts:
                if text not in self._sounds:
                    with trio.fail_after(PREPARE_S), CONTAINED:
                        said = whole_text(text, self._new_form())
                        words, pieces = WrittenWords(said), await _said_by(voice, said.spoken)
                        timed = [SpeechPiece(one.pcm, words.times(one.words)) for one in pieces]
                        self._sounds[text] = PreparedSound(tuple(timed), voice.sample_rate_hz)
        except Exception as error:  # noqa: BLE001  # user code; calls work without its sounds
            log.warning("fillers_not_ready", error=type(error).__name__)
        finally:
            self._is_preparing = False


class SilenceFiller:
    """Says the fillers in one call."""

    def __init__(
        self,
        bridge: Bridge,
        spoken: SpokenFillers,
        say_waiting: Callable[[], bool],
        wanted: Callable[[], bool] = lambda: True,
    ) -> None:
        """Declare the route.

        Args:
            bridge: The voice's bridge.
            spoken: The fillers of the speech stack.
            say_waiting: Says the words of the answer that wait for the rest of their clause;
                returns whether there were any.
            wanted: Returns whether the caller hears an agent at all.
        """
        self._bridge = bridge
        self._wanted = wanted
        self._spoken = spoken
        self._say_waiting = say_waiting
        self._said = 0  # how many fillers during this wait
        self._own: deque[AnswerHandle] = deque(maxlen=_REMEMBERED)
        self._in_turn: AnswerHandle | None = None  # a filler within the caller's own turn
        self._is_deaf = False  # no words come, so asking the caller to wait would be untrue
        self._not_understood = 0  # turns without words in a row
        self._promises = False  # words, since a filler
        bridge.on(AgentResponse, where=bridge.is_audible).map(self._note_said)
        bridge.on([StateChanged, UserStartedSpeaking]).map(self._note_state)
        bridge.on([StageStalled, AnswerEnded, VoiceStarted]).map(self._follow)
        bridge.on([ListeningFailed, ListeningResumed]).map(self._note_ear)
        bridge.on([TranscriptionFailed, UserTranscriptionReceived]).map(self._note_words)
        if not spoken.is_ready:
            bridge.call.nursery.start_soon(spoken.prepare, name="fillers")

    def _follow(self, message: Message) -> None:
        if not self._wanted():
            return
        match message.event:
            case StageStalled() as stalled:
                self._fill(stalled)
            case AnswerEnded() as ended if not self._is_own(ended.answer):
                if ended.outcome == "failed" or ended.unanswered:
                    if self._bridge.call.has_floor(ended.agent):
                        self._apologise()
                elif ended.outcome in _CUT:
                    self._promises = False
            case VoiceStarted() if self._in_turn is not None:
                # The caller continues the same turn, which is not a barge-in.
                in_turn, self._in_turn = self._in_turn, None
                in_turn.interrupt()

    def _is_own(self, answer: int) -> bool:
        return any(said.number == answer for said in self._own)

    def _note_said(self, message: Message) -> None:
        if message.event.content and not self._bridge.is_notice(message):
            self._promises = False

    def _note_state(self, message: Message) -> None:
        if isinstance(message.event, UserStartedSpeaking):
            self._promises = False
        elif self._promises and message.event.state == "idle":
            self._bridge.call_at(message.at_s + SETTLED_S, self._keep_promise)

    def _keep_promise(self) -> None:
        if self._promises and self._bridge.call.current_state == "idle":
            log.warning("filler_followed_by_nothing")
            self._apologise()

    def _apologise(self) -> None:
        self._promises = False
        self._say(self._spoken.fillers.apology, fails=True)

    def _note_ear(self, message: Message) -> None:
        self._is_deaf = isinstance(message.event, ListeningFailed)
        if self._is_deaf and self._wanted():
            self._apologise()

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
            self._promises = said is not None
        elif stalled.stage == "tool" and self._bridge.move_answer_to_background():
            self._promises = False  # of a job, which tells its result
            self._say(fillers.in_background)
        elif stalled.answer:
            # Without an answer the ears are late, and turn taking gives up the turn itself.
            log.error("answer_given_up", stage=stalled.stage, answer=stalled.answer)
            self._bridge.give_up_answer(f"{stalled.stage} stalled")

    def _say(self, text: str, *, fails: bool = False) -> AnswerHandle | None:
        notice = self._spoken.notice_for(text, fails=fails)
        if not notice.strip():
            return None
        said = self._bridge.say_notice(notice)
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
