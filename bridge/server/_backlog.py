"""What a client has to be told, however many connections that takes.

Rule 1. The client gets each JSON message once and in order: it tells how many it has got, and the
rest is sent again, in the order of the wire.
Rule 2. Audio is sent again from the sample that the client tells.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

from ..websocket import Data
from ._line_messages import Resume
from ._outbox import Outbox

KEPT_BYTES = 500_000
"""How much of what was sent is kept to be sent again: 10 s of audio.  A line that takes nothing
more is held after a second or two, so that less than that is ever in flight."""

_HOLD = '{"type":"hold"'
"""How the message begins that is not sent again: what holds now is told anew, in front of all that
was missed, and must be the last word on it."""

HEADER_BYTES = 4
_HEADER = struct.Struct("<I")


@dataclass(frozen=True, slots=True)
class _Sent:
    """A message that was sent, and may have been lost."""

    data: Data
    number: int
    """Of a JSON message its number, from 1; 0 for audio."""
    utterance: int = -1
    begins: int = 0
    """Where in its utterance the audio begins, in bytes."""


@final
class Backlog:
    """The one queue of a call, over the outboxes of its connections.

    Has the ways of an ``Outbox`` to put messages in; between two connections they wait.

    Attributes:
        spare: Asked for a message whenever none waits to be sent; it may give none.
    """

    def __init__(self, open_outbox: Callable[[], Outbox], *, keeps_audio: bool = True) -> None:
        """Begin between two connections.

        Args:
            open_outbox: Makes an outbox that nobody runs, for the time between connections.
            keeps_audio: False where audio that is late is worth nothing.
        """
        self.spare: Callable[[], Data | None] = lambda: None
        self._open_outbox = open_outbox
        self._keeps_audio = keeps_audio
        self._outbox = open_outbox()
        self._greeting: Data | None = None
        self._kept: deque[_Sent] = deque()
        self._kept_bytes = 0
        self._count = 0
        self._forgotten = 0
        self._utterance = -1
        self._audio_bytes = 0

    # --- as an outbox ---------------------------------------------------------------------------

    @property
    def sent(self) -> int:
        """Messages handed to the kernel."""
        return self._outbox.sent

    @property
    def dropped(self) -> int:
        """Messages that were never sent."""
        return self._outbox.dropped

    def put(self, data: Data, *, utterance: int | None = None) -> None:
        """Queue a message behind those that wait; see ``Outbox.put``."""
        self._outbox.put(data, utterance=utterance)

    def put_first(self, data: Data) -> None:
        """Queue a message in front of those that wait; see ``Outbox.put_first``."""
        self._outbox.put_first(data)

    def drop_audio(self, fence: int) -> int:
        """Drop the audio that waits, or was sent and may be lost; see ``Outbox.drop_audio``."""
        audio = [sent for sent in self._kept if 0 <= sent.utterance <= fence]
        if audio:
            self._kept = deque(s for s in self._kept if not 0 <= s.utterance <= fence)
            self._kept_bytes -= sum(len(sent.data) for sent in audio)
        return self._outbox.drop_audio(fence)

    def wake(self) -> None:
        """Look for something to send; for who has it in `spare`."""
        self._outbox.wake()

    def close(self) -> None:
        """Take nothing more; the outbox is done once all that waits is sent."""
        self._outbox.close()

    # --- connections ----------------------------------------------------------------------------

    def begin(self, outbox: Outbox) -> None:
        """Send over the first connection."""
        self._move_to(outbox)

    def greet(self, text: Data) -> None:
        """Put the message that begins a connection in front of all; it does not count."""
        self._greeting = text
        self._outbox.put_first(text)

    def leave(self) -> None:
        """Wait for another connection: this one is lost."""
        self._move_to(self._open_outbox())

    def can_resume(self, asked: Resume) -> bool:
        """Whether everything that a client has missed is still there."""
        return self._forgotten <= asked.received <= self._count

    def resume(self, outbox: Outbox, asked: Resume, greeting: Data) -> None:
        """Send over another connection: a greeting, what was missed, and then what waits.

        Args:
            outbox: Of that connection.
            asked: What the client has; ``can_resume`` has been asked.
            greeting: The first message of the connection.
        """
        self._greeting = greeting
        outbox.put_first(greeting)  # in front of what was urgent in the gap
        self._go_on(outbox, asked)

    def send_again(self, outbox: Outbox, received: int) -> None:
        """Send over another connection what was missed, as far as it is known, and what waits.

        Args:
            outbox: Of that connection.
            received: How many JSON messages the other side has got.
        """
        self._go_on(outbox, Resume(token="", received=received))

    def forget(self) -> None:
        """Send nothing again of what was sent so far."""
        self._kept.clear()
        self._kept_bytes = 0

    def _go_on(self, outbox: Outbox, asked: Resume) -> None:
        missed = [again for sent in self._kept if (again := _missed(sent, asked)) is not None]
        self.forget()
        self._count = self._forgotten = asked.received
        self._utterance = -1 if asked.utterance is None else asked.utterance
        self._audio_bytes = asked.audio_bytes
        self._move_to(outbox, missed)

    def _move_to(self, outbox: Outbox, missed: list[tuple[int | None, Data]] | None = None) -> None:
        outbox.take_over(self._outbox, missed or ())
        outbox.on_next = self._keep
        outbox.spare = lambda: self.spare()
        self._outbox = outbox

    # --- what was sent --------------------------------------------------------------------------

    def _keep(self, data: Data) -> None:
        if data is self._greeting:
            return
        if isinstance(data, bytes):
            if not self._keeps_audio:
                return
            sent = self._audio(data)
        else:
            self._count += 1
            sent = _Sent(data, self._count)
        self._kept.append(sent)
        self._kept_bytes += len(data)
        while self._kept_bytes > KEPT_BYTES:
            oldest = self._kept.popleft()
            self._kept_bytes -= len(oldest.data)
            self._forgotten = max(self._forgotten, oldest.number)

    def _audio(self, data: bytes) -> _Sent:
        (utterance,) = _HEADER.unpack_from(data)
        if utterance != self._utterance:
            self._utterance, self._audio_bytes = utterance, 0
        begins = self._audio_bytes
        self._audio_bytes += len(data) - HEADER_BYTES
        return _Sent(data, 0, utterance, begins)


def _missed(sent: _Sent, asked: Resume) -> tuple[int | None, Data] | None:
    """Return what of a message the client has not got."""
    if isinstance(sent.data, str):
        is_old = sent.number <= asked.received or sent.data.startswith(_HOLD)
        return None if is_old else (None, sent.data)
    if asked.utterance is None or sent.utterance > asked.utterance:
        return sent.utterance, sent.data
    if sent.utterance < asked.utterance:
        return None
    had = max(0, asked.audio_bytes - sent.begins)
    if had >= len(sent.data) - HEADER_BYTES:
        return None
    return sent.utterance, sent.data[:HEADER_BYTES] + sent.data[HEADER_BYTES + had :]
