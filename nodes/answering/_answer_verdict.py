"""Decides who answers a telephone, from words, sound and time; without I/O.

Rules:
1. A tone behind which is recorded is a voicemail.
2. The first phrase that only a machine says decides: one of a voicemail, of a menu or of call
   screening.
3. An utterance without such a phrase that is over soon, or has a phrase that only a person says, is
   a person's.
4. Whoever talks for long without either is a voicemail: persons ask, and wait.
5. Whoever says nothing for a while is silent.
6. A verdict changes when more is known: silence to anything; a person to a machine by what it says;
   a guess by time to what words say; call screening to the person that it asks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from bargein.bridge.events import AnsweredBasis, WhoAnswers
from bargein.bridge.languages import LineKind, LineWords, normalized

SILENCE_S = 5.0
"""After how many seconds without a voice the line counts as silent: Twilio's
``MachineDetectionSilenceTimeout`` is 5 s by default."""

GREETING_S = 2.8
"""How long a person's first utterance lasts at most, in seconds, unless its words say more:
``MachineDetectionSpeechThreshold`` is 2.4 s by default, of voice alone; pauses in an utterance
count here."""

LONG_S = 6.0
"""After how many seconds of talk whose words are not known yet a machine talks."""

ENDED_S = 1.0
"""How long a voice without known words is silent before it counts as over, in seconds; Twilio's
``MachineDetectionSpeechEndThreshold`` is 1.2 s by default."""

CHARS_PER_S = 15.0
"""How fast people talk, in characters a second, where only their words are known."""

WAITING_WORDS = 8
"""From how many words on somebody who asks us to wait is a machine: "one moment, please" is said
by persons, too."""

_MACHINES: tuple[WhoAnswers, ...] = ("screening", "voicemail", "menu")
"""In the order in which they count if their phrases begin at the same word."""

WhoByWhat = tuple[WhoAnswers, AnsweredBasis]


@dataclass(slots=True)
class AnswerVerdict:
    """What is known of whoever answers a call.

    All times are seconds of one clock.
    """

    searches: Sequence[LineWords]
    """Of each language."""
    began_s: float
    """When the call was answered."""
    verdict: WhoByWhat | None = None
    _said: list[str] = field(default_factory=list)
    """The words of the utterance so far, those that are final."""
    _now: str = ""
    """Its interim words."""
    _voice_s: float | None = None
    """When its voice began; ``None`` before."""
    _silent_s: float | None = None
    """When its voice stopped; ``None`` while it lasts."""
    _has_spoken: bool = False

    def hear_voice(self, on: bool, now_s: float) -> WhoByWhat | None:
        """Count that a voice began, or stopped; return the verdict if it changes."""
        if on:
            self._has_spoken = True
            self._voice_s = now_s if self._voice_s is None else self._voice_s
            self._silent_s = None
        elif self._silent_s is None:
            self._silent_s = now_s
        return self.decide_by_time(now_s)

    def hear_words(self, text: str, now_s: float, *, final: bool) -> WhoByWhat | None:
        """Count words; interim ones are replaced by the next ones; return a changed verdict."""
        self._now = normalized(text)
        self._has_spoken = self._has_spoken or bool(self._now)
        if final:
            self._said.append(self._now)
            self._now = ""
        return self._settle(self._by_words())

    def end_utterance(self, now_s: float) -> WhoByWhat | None:
        """Count that the utterance is over, and its words are known; return a changed verdict."""
        said, lasted_s, told = self._all(), self._lasted_s(now_s), self._by_words()
        self._said, self._now, self._voice_s, self._silent_s = [], "", None, None
        if not said or told is not None:
            return self._settle(told)
        if self._finds("waiting", said) is not None and len(said.split()) < WAITING_WORDS:
            return self._settle(("person", "words"))
        soon = min(lasted_s, len(said) / CHARS_PER_S) <= GREETING_S
        return self._settle(("person", "words") if soon else ("voicemail", "time"))

    def hear_tone(self) -> WhoByWhat | None:
        """Count a tone behind which is recorded; return the verdict if it changes."""
        return self._settle(("voicemail", "sound"))

    def hear_carrier(self, who: WhoAnswers) -> WhoByWhat | None:
        """Count the carrier's verdict; return it if it changes ours."""
        return self._settle((who, "carrier"))

    def decide_by_time(self, now_s: float) -> WhoByWhat | None:
        """Decide by time; return the verdict if it changes."""
        if not self._has_spoken:
            return self._settle(("silence", "time")) if now_s >= self._silence_at_s else None
        if now_s >= self._long_at_s:
            return self._settle(("voicemail", "time"))
        if now_s >= self._ended_at_s:
            lasted_s = self._lasted_s(now_s)
            self._voice_s = None
            return self._settle(("person" if lasted_s <= GREETING_S else "voicemail", "time"))
        return None

    @property
    def decides_at_s(self) -> float:
        """When time may decide next; infinity for never."""
        if not self._has_spoken:
            return self._silence_at_s if self.verdict is None else math.inf
        return min(self._long_at_s, self._ended_at_s)

    # --- the rules ------------------------------------------------------------------------------

    @property
    def _silence_at_s(self) -> float:
        return self.began_s + SILENCE_S

    @property
    def _long_at_s(self) -> float:
        lasts = self._voice_s is not None and self._silent_s is None
        return cast(float, self._voice_s) + LONG_S if lasts and self.verdict is None else math.inf

    @property
    def _ended_at_s(self) -> float:
        """When a voice without words is over: where a recogniser is, its words come before."""
        waits = self._voice_s is not None and self._silent_s is not None and not self._all()
        return cast(float, self._silent_s) + ENDED_S if waits and self.verdict is None else math.inf

    def _lasted_s(self, now_s: float) -> float:
        if self._voice_s is None:
            return math.inf
        return (now_s if self._silent_s is None else self._silent_s) - self._voice_s

    def _all(self) -> str:
        return " ".join(part for part in (*self._said, self._now) if part)

    def _finds(self, kind: LineKind, said: str) -> int | None:
        places = [place for one in self.searches if (place := one.place(kind, said)) is not None]
        return min(places, default=None)

    def _by_words(self) -> WhoByWhat | None:
        said = self._all()
        places: list[tuple[int, int, WhoAnswers]] = [
            (place, rank, who)
            for rank, who in enumerate(_MACHINES)
            if (place := self._finds(cast(LineKind, who), said)) is not None
        ]
        if places:
            return min(places)[2], "words"
        if self._finds("person", said) is not None:
            return "person", "words"
        is_long = len(said.split()) >= WAITING_WORDS
        return ("menu", "words") if is_long and self._finds("waiting", said) is not None else None

    def _settle(self, found: WhoByWhat | None) -> WhoByWhat | None:
        """Return a verdict that changes what was known, or ``None``."""
        if found is None or not self._may_follow(found):
            return None
        self.verdict = found
        return found

    def _may_follow(self, found: WhoByWhat) -> bool:
        if self.verdict is None:
            return True
        (was, was_by), (who, by) = self.verdict, found
        if who == was:
            return False
        if was == "silence":
            return True
        if by == "carrier":
            return was_by == "time"
        if was_by == "time":
            return by != "time"
        if was == "person":
            return by in ("words", "sound")
        if who == "person":
            return was == "screening"
        return was != "voicemail"
