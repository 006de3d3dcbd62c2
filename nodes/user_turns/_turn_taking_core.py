"""Decides about turns: facts and times in, decisions out.  It does nothing itself, and never waits.

A sound of the caller's is first a *doubt*: it may be a turn, an acknowledgement, a cough, an echo.
While the agent is idle a doubt becomes a turn at once; while the agent speaks its speech is held
until the doubt is decided.  So there are three phases::

    quiet --voice, words--> doubt --it is a turn--> turn --it is over--> quiet
                              |
                              +--it was nothing, or is kept for later--> quiet

Rules:
1. At most one doubt or turn at a time; each ends by exactly one decision.
2. Everything has an end: whatever stays away (a stop, words, audio) is waited for in bounded time.
3. Without words there is no turn to answer: a sound that began one is taken back by
   ``TranscriptionFailed``.
4. Words are never dropped, but for acknowledgements, echoes, and what a recogniser that is unsure
   makes of a noise: what may not interrupt is kept, and is a turn of its own as soon as it may.
5. Every time that matters is named by ``look_at_s``.
"""

from __future__ import annotations

import math

from bargein.bridge.events import (
    TurnScored,
    TurnWentOn,
    UserStartedSpeaking,
    UserStoppedSpeaking,
    UserTranscriptionReceived,
    VoiceHint,
    VoiceStarted,
    VoiceStopped,
    VoiceWords,
)

from ._agent_view import AgentView
from ._barge_in import timeout
from ._barge_in_decision import blocking_rule, look_at_doubt
from ._settings import TurnSettings
from ._sound import CLOSE_S, Hint
from ._transcript import is_old_news, rest_of
from ._turn_end import look_at_turn
from ._turn_taking_state import Book
from ._types import Act, Doubt, Look, MicrophoneLost, UserTurn, Voice

Input = VoiceStarted | VoiceStopped | VoiceHint | VoiceWords | TurnScored | Look | MicrophoneLost


