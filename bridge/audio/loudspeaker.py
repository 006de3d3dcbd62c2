"""A simulated loudspeaker: computes what is heard, and when, to the sample.

It plays nothing.  Each piece of audio gets its start time when it arrives; everything else (how far
an utterance was played, what a cut leaves) is computed on request from the time.  Its own clock
stands still while it is held; it reports times of trio's clock.  How much audio it gathers before a
sound, the page decides the same in ``jitter-buffer.js``.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import final

from .fades import Fade, fades_of
from .playback import Fence, PlaybackKind

POSITION_EVERY_S = 0.25
"""Seconds between two reports of the position; the server trusts a report for as long.  The player
reports at once what cannot be foreseen: a start, an end, a gap, a hold, a release, a cut.  A longer
time would save little and cost more: a stalled line is noticed after a second without reports, a
broken one repeats what was heard since the last report, and the server keeps the audio since
then."""

MOST_S = 0.3
"""The longest buffer, in seconds: the server sends at most 0.4 s ahead of what is heard."""

UNDERRUNS = 2
WITHIN_S = 10.0
"""This many underruns within so many seconds let the buffer grow: one alone is chance."""

LONGEST_GAP_S = 1.0
"""A longer gap within an utterance, in seconds, is a voice that thinks: no fault of the line."""

CALM_S = 30.0
"""After so many seconds without an underrun the buffer shrinks by half."""

_CLOSE_S = 1e-9
"""The tolerance for rounding errors in times, in seconds; nobody can hear it."""


@final
class JitterBuffer:
    """How many seconds of audio are gathered before each start, and again after an underrun."""

    def __init__(self, least_s: float) -> None:
        """Start with the shortest buffer.

        Args:
            least_s: Its length, in seconds; one that is longer than ``MOST_S`` never grows.
        """
        self._least_s = self._length_s = least_s
        self._underruns_s: list[float] = []
        self._calm_since_s = 0.0

    def continues(self, dry_s: float, now_s: float) -> None:
        """Record that audio of an utterance goes on.

        Args:
            dry_s: When it had run out.
        """
        if now_s - dry_s > LONGEST_GAP_S:
            return
        self._underruns_s = [at_s for at_s in self._underruns_s if at_s > now_s - WITHIN_S]
        self._underruns_s.append(now_s)
        self._calm_since_s = now_s
        if len(self._underruns_s) >= UNDERRUNS:
            self._length_s = max(MOST_S, self._least_s)

    def length_s(self, now_s: float) -> float:
        """Return how many seconds of audio are gathered now."""
        while self._length_s > self._least_s and now_s - self._calm_since_s > CALM_S:
            self._length_s = max(self._least_s, self._length_s / 2)
            self._calm_since_s += CALM_S
        return self._length_s


@dataclass(slots=True)
class HeardAudio:
    """Audio that left the loudspeaker without a gap."""

    at_s: float
    """When its first sample was played, in seconds of trio's clock."""
    utterance: int
    pcm: bytearray
    """PCM16 little-endian mono at the loudspeaker's rate."""


@dataclass(frozen=True, slots=True)
class LoudspeakerReport:
    """How far an utterance was played."""

    kind: PlaybackKind
    utterance: int
    played_ms: float
    queued_ms: float


