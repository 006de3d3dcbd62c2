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
        part = self._book.turn or self._book.doubt
        return part is not None and part.voice.is_on

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
        book.begin_step(now_s, view, settings)
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
                    self._part.rate(fact.complete, is_over=fact.over)
        self._look()
        return book.acts

    def _look(self) -> None:
        """Decide what can be decided; each phase may lead to the next in the same step."""
        book = self._book
        book.forget_times()
        if book.doubt is not None:
            look_at_doubt(book, book.doubt)
        if book.turn is not None:
            look_at_turn(book, book.turn)
            if book.doubt is not None:  # what goes on after a forced end
                look_at_doubt(book, book.doubt)
        if book.kept and self.is_quiet:
            self._give_kept()

    def _give_kept(self) -> None:
        """Make a turn of words that must not interrupt, once they may."""
        book = self._book
        if not book.view.is_idle and (book.kept_until_idle or blocking_rule(book)):
            return
        count, text = len(book.kept), book.take_kept()
        book.decide("start", "kept_words", book.kept_rule, {"parts": count}, text)
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
        stray_s = book.start_voice()
        if part is None:
            if is_late and book.ended_at_s >= stray_s:
                return  # what it began is decided already
            book.open_doubt(Voice(book.now_s, not is_late, book.now_s, book.now_s, True, True))
        elif part.voice.is_on and part.voice.was_started:
            part.voice.notice(book.now_s)  # it was told before
        elif is_late:
            part.voice.start_late(book.now_s)
        elif isinstance(part, UserTurn):
            self._go_on(part)
        else:
            voiced_s = part.voice.voiced_s(book.now_s)
            _, new_after_s = timeout(part.hint, voiced_s, book.settings)
            part.go_on(book.now_s, new_after_s)

    def _go_on(self, turn: UserTurn) -> None:
        if turn.told_likely:
            self._book.publish(TurnWentOn())
        pause_s = turn.go_on(self._book.now_s)
        if pause_s is not None:
            self._book.add_pause(pause_s)

    def _voice_stopped(self) -> None:
        book, part = self._book, self._part
        if part is None:
            book.stop_voice()
        elif part.voice.is_on:
            part.voice.stop(book.now_s)
        elif not part.voice.was_started:
            book.note_stray_stop()
            part.voice.stop_without_start(book.now_s)

    def _hint(self, hint: VoiceHint) -> None:
        doubt = self._book.doubt
        if doubt is not None:
            doubt.take_hint(Hint(hint.kind, hint.probability), self._book.now_s)

    # --- words ---------------------------------------------------------------------------------

    def _words(self, words: VoiceWords) -> None:
        book, part = self._book, self._part
        content = book.new_words(words, is_late=part is None)
        if part is None:
            if not content:
                return
            # Words without a voice: whoever said them was not noticed, or has stopped already.
            part = book.open_doubt(Voice(book.now_s, False, book.now_s, book.now_s))
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
        part.voice.notice_words(book.now_s)
        if not part.voice.was_heard and self._has_stray_stop:
            book.note_stray_stop()  # it was theirs, and their start may still come
