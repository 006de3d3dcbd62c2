"""What the simulated caller perceives during the call."""

from __future__ import annotations

import math
from typing import Any, final

import trio

from ..client import Cut, ReceivedMessage, Spoken, State
from ..events import CallState
from ._rehearsal_line import CallerInCall
from ._script import Perception

Messages = list[ReceivedMessage[Any]]


@final
class CallerHearing:
    """Follows one caller; ``tick()`` brings it up to date.

    Attributes:
        state: The state of the call, as the server last reported it.
        states: All reported states, each with its time in seconds of trio's clock.
        line_at_s: When the caller's last line began, in seconds of trio's clock; minus infinity
            before the first.
    """

    def __init__(self, caller: CallerInCall) -> None:
        self.state: CallState = "idle"
        self.states: list[tuple[float, CallState]] = []
        self.line_at_s = -math.inf
        self._caller = caller
        self._seen = self._arrived = 0
        self._played_ms: dict[int, float] = {}
        self._over: set[int] = set()
        self._started_s: dict[int, float] = {}
        self._quiet_since_s = trio.current_time()
        self._words: list[tuple[int, str]] = []

    def tick(self, now_s: float) -> Messages:
        """Process what has happened, and return the messages received since the last call."""
        for arrival in self._caller.received_audio[self._arrived :]:
            self._played_ms.setdefault(arrival.utterance, 0.0)
        self._arrived = len(self._caller.received_audio)
        for utterance, before_ms in self._played_ms.items():
            if utterance in self._over:
                continue
            played_ms = self._caller.played_ms(utterance)
            if played_ms > before_ms:
                self._started_s.setdefault(utterance, now_s - played_ms / 1000)
                self._played_ms[utterance] = played_ms
                self._quiet_since_s = now_s
        new = self._caller.received[self._seen :]
        self._seen += len(new)
        for received in new:
            self._hear(received)
        return new

    def line_began(self, now_s: float) -> None:
        self.line_at_s = now_s

    def line_ended(self, now_s: float) -> None:
        self._quiet_since_s = max(self._quiet_since_s, now_s)

    def perceive(self, now_s: float) -> Perception:
        """Return what the caller has perceived since their last line began."""
        fresh = {number for number, at_s in self._started_s.items() if at_s > self.line_at_s}
        return Perception(
            spoken_s=sum(self._played_ms[number] for number in fresh) / 1000,
            silent_s=max(0.0, now_s - self._quiet_since_s),
            heard="".join(text for number, text in self._words if number in fresh),
            state=self.state,
        )

    def _hear(self, received: ReceivedMessage[Any]) -> None:
        match received.message:
            case State(state=state):
                self.state = state
                self.states.append((received.at_s, state))
            case Spoken(utterance=utterance, text=text):
                self._words.append((utterance, text))
            case Cut(utterance=utterance):
                self._over.add(utterance)
