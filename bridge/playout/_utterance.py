"""Which text belongs to which audio of which utterance, what was sent, and what was played.

Rules:
1. Utterances have rising numbers; the number is the fence: a player drops all audio at or below
   the number of a `clear`.  Audio that is sent again goes by a fresh number, as its own is fenced
   off; reports by any of its numbers are understood.
2. What was heard is a prefix of what was generated, and only grows.
3. A position is what the player reported, carried on by the clock; never more than was sent.
4. Positions count from the beginning of the utterance; a player counts each number from its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..events import AgentAudio, HeardBasis, WordTiming
from ._playout_buffer import PlayoutBuffer
from ._position import REPORT_TRUSTED_S, PlayedPosition
from ._replay_buffer import KeptAudio
from ._segment import Segment
from ._word_timing import said_end

if TYPE_CHECKING:
    from bargein.routes import Run

    from ..answers._answer import Turn

_QUIET_SLACK_S = 0.002
"""By how much what is known of the end of a word is too early, at most."""


@dataclass(slots=True, eq=False)
class Utterance(PlayedPosition):
    """Speech of one turn that is cut, or heard, as one."""

    number: int
    turn: Turn
    interruptible: bool
    runs: list[Run] = field(default_factory=list)
    """The runs that gave its text; none for text that no run gave."""
    held: list[Run] = field(default_factory=list)
    """The runs that it keeps interruptible: those, and what they descend from."""
    generated: str = ""
    segments: list[Segment] = field(default_factory=list)
    audio_ms: float = 0.0
    """Audio that was synthesised so far."""
    waiting: PlayoutBuffer = field(default_factory=PlayoutBuffer)
    """Audio that the transport has not got yet."""
    waits_since_s: float = 0.0
    """Since when it waits for its voice, if it does."""
    text_at_s: float = 0.0
    """When its last text came."""
    owed_clauses: int | None = None
    """How many clauses of it its voice was asked for and has not given; None if that is unknown."""
    heard_chars: int = 0
    text_complete: bool = False
    audio_complete: bool = False
    queued_told: bool = False
    finished: bool = False
    """Heard to its end, or cut; nothing of it will change but the count of heard words."""
    rest_left_out: bool = False
    """Whether what was not heard of it is no part of what its turn says: nobody waits for it."""
    settled: bool = False
    """Whether the heard text is final."""
    done_reported: bool = False
    basis: HeardBasis = "clock"
    _quiet_until_ms: float = 0.0
    """Before this position no further word is heard, as long as no more is known than this:"""
    _quiet_for: tuple[int, bool, bool] = (0, False, False)
    _says_text: bool = False
    """Whether its audio came with words of the text it says."""
    has_word_times: bool = False
    """Whether its voice has told when words are said."""
    _whole: Segment | None = None
    play_number: int = 0
    """The number under which the player has it; 0 for its own."""
    kept: KeptAudio = field(default_factory=KeptAudio)
    """The last of what was sent."""
    played_once_ms: float = 0.0
    """How far it had been played when it was given again."""
    _starts_ms: float = 0.0
    """Where its audio begins that is sent under its `play_number`."""
    _earlier: dict[int, tuple[float, float]] | None = None
    """Under which numbers it was sent before: from where, and to where."""

    def __post_init__(self) -> None:
        self.play_number = self.play_number or self.number

    @property
    def heard(self) -> str:
        """What the caller has heard of it."""
        return self.generated[: self.heard_chars]

    @property
    def said(self) -> str:
        """What its turn says by it: all its text, unless the rest was left out."""
        if not self.rest_left_out:
            return self.generated
        return f"{self.heard.rstrip()} " if self.heard.strip() else ""

    @property
    def is_heard_whole(self) -> bool:
        """Whether all its words were heard."""
        return self.rest_left_out or self.heard_chars >= len(self.generated.rstrip())

    @property
    def run(self) -> Run | None:
        """The run that began it; ``None`` for text that no run gave."""
        return self.runs[0] if self.runs else None

    @property
    def is_stale(self) -> bool:
        """Whether a run that gave some of its text was cut."""
        for run in self.runs:  # noqa: SIM110 - asked for at each cut
            if run.is_cut or run.is_stale:
                return True
        return False

    @property
    def is_cut(self) -> bool:
        """Whether it was cut before it was heard to its end."""
        return self.cut_at_ms is not None

    # --- what becomes of it ---------------------------------------------------------------------

    def say_for(self, run: Run, keeps: Iterable[Run]) -> None:
        """Take text of a run, and keep runs interruptible until it was heard.

        Args:
            run: The run that gives text.
            keeps: The runs to keep; none where only text travels.
        """
        self.runs.append(run)
        for kept in keeps:
            kept.hold()
            self.held.append(kept)
            if not self.interruptible:
                kept.protect()

    def let_runs_go(self) -> None:
        """Keep no run interruptible any more."""
        held, self.held = self.held, []
        for kept in held:
            kept.release()
            if not self.interruptible:
                kept.unprotect()

    def add_text(self, text: str, at_s: float = 0.0) -> None:
        """Say some more, from a time on."""
        self.generated += text
        self.text_at_s = at_s

    def owe_clauses(self, more: int) -> None:
        """Record that its voice was asked for clauses, or has given some."""
        self.owed_clauses = (self.owed_clauses or 0) + more

    def complete_text(self, now_s: float) -> None:
        """Get no more text: now its voice has a deadline."""
        self.text_complete = True
        self.await_voice(now_s)

    def await_voice(self, now_s: float) -> None:
        """Count the time that its voice may take from now on."""
        self.waits_since_s = max(self.waits_since_s, now_s)

    def complete_audio(self) -> None:
        """Get no more audio."""
        self.audio_complete = True

    def start(self) -> None:
        """Record that its first sound has reached the caller."""
        self.started = True

    def cut(self, position_ms: float) -> None:
        """End it here: what was not sent is dropped."""
        self.cut_at_ms = position_ms
        self.finished = True
        self.waiting.clear()
        self.kept.clear()

    def leave_out_rest(self) -> None:
        """Take what was not heard of it out of what its turn says."""
        self.rest_left_out = True

    def settle(self, played_ms: float) -> float:
        """Fix where it was cut, for good, and return that."""
        self.settled = True
        self.cut_at_ms = max(played_ms, self.played_once_ms)
        return self.cut_at_ms

    def finish(self) -> None:
        """End it as heard to its end, and settled."""
        self.finished = self.settled = True
        self.kept.clear()

    def report_done(self) -> None:
        """Record that the player has played all that it will get, if that is all there is."""
        if self.is_all_sent:
            self.done_reported = True

    def played_before(self, position_ms: float) -> None:
        """Record how far it had been played before it was given again."""
        self.played_once_ms = max(self.played_once_ms, position_ms)

    def mark_queued(self) -> None:
        """Record that it was told that the transport has all of it."""
        self.queued_told = True

    def hear_as_text(self) -> None:
        """Record that it was heard whole as it was sent: no audio travels."""
        self.basis = "text"
        self.heard_chars = len(self.generated)
        self.finished = self.settled = True

    # --- its audio ------------------------------------------------------------------------------

    def add_audio(self, audio: AgentAudio) -> bool:
        """Add a piece of synthesised audio.

        Returns:
            Whether it tells more than its sound: which words are heard when may be other than was
            foreseen.
        """
        duration_ms = len(audio.pcm) / 2 / audio.sample_rate_hz * 1000
        tells_more = bool(audio.text or audio.words or audio.last or not self.segments)
        if tells_more:
            self._get_to_know(audio)
        self.segments[-1].complete = audio.last
        self.audio_ms += duration_ms
        return tells_more

    def _get_to_know(self, audio: AgentAudio) -> None:
        """Record what a piece says besides its sound."""
        self._quiet_until_ms = 0.0
        self._measure_last()
        if audio.text or not self.segments:
            self.segments.append(Segment(self._as_generated(audio.text), self.audio_ms))
            self._says_text = self._says_text or bool(audio.text)
        if audio.words:
            self.has_word_times = True
            segment = self.segments[-1]
            before_s = segment.duration_ms / 1000
            segment.words += tuple(
                WordTiming(word.text.strip(), before_s + word.start_s, before_s + word.end_s)
                for word in audio.words
            )

    def _as_generated(self, said: str) -> str:
        """Return what a piece says, with the spaces that it has in the utterance's text."""
        begin = sum(len(segment.text) for segment in self.segments)
        if self.generated.startswith(said, begin):
            return said
        end = said_end(said, self.generated, begin)
        return said if end is None else self.generated[begin:end]

    @property
    def says_other_text(self) -> bool:
        """Whether its newest piece says what stands nowhere in its text."""
        return self.segments[-1].text not in self.generated

    def _measure_last(self) -> None:
        """Note how long the last segment is so far; that matters less often than audio comes."""
        if self.segments:
            last = self.segments[-1]
            last.duration_ms = self.audio_ms - last.start_ms

    def again_from_ms(self, position_ms: float, chars: int | None = None) -> float:
        """Return where its audio begins that is given again: with the last heard word.

        Args:
            position_ms: How much was played.
            chars: How many characters are said by there; ``None`` has them counted.

        Returns:
            At most `position_ms`; that itself if nothing is left to be heard.
        """
        chars = self._chars_at(position_ms) if chars is None else chars
        heard = self.generated[:chars].rstrip()
        if self.text_complete and len(heard) == len(self.generated.rstrip()):
            return position_ms
        before = 0
        for segment in self._texts() if heard else ():
            end = len(heard) - before
            if end <= len(segment.text):
                inside_s = (position_ms - segment.start_ms) / 1000
                start_ms = segment.start_ms + segment.word_start_s(end, inside_s) * 1000
                return min(start_ms, position_ms)
            before += len(segment.text)
        return 0.0

    def forget_words_before(self, position_ms: float) -> None:
        """Forget when words were said of pieces that are not given again: an answer may be long.

        Args:
            position_ms: Where the audio begins that may be given again.
        """
        past, chars = 0, 0
        for segment in self.segments[:-1]:
            is_past = segment.complete and segment.start_ms + segment.duration_ms <= position_ms
            if not is_past or not self.generated.startswith(segment.text, chars):
                break
            past, chars = past + 1, chars + len(segment.text)
        if past > 1:
            self.segments[:past] = [Segment.joined(self.segments[:past])]

    def give_again(self, play_number: int, from_ms: float, played_ms: float, now_s: float) -> None:
        """Record that everything sent from a position on is sent again.

        Args:
            play_number: The number under which the player gets it.
            from_ms: The position; at most what was sent.
            played_ms: How much of it was played before.
            now_s: The time.
        """
        if self._earlier is None:
            self._earlier = {}
        self._earlier[self.play_number] = (self._starts_ms, self.sent_ms)
        self.play_number = play_number
        self.played_once_ms = max(self.played_once_ms, played_ms)
        self.sent_ms = self._starts_ms = from_ms
        self.queued_told = self.done_reported = False
        self._anchor_s, self._anchor_ms = (now_s if self.started else None), from_ms
        self._stalled = True
        self._reported_s = now_s if self.is_reported and self.started else None
        self._reported_ms = from_ms

    def went_by(self, play_number: int) -> bool:
        """Whether the player was given some of it under a number."""
        if play_number == self.play_number:
            return self.sent_ms > self._starts_ms
        return self._earlier is not None and play_number in self._earlier

    def place_of(self, play_number: int, played_ms: float) -> float:
        """Return the position in it that a player means.

        Args:
            play_number: A number that it went by.
            played_ms: What was played under that number.
        """
        if self._earlier is None or play_number == self.play_number:
            return self._starts_ms + played_ms
        from_ms, to_ms = self._earlier[play_number]
        return min(from_ms + played_ms, to_ms)

    @property
    def is_all_sent(self) -> bool:
        """Whether its audio is complete and was handed to the transport."""
        return self.audio_complete and self.sent_ms >= self.audio_ms - 0.5

    def hear(self, played_ms: float) -> str:
        """Bring up to date how much was played, and return the words newly heard."""
        if played_ms < self._quiet_until_ms and self._quiet_for == self._known:
            return ""
        before = self.heard_chars
        chars, self._quiet_until_ms = self._reach(played_ms)
        self._quiet_for = self._known
        new = self.generated[before:chars]
        at_end = self.text_complete and chars == len(self.generated)
        if chars <= before or not (new.strip() or at_end):
            return ""  # white space is heard with the word after it
        self.heard_chars = chars
        self.basis = self._best_basis()
        return new

    @property
    def _known(self) -> tuple[int, bool, bool]:
        """What may be known later, and changes which words are heard at a position."""
        return len(self.generated), self.text_complete, self.audio_complete

    def quiet_until_s(self) -> float:
        """Return until when no further word of it is heard, if nothing more gets known.

        Returns:
            A time of the clock; one that is past where that is not known.
        """
        if self._anchor_s is None or self._stalled or self._quiet_for != self._known:
            return 0.0
        until_s = self._anchor_s + (self._quiet_until_ms - self._anchor_ms) / 1000 + _QUIET_SLACK_S
        if self._reported_s is not None:
            return max(until_s, self._reported_s + REPORT_TRUSTED_S)
        return until_s

    def chars_given(self) -> int:
        """Return how much of its text the player has, to the word."""
        return self._chars_at(self.sent_ms)

    def _chars_at(self, played_ms: float) -> int:
        """Return how many characters are said by a position."""
        return self._reach(played_ms)[0]

    def _reach(self, played_ms: float) -> tuple[int, float]:
        """Return how many characters are said by a position, and where the next word may end.

        That is where no word ends before, if nothing more gets known; 0 if it cannot be foreseen.
        """
        chars, next_word_ms = 0, 0.0
        for segment in self._texts():
            if not self.generated.startswith(segment.text, chars):
                break  # a piece was never synthesised; what follows is no prefix of the text
            inside_s = (played_ms - segment.start_ms) / 1000
            says_nothing = segment.complete and not segment.duration_ms
            if inside_s <= 0 and not (says_nothing and 0 < segment.start_ms <= played_ms):
                break
            whole = segment.complete and inside_s >= segment.duration_ms / 1000 - 0.001
            if not whole:
                heard = segment.heard_length(inside_s, segment.span_s(inside_s))
                chars += heard
                next_word_ms = segment.start_ms + 1000 * segment.quiet_until_s(inside_s, heard)
                break
            chars += len(segment.text)
        return min(chars, len(self.generated)), next_word_ms

    def _texts(self) -> list[Segment]:
        if self._says_text:
            self._measure_last()
            return self.segments
        # The audio came without words: it says all that is to be said.
        whole = self._whole
        if whole is None or whole.text != self.generated:
            whole = self._whole = Segment(self.generated, 0.0)
        whole.duration_ms, whole.complete = self.audio_ms, self.audio_complete
        return [whole]

    def _best_basis(self) -> HeardBasis:
        if self.has_word_times:
            return "words"
        return "reported" if self.is_reported else "clock"
