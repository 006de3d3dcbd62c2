"""The simulated caller, who follows a script and listens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, final

import trio

from ..client import FRAME_S, Ended, ErrorMessage, HeardAudio
from ._caller_hearing import CallerHearing, Messages
from ._microphone import TICK_S, Microphone
from ._recording import RATE_HZ
from ._rehearsal_line import CallerInCall
from ._script import BUSY, ScriptLine

LINGER_S = 3.0
"""How many seconds after the last answer the caller waits for the agent to end the call."""

GOODBYE_S = 5.0
"""The longest time between hanging up and the end of the call, in seconds."""


class RehearsalListener(Protocol):
    """Follows a call while it lasts; every method is called from the call and must not wait."""

    def call_began(self, start_s: float, simulated: SimulatedCaller) -> None:
        """Called when the call begins; the recording starts at `start_s` of trio's clock."""

    def line(self, at_s: float, line: ScriptLine) -> None:
        """Called when the caller begins to say a line."""

    def messages(self, messages: Messages) -> None:
        """Called with the messages that arrived from the server since the last call."""

    def tick(self, at_s: float, hearing: CallerHearing) -> None:
        """Called every 20 ms."""


@dataclass(slots=True)
class SpokenLine:
    """A line that was said, and when, in seconds of trio's clock."""

    line: ScriptLine
    from_s: float
    until_s: float


@final
class SimulatedCaller:
    """The caller's side of a call that follows a script.

    Attributes:
        hearing: What the caller perceives.
        microphone: What the caller sends.
        spoken: The lines said so far.
        problems: What went wrong, in sentences for a person to read.
        left_s: When the caller hung up or found the call over, in seconds of trio's clock.
        ended_s: When the call was over, in seconds of trio's clock.
        heard: The audio heard until then; empty during the call.
    """

    def __init__(
        self, caller: CallerInCall, microphone: Microphone, listener: RehearsalListener
    ) -> None:
        self.hearing = CallerHearing(caller)
        self.spoken: list[SpokenLine] = []
        self.problems: list[str] = []
        self.ended_s = self.left_s = 0.0
        self.heard: list[HeardAudio] = []
        self._caller = caller
        self._listener = listener
        self.microphone = microphone

    async def run(self, script: Sequence[tuple[ScriptLine, bytes]], answer_s: float) -> None:
        """Hold the conversation until the call is over.

        Args:
            script: The lines, each with its speech (PCM16 little-endian mono, 16 kHz).
            answer_s: Seconds that the agent has to answer the last line and to end the call.
        """
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._watch)
            for number, (line, pcm) in enumerate(script, 1):
                if not await self._say(number, line, pcm):
                    break
            else:
                await self._wait_for_end(answer_s)
            await self._leave()
            nursery.cancel_scope.cancel(reason="the call is over")

    def hear_now(self) -> list[HeardAudio]:
        """Return the audio heard so far."""
        return self._caller.heard

    async def _watch(self) -> None:
        while True:
            now_s = trio.current_time()
            self._listener.messages(self._update(now_s))
            self._listener.tick(now_s, self.hearing)
            await trio.sleep(TICK_S)

    def _update(self, now_s: float) -> Messages:
        messages = self.hearing.tick(now_s)
        for received in messages:
            if isinstance(received.message, ErrorMessage):
                error = received.message
                self.problems.append(f"the server reported {error.code}: {error.message}")
        return messages

    # --- the script -----------------------------------------------------------------------------

    async def _say(self, number: int, line: ScriptLine, pcm: bytes) -> bool:
        """Say a line when its cue is due; return whether the call can go on."""
        if not await self._wait_for_cue(number, line):
            return False
        now_s = trio.current_time()
        spoken = SpokenLine(line, now_s - FRAME_S, now_s)
        self.spoken.append(spoken)
        if not line.should_be_ignored:
            self.hearing.line_began(now_s)
        self._listener.line(now_s, line)
        await self.microphone.say(pcm, self._caller.ended)
        # Use the microphone's grid: a busy machine may have started late.
        spoken.from_s = min(spoken.from_s, self.microphone.line_sounds_at_s)
        spoken.until_s = trio.current_time()
        if not line.should_be_ignored:
            self.hearing.line_ended(spoken.until_s)
        if self._caller.ended.is_set():
            self.problems.append(f"line {number}, {line.text!r}: the call ended while it was said")
            return False
        return True

    async def _wait_for_cue(self, number: int, line: ScriptLine) -> bool:
        with trio.move_on_after(line.deadline_s):
            while not self._caller.ended.is_set():
                if line.when.is_due(self.hearing.perceive(trio.current_time())):
                    return True
                await trio.sleep(TICK_S)
        now = self.hearing.perceive(trio.current_time())
        why = f"nothing after {line.deadline_s:g} s"
        if self._caller.ended.is_set():
            why = f"the call ended ({self._caller.reason!r})"
        self.problems.append(
            f"line {number}, {line.text!r}, was never said: waited until {line.when.description}; "
            f"{why} (spoken {now.spoken_s:.1f} s, silent {now.silent_s:.1f} s, {now.state})"
        )
        return False

    async def _wait_for_end(self, answer_s: float) -> None:
        with trio.move_on_after(answer_s):
            while not self._caller.ended.is_set():
                now = self.hearing.perceive(trio.current_time())
                if now.spoken_s and now.silent_s >= LINGER_S and now.state not in BUSY:
                    return
                await trio.sleep(TICK_S)

    async def _leave(self) -> None:
        """Hang up if the agent has not, and keep the audio heard until then."""
        self.left_s = trio.current_time()
        if not self._caller.ended.is_set():
            self._caller.hang_up()
            with trio.move_on_after(GOODBYE_S):
                await self._caller.ended.wait()
        now_s = trio.current_time()
        told = [r.at_s for r in self._caller.received if isinstance(r.message, Ended)]
        self.ended_s = min([now_s, *told])
        self.heard = _heard_until(self._caller.heard, self.ended_s)
        self._listener.messages(self._update(now_s))


def _heard_until(spans: Sequence[HeardAudio], at_s: float) -> list[HeardAudio]:
    """Cut audio off at a moment, because a player falls silent when its call is over."""
    kept = []
    for span in spans:
        length = min(len(span.pcm), max(0, round((at_s - span.at_s) * RATE_HZ)) * 2)
        if length:
            kept.append(HeardAudio(span.at_s, span.utterance, span.pcm[:length]))
    return kept
