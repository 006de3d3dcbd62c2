"""What a client has to be told, however many connections that takes.

Rule 1. The client gets each JSON message once and in order: it tells how many it has got, and the
rest is sent again, in the order of the wire.
Rule 2. Audio is sent again from the sample that the client tells.
Rule 3. What the client is known to have is not kept: it tells how many messages it has got, and how
far it has played.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import final

from ..websocket import Data
from ._connection_messages import OUTPUT_RATE_HZ, Resume
from ._outbox import Entry, Outbox

KEPT_BYTES = 250_000
"""How much audio that was sent is kept to be sent again: 5 s, and as much of messages.  A line that
takes nothing more is held after a second or two, so that less than that is ever in flight."""

_HOLD = '{"type":"hold"'
"""How the message begins that is not sent again: what holds now is told anew, in front of all that
was missed, and must be the last word on it."""

BYTES_PER_MS = OUTPUT_RATE_HZ * 2 // 1000


@dataclass(frozen=True, slots=True)
class _Sent:
    """A message that was sent, and may have been lost."""

    data: Data
    """A JSON message; or audio without its header, the very bytes that the playout keeps, too."""
    place: int
    """Where it stands among all that was sent."""
    number: int = 0
    """Of a JSON message its number, from 1; 0 for audio."""
    utterance: int = -1
    begins: int = 0
    """Where in its utterance the audio begins, in bytes."""


@final
class Backlog:
    """The one queue of a call, over the outboxes of its connections.

    Has the ways of an ``Outbox`` to put messages in; between two connections they wait.

    Attributes:
        put: Queues a message behind those that wait; see ``Outbox.put``.
    """

    __slots__ = (
        "_audio", "_audio_bytes", "_count", "_forgotten", "_greeting", "_kept_bytes",
        "_open_outbox", "_outbox", "_places", "_text_bytes", "_texts", "_utterance", "put",
    )  # fmt: skip

    def __init__(self, open_outbox: Callable[[], Outbox]) -> None:
        """Begin between two connections.

        Args:
            open_outbox: Makes an outbox that nobody runs, for the time between connections.
        """
        self._open_outbox = open_outbox
        self._outbox = open_outbox()
        self.put: Callable[[Data], None] = self._outbox.put
        self._greeting: Data | None = None
        self._texts: list[_Sent] = []
        self._text_bytes = 0
        self._audio: list[_Sent] = []
        self._kept_bytes = 0
        self._places = 0
        self._count = 0
        self._forgotten = 0
        self._utterance = -1
        self._audio_bytes = 0

    # --- as an outbox ---------------------------------------------------------------------------

    @property
    def spare(self) -> Callable[[], Data | None]:
        """Asked for a message whenever none waits to be sent; it may give none."""
        return self._outbox.spare

    @spare.setter
    def spare(self, spare: Callable[[], Data | None]) -> None:
        self._outbox.spare = spare

    @property
    def sent(self) -> int:
        """Messages handed to the kernel."""
        return self._outbox.sent

    @property
    def dropped(self) -> int:
        """Messages that were never sent."""
        return self._outbox.dropped

    def put_audio(self, utterance: int, pcm: bytes) -> None:
        """Queue audio behind what waits; see ``Outbox.put_audio``."""
        self._outbox.put_audio(utterance, pcm)

    def put_first(self, data: Data) -> None:
        """Queue a message in front of those that wait; see ``Outbox.put_first``."""
        self._outbox.put_first(data)

    def drop_audio(self, fence: int) -> int:
        """Drop the audio that waits, or was sent and may be lost; see ``Outbox.drop_audio``."""
        self._audio = [sent for sent in self._audio if sent.utterance > fence]
        self._kept_bytes = sum(len(sent.data) for sent in self._audio)
        return self._outbox.drop_audio(fence)

    def wake(self) -> None:
        """Look for something to send; for who has it in `spare`."""
        self._outbox.wake()

    def close(self) -> None:
        """Take nothing more; the outbox is done once all that waits is sent."""
        self._outbox.close()

    # --- connections ----------------------------------------------------------------------------

    def attach(self, outbox: Outbox) -> None:
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

    def note_received(self, count: int) -> None:
        """Forget the messages that the other side has got.

        Args:
            count: How many JSON messages it has got, of all connections; more than were sent says
                nothing.
        """
        while self._texts and self._texts[0].number <= count <= self._count:
            self._forget_text()

    def note_played(self, utterance: int, played_ms: float) -> None:
        """Forget the audio that the client has played, and so has got.

        Args:
            utterance: What it plays.
            played_ms: How far it has played that.
        """
        played_bytes = played_ms * BYTES_PER_MS
        audio = self._audio
        while audio and (
            audio[0].utterance < utterance
            or (
                audio[0].utterance == utterance
                and audio[0].begins + len(audio[0].data) <= played_bytes
            )
        ):
            self._kept_bytes -= len(audio.pop(0).data)

    def forget(self) -> None:
        """Send nothing again of what was sent so far."""
        self._texts.clear()
        self._text_bytes = 0
        self._audio.clear()
        self._kept_bytes = 0

    def _forget_text(self) -> None:
        oldest = self._texts.pop(0)
        self._text_bytes -= len(oldest.data)
        self._forgotten = oldest.number

    def _go_on(self, outbox: Outbox, asked: Resume) -> None:
        kept = heapq.merge(self._texts, self._audio, key=attrgetter("place"))
        missed = [again for sent in kept if (again := _missed(sent, asked)) is not None]
        self.forget()
        self._count = self._forgotten = asked.received
        self._utterance = -1 if asked.utterance is None else asked.utterance
        self._audio_bytes = asked.audio_bytes
        self._move_to(outbox, missed)

    def _move_to(self, outbox: Outbox, missed: list[Entry] | None = None) -> None:
        outbox.take_over(self._outbox, missed or ())
        outbox.on_next = self._keep
        outbox.spare = self._outbox.spare
        self._outbox = outbox
        self.put = outbox.put

    # --- what was sent --------------------------------------------------------------------------

    def _keep(self, utterance: int | None, data: Data) -> None:
        if data is self._greeting:
            return
        self._places += 1
        if isinstance(data, str):
            self._count += 1
            self._texts.append(_Sent(data, self._places, self._count))
            self._text_bytes += len(data)
            while self._text_bytes > KEPT_BYTES:
                self._forget_text()
        elif (
            utterance is not None
        ):  # bytes of none are of a microphone: late, they are worth nothing
            self._keep_audio(utterance, data)

    def _keep_audio(self, utterance: int, pcm: bytes) -> None:
        if utterance != self._utterance:
            self._utterance, self._audio_bytes = utterance, 0
        self._audio.append(_Sent(pcm, self._places, 0, utterance, self._audio_bytes))
        self._audio_bytes += len(pcm)
        self._kept_bytes += len(pcm)
        while self._kept_bytes > KEPT_BYTES:
            self._kept_bytes -= len(self._audio.pop(0).data)


def _missed(sent: _Sent, asked: Resume) -> Entry | None:
    """Return what of a message the client has not got."""
    if isinstance(sent.data, str):
        is_old = sent.number <= asked.received or sent.data.startswith(_HOLD)
        return None if is_old else (None, sent.data)
    if asked.utterance is None or sent.utterance > asked.utterance:
        return sent.utterance, sent.data
    if sent.utterance < asked.utterance:
        return None
    had = max(0, asked.audio_bytes - sent.begins)
    return None if had >= len(sent.data) else (sent.utterance, sent.data[had:])