@final
class Loudspeaker:
    """Plays audio by utterance, with a small buffer before each start.

    Attributes:
        underruns: How often it ran out of audio within an utterance.
        dropped_bytes: Audio that arrived at or below a fence, or was cut by one.
        kept_bytes: How much audio it keeps, heard and not.
    """

    def __init__(
        self, sample_rate_hz: int = 24_000, buffer_s: float = 0.06, keep_s: float = math.inf
    ) -> None:
        """Start silent.

        Args:
            buffer_s: Seconds between the first piece of an utterance and its first sound, and
                again after an underrun; it grows to 0.3 s on a line whose audio comes late.
            keep_s: How many seconds of audio to keep; what was heard before is forgotten, but
                an utterance that is being played stays whole.
        """
        self.underruns = 0
        self.dropped_bytes = 0
        self._rate = sample_rate_hz
        self._buffer = JitterBuffer(buffer_s)
        self._keep_bytes = keep_s * sample_rate_hz * 2
        self.kept_bytes = 0
        self._heard: deque[HeardAudio] = deque()
        self._free_at_s = -math.inf
        self._fence = Fence()
        self._complete: set[int] = set()
        self._unpublished: deque[HeardAudio] = deque()
        self._current: HeardAudio | None = None
        self._starved: int | None = None
        self._next_position_s = math.inf
        self._pauses: deque[tuple[float, float]] = deque()
        self._held_at_s: float | None = None
        self._behind_s = 0.0

    def feed(self, utterance: int, pcm: bytes, now_s: float) -> None:
        """Add audio, to be played after all earlier audio.

        Args:
            utterance: Its utterance; audio at or below the fence is dropped.
            pcm: PCM16 little-endian mono, any even length.
        """
        if self._fence.drops(utterance):
            self.dropped_bytes += len(pcm)
            return
        if not pcm:
            return
        now_s = self._own_s(now_s)
        last = self._heard[-1] if self._heard else None
        start_s = self._free_at_s
        if start_s <= now_s:
            if last is not None and last.utterance == utterance:
                self._buffer.continues(start_s, now_s)
            start_s = now_s + self._buffer.length_s(now_s)
            last = None
        if last is None or last.utterance != utterance:
            last = HeardAudio(start_s, utterance, bytearray())
            self._heard.append(last)
            self._unpublished.append(last)
        last.pcm += pcm
        self._free_at_s = self._end_of(last)
        self.kept_bytes += len(pcm)
        self._forget_oldest(now_s)

    def _forget_oldest(self, now_s: float) -> None:
        """Forget what is over the limit, but nothing of an utterance that is still reported."""
        if self.kept_bytes <= self._keep_bytes:
            return
        reported = {self._heard[-1].utterance, self._starved}
        reported |= {span.utterance for span in (*self._unpublished, self._current) if span}
        while self.kept_bytes > self._keep_bytes:
            oldest = self._heard[0]
            if oldest.utterance in reported or self._end_of(oldest) > now_s:
                return
            self.kept_bytes -= len(self._heard.popleft().pcm)
            while len(self._pauses) > 1 and self._pauses[1][0] <= self._heard[0].at_s:
                self._pauses.popleft()

    def end(self, utterance: int) -> None:
        """Record that an utterance gets no more audio."""
        self._complete.add(utterance)

    def clear(self, fence: int, now_s: float) -> LoudspeakerReport:
        """Stop at once: drop all audio of utterances up to and including ``fence``.

        Returns:
            What was played of the utterance that was cut, or of the fence's if none was.
        """
        told_s, now_s = now_s, self._own_s(now_s)
        self._fence.raise_to(fence)
        cut = self._speaking_below(fence)
        queued = self._queued_bytes(now_s, fence)
        for span in self._heard:
            if span.utterance <= fence:
                del span.pcm[self._played_bytes(span, now_s) :]
        self._heard = deque(span for span in self._heard if span.pcm)
        self.kept_bytes = sum(len(span.pcm) for span in self._heard)
        self._unpublished = deque(span for span in self._unpublished if span.utterance > fence)
        self.dropped_bytes += queued
        self._free_at_s = self._end_of(self._heard[-1]) if self._heard else -math.inf
        return LoudspeakerReport("flushed", cut, self.played_ms(cut, told_s), self._ms(queued))

    def hold(self, on: bool, now_s: float) -> LoudspeakerReport | None:
        """Stop at the sample being heard without losing anything, or continue there.

        Returns:
            Where it stopped; ``None`` if nothing was being heard, or if it continues.
        """
        if on == (self._held_at_s is not None):
            return None
        own_s = self._own_s(now_s)
        if not on:
            assert self._held_at_s is not None  # because it is held
            self._behind_s = now_s - own_s
            self._pauses.append((own_s, self._behind_s))
            self._held_at_s = None
            self._next_position_s = own_s  # the server does not know when the release arrived
            return None
        heard = next(
            (span for span in self._heard if span.at_s <= own_s < self._end_of(span)), None
        )
        if heard is None:
            self._held_at_s = own_s
            return None
        # It can stop only at a sample.
        played = self._played_bytes(heard, own_s)
        self._held_at_s = heard.at_s + played / 2 / self._rate
        queued = self._queued_bytes(own_s, heard.utterance)
        played_ms = self.played_ms(heard.utterance, now_s)
        return LoudspeakerReport("position", heard.utterance, played_ms, self._ms(queued))

    def _speaking_below(self, fence: int) -> int:
        """Return the utterance that a fence cuts, and forget that it was being played."""
        speaking = self._starved if self._current is None else self._current.utterance
        if speaking is None or speaking > fence:
            return fence
        self._current = self._starved = None
        return speaking

    def heard(self, now_s: float) -> list[HeardAudio]:
        """Return what was heard until now, in order; copies that do not change."""
        now_s = self._own_s(now_s)
        spans = []
        for span in self._heard:
            length = self._played_bytes(span, now_s)
            if length:
                spans += self._between_holds(
                    HeardAudio(span.at_s, span.utterance, span.pcm[:length])
                )
        return spans

    def fades(self, now_s: float) -> list[Fade]:
        """Return the fades added to ``heard`` until now, so that its edges do not click."""
        latest_s = now_s - 1 / self._rate  # the stretch being heard has no end yet
        return [fade for fade in fades_of(self.heard(now_s), self._rate) if fade.at_s <= latest_s]

    def played_ms(self, utterance: int, now_s: float) -> float:
        """Return how much of an utterance was heard until now, in milliseconds."""
        now_s = self._own_s(now_s)
        spans = (span for span in self._heard if span.utterance == utterance)
        return self._ms(sum(self._played_bytes(span, now_s) for span in spans))

    # --- reports --------------------------------------------------------------------------------

    def reports(self, now_s: float) -> list[LoudspeakerReport]:
        """Return the reports that are due, in order; each is returned once."""
        own_s = self._own_s(now_s)
        due: list[LoudspeakerReport] = []
        while (step := self._next_step(own_s)) is not None and step[0] <= own_s + _CLOSE_S:
            due.append(self._report(*step, now_s))
        return due

    def next_report_s(self, now_s: float) -> float:
        """Return when the next report is due if nothing else comes, or infinity."""
        own_s = self._own_s(now_s)
        step = self._next_step(own_s)
        if step is None or (self._held_at_s is not None and step[0] > own_s + _CLOSE_S):
            return math.inf
        return step[0] + self._behind_s if self._held_at_s is None else now_s

    def _next_step(self, now_s: float) -> tuple[float, PlaybackKind, int] | None:
        if self._current is None:
            return self._step_between(now_s)
        utterance = self._current.utterance
        end_s = self._end_of(self._current)
        if self._next_position_s < end_s:
            return self._next_position_s, "position", utterance
        goes_on = bool(self._unpublished) and self._unpublished[0].utterance == utterance
        over = utterance in self._complete and not goes_on
        return end_s, "done" if over else "underrun", utterance

    def _step_between(self, now_s: float) -> tuple[float, PlaybackKind, int] | None:
        coming = self._unpublished[0] if self._unpublished else None
        if self._starved is not None:
            if coming is not None and coming.utterance == self._starved:
                return coming.at_s, "position", coming.utterance
            if self._starved in self._complete:
                return now_s, "done", self._starved
        return None if coming is None else (coming.at_s, "start", coming.utterance)

    def _report(
        self, at_s: float, kind: PlaybackKind, utterance: int, now_s: float
    ) -> LoudspeakerReport:
        if kind in ("done", "underrun"):
            self.underruns += kind == "underrun"
            self._starved = utterance if kind == "underrun" else None
            self._current = None
        else:
            if self._current is None:
                self._current = self._unpublished.popleft()
                self._starved = None
            self._next_position_s = at_s + POSITION_EVERY_S
        queued = self._queued_bytes(self._own_s(now_s), utterance)
        return LoudspeakerReport(
            kind, utterance, self.played_ms(utterance, now_s), self._ms(queued)
        )

    # --- arithmetic -----------------------------------------------------------------------------

    def _own_s(self, now_s: float) -> float:
        """Return a time on the player's own clock, which stood still while it was held."""
        return now_s - self._behind_s if self._held_at_s is None else self._held_at_s

    def _between_holds(self, span: HeardAudio) -> list[HeardAudio]:
        """Return a span split at the holds, with times on trio's clock."""
        parts, behind_s = [], 0.0
        for held_at_s, then_behind_s in self._pauses:
            before = self._played_bytes(span, held_at_s)
            if before:
                part = HeardAudio(span.at_s + behind_s, span.utterance, span.pcm[:before])
                parts.append(part)
                span = HeardAudio(held_at_s, span.utterance, span.pcm[before:])
            behind_s = then_behind_s
        if span.pcm:
            parts.append(HeardAudio(span.at_s + behind_s, span.utterance, span.pcm))
        return parts

    def _end_of(self, span: HeardAudio) -> float:
        return span.at_s + len(span.pcm) / 2 / self._rate

    def _played_bytes(self, span: HeardAudio, now_s: float) -> int:
        # Add a thousandth of a sample: rounding of the clock must not lose one.
        samples = math.floor((now_s - span.at_s) * self._rate + 0.001)
        return min(max(samples, 0) * 2, len(span.pcm))

    def _queued_bytes(self, now_s: float, fence: int) -> int:
        spans = (span for span in self._heard if span.utterance <= fence)
        return sum(len(span.pcm) - self._played_bytes(span, now_s) for span in spans)

    def _ms(self, length: int) -> float:
        return round(length / 2 / self._rate * 1000, 3)