class TurnCore:
    """The decisions of one call."""

    def __init__(self) -> None:
        self._book = Book()

    @property
    def look_at_s(self) -> float:
        """When to call ``take(Look(), ...)`` at the latest; infinite for never."""
        return self._book.look_at_s

    @property
    def is_voiced(self) -> bool:
        """Whether a voice goes on that some day has to stop."""
        voice = self._voice
        return voice is not None and voice.is_on

    @property
    def is_quiet(self) -> bool:
        """Whether nothing is heard and nothing is undecided."""
        return self._book.doubt is None and self._book.turn is None

    def take(self, fact: Input, now_s: float, view: AgentView, settings: TurnSettings) -> list[Act]:
        """Take in a fact, and return what is to be done, in order.

        Args:
            fact: What was heard; ``Look()`` when only time has passed or the agent has changed.
            now_s: When, on a clock that never goes back.
            view: The agent at that moment.
            settings: Those of that moment.
        """
        book = self._book
        book.now_s, book.view, book.settings, book.acts = now_s, view, settings, []
        self._follow_agent()
        match fact:
            case VoiceStarted():
                self._voice_started()
            case VoiceStopped():
                self._voice_stopped()
            case MicrophoneLost():
                if self._voice is not None and self._voice.is_on:
                    self._voice.lose(now_s)
            case VoiceWords():
                self._words(fact)
            case VoiceHint():
                self._hint(fact)
            case TurnScored():
                if self._part is not None:
                    self._part.score = fact.complete
        self._look()
        return book.acts

    def _look(self) -> None:
        """Decide what can be decided; each phase may lead to the next in the same step."""
        book = self._book
        book.look_at_s = math.inf
        if book.doubt is not None:
            look_at_doubt(book, book.doubt)
        if book.turn is not None:
            look_at_turn(book, book.turn)
            if book.doubt is not None:  # what goes on after a forced end
                look_at_doubt(book, book.doubt)
        if self.is_quiet and book.kept:
            self._give_kept()

    def _follow_agent(self) -> None:
        book = self._book
        if not book.view.is_idle:
            book.silent_at_s = math.inf
        elif math.isinf(book.silent_at_s):
            book.silent_at_s = book.now_s

    def _give_kept(self) -> None:
        """Make a turn of words that must not interrupt, once they may."""
        book = self._book
        if not book.view.is_idle and (book.kept_until_idle or blocking_rule(book)):
            return
        text, count = " ".join(book.kept), len(book.kept)
        book.decide("start", "kept_words", book.kept_rule, {"parts": count}, text)
        book.kept, book.kept_until_idle = [], False
        book.publish(UserStartedSpeaking())
        book.publish(UserTranscriptionReceived(content=text))
        book.publish(UserStoppedSpeaking())

    # --- the voice -----------------------------------------------------------------------------

    @property
    def _part(self) -> Doubt | UserTurn | None:
        return self._book.turn or self._book.doubt

    @property
    def _voice(self) -> Voice | None:
        return None if self._part is None else self._part.voice

    @property
    def _has_stray_stop(self) -> bool:
        """Whether a stop came just now whose start may still come."""
        book = self._book
        return book.now_s - book.stray_stop_s <= book.settings.late_event_s + CLOSE_S

    def _voice_started(self) -> None:
        book, part = self._book, self._part
        is_late = self._has_stray_stop
        stray_s, book.stray_stop_s = book.stray_stop_s, -math.inf
        book.unfinal, book.owes_stop = {}, False
        if part is None:
            if is_late and book.ended_at_s >= stray_s:
                return  # what it began is decided already
            voice = Voice(book.now_s, not is_late, book.now_s, book.now_s, True, True)
            book.doubt = Doubt(voice)
        elif part.voice.is_on and part.voice.was_started:
            part.voice.sign_s = book.now_s  # it was told before
        elif is_late:
            part.voice.was_heard = part.voice.was_started = True
            part.voice.stop(book.now_s)
        elif isinstance(part, UserTurn):
            self._go_on(part)
        else:
            self._sound_again(part)

    def _go_on(self, turn: UserTurn) -> None:
        book = self._book
        if turn.voice.was_started:
            book.pauses_s.append(book.now_s - turn.voice.since_s)
            turn.pauses_s.append(book.now_s - turn.voice.since_s)
            turn.transcript.sound_began()
        if turn.told_likely:
            turn.told_likely = ""
            book.publish(TurnWentOn())
        turn.score = None
        turn.voice.start(book.now_s)

    def _sound_again(self, doubt: Doubt) -> None:
        """Go on with a sound after a break; after a long one it is a new sound to be decided."""
        book, voice = self._book, doubt.voice
        doubt.score = None
        if voice.was_started:
            doubt.transcript.sound_began()
        _, timeout_s = timeout(doubt.hint, voice.voiced_s(book.now_s), book.settings)
        if voice.silent_s(book.now_s) >= timeout_s - CLOSE_S:
            voice.began_s = book.now_s
            doubt.blocked = ""
            if doubt.hint is None or doubt.hint.kind != "acknowledgement":
                doubt.hint, doubt.let_go = None, ""  # else it goes on: "uh-huh", "okay, right"
        elif doubt.let_go == "silence":
            doubt.let_go = ""  # it was none
        voice.start(book.now_s)

    def _voice_stopped(self) -> None:
        book, part = self._book, self._part
        if part is None:
            if not book.owes_stop:
                book.stray_stop_s = book.now_s
            book.owes_stop = False
        elif part.voice.is_on:
            part.voice.stop(book.now_s)
        elif not part.voice.was_started:
            book.stray_stop_s = book.now_s
            part.voice.stop(book.now_s)
            part.voice.was_heard = True

    def _hint(self, hint: VoiceHint) -> None:
        doubt = self._book.doubt
        if doubt is not None:
            doubt.hint, doubt.hinted_s = Hint(hint.kind, hint.probability), self._book.now_s
            doubt.voice.sign_s = self._book.now_s
            if hint.kind == "speech" and doubt.let_go == "acknowledgement":
                doubt.let_go = ""  # what it seemed to be was another sound, or a mistake

    # --- words ---------------------------------------------------------------------------------

    def _words(self, words: VoiceWords) -> None:
        book, part = self._book, self._part
        content = self._news(words, is_late=part is None)
        if part is None:
            if not content:
                return
            # Words without a voice: whoever said them was not noticed, or has stopped already.
            part = book.doubt = Doubt(Voice(book.now_s, False, book.now_s, book.now_s))
        if words.error:
            part.transcript.fail(words.segment, words.error)
        else:
            part.transcript.put(
                words.segment,
                content,
                final=words.final,
                confidence=words.confidence,
                unhinted_confidence=words.unhinted_confidence,
            )
        part.voice.sign_s = book.now_s
        if not part.voice.was_heard:
            part.voice.since_s = book.now_s
            if self._has_stray_stop:
                book.stray_stop_s = book.now_s  # it was theirs, and their start may still come

    def _news(self, words: VoiceWords, *, is_late: bool) -> str:
        """Return what of the words was not told already, before they were final."""
        book, content = self._book, words.content.strip()
        told = book.unfinal.get(words.segment, "")
        if told:
            if words.final:
                del book.unfinal[words.segment]
            return rest_of(content, told)
        # An interim transcript that comes after its turn brings nothing new.
        is_old = is_late and not words.final and is_old_news(content, book.last_text)
        return "" if is_old else content
