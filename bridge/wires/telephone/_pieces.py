"""Cuts the agent's sound to pieces that a carrier takes; paces them where it cannot drop any."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from typing import final

import trio

from ...websocket import Data
from ._media_codec import LineFormat, MediaDialect


@final
class PieceCutter:
    """Cuts coded sound: no piece is shorter, longer or of another multiple than the carrier takes.

    Attributes:
        waiting: Sound that is too short for a piece.
    """

    __slots__ = ("_least", "_longest", "_sound", "_unit", "waiting")

    def __init__(self, dialect: MediaDialect, sound: LineFormat) -> None:
        """Start without sound.

        Args:
            dialect: What the carrier takes.
            sound: How the sound is coded.
        """
        self._sound = sound
        self._unit = math.lcm(dialect.piece_bytes, sound.sample_bytes)
        self._least = -(-dialect.shortest_piece_ms * sound.bytes_per_ms // self._unit) * self._unit
        longest = dialect.longest_piece_ms * sound.bytes_per_ms // self._unit * self._unit
        self._longest = max(longest, self._least)
        self.waiting = b""

    def push(self, coded: bytes) -> list[bytes]:
        """Add sound, and return the pieces that are whole."""
        waiting = self.waiting + coded if self.waiting else coded
        pieces = []
        while len(waiting) >= self._least:
            size = min(len(waiting), self._longest) // self._unit * self._unit
            pieces.append(waiting[:size])
            waiting = waiting[size:]
        self.waiting = waiting
        return pieces

    def end(self) -> bytes:
        """Return the last piece, with silence at its end; empty if nothing waits."""
        last, self.waiting = self.waiting, b""
        if not last:
            return b""
        size = max(self._least, -(-len(last) // self._unit) * self._unit)
        return last + self._sound.silence(size - len(last))

    def reset(self) -> None:
        """Drop what waits: it was cut."""
        self.waiting = b""


@final
class Pace:
    """Sends messages no earlier than they are needed, for a carrier that drops nothing."""

    __slots__ = ("_call_at", "_lead_s", "_plays_until_s", "_queue", "_send")

    def __init__(
        self,
        send: Callable[[int, Data], None],
        call_at: Callable[[object, float, Callable[[], None]], None],
        lead_s: float,
    ) -> None:
        """Start without messages.

        Args:
            send: Called with the utterance of a message, and the message.
            call_at: Sets a timer, which replaces the one with the same key.
            lead_s: How many seconds of sound may be ahead of the ear.
        """
        self._send = send
        self._call_at = call_at
        self._lead_s = lead_s
        self._queue: deque[tuple[int, Data, float]] = deque()
        self._plays_until_s = 0.0

    def add(self, utterance: int, message: Data, lasts_s: float) -> None:
        """Send a message when it is due.

        Args:
            utterance: The utterance that it is of.
            message: The message.
            lasts_s: How long its sound is; 0 for a mark.
        """
        self._queue.append((utterance, message, lasts_s))
        if len(self._queue) == 1:
            self._send_due()

    def drop(self, fence: int) -> int:
        """Drop what was not sent of utterances up to one, and return how many messages that was."""
        kept = deque(each for each in self._queue if each[0] > fence)
        dropped = len(self._queue) - len(kept)
        self._queue = kept
        return dropped

    def _send_due(self) -> None:
        now_s = trio.current_time()
        while self._queue:
            utterance, message, lasts_s = self._queue[0]
            ahead_s = self._plays_until_s + lasts_s - now_s
            if lasts_s and ahead_s > max(self._lead_s, lasts_s) + 1e-9:
                at_s = self._plays_until_s + lasts_s - max(self._lead_s, lasts_s)
                self._call_at(self, at_s, self._send_due)
                return
            self._queue.popleft()
            self._plays_until_s = max(self._plays_until_s, now_s) + lasts_s
            self._send(utterance, message)
