"""The messages and the audio that a caller has received, as far as they are kept."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, final

import trio

from ..protocol import ServerMessage
from ._call_records import CallOverError, M, ReceivedAudio, ReceivedMessage


@final
class MessageRecord:
    """Keeps what a caller has received, and finds messages in it.

    Attributes:
        messages: The messages but audio, in order.
        audio: The audio, in order, whether played or not.
    """

    def __init__(
        self, hello: ServerMessage, keep_last: int | None, keep_bytes: int | None = None
    ) -> None:
        """Begin with the first message.

        Args:
            keep_last: How many messages and pieces of audio to keep; ``None`` keeps all.
            keep_bytes: How many bytes of messages to keep, as they were on the wire, even if nobody
                has seen them; ``None`` for no limit.  The last one is always kept.
        """
        self.messages: list[ReceivedMessage[Any]] = [ReceivedMessage(trio.current_time(), 0, hello)]
        self.audio: list[ReceivedAudio] = []
        self._keep_last = keep_last
        self._keep_bytes = keep_bytes
        self._sizes = deque([0])
        self._bytes = 0
        self._count = 1
        self._unseen: dict[object, int] = {}  # from which number on a wait_for() has not looked
        self._changed = trio.Event()
        self._over: str | None = None

    def add(self, message: ServerMessage, size: int) -> None:
        """Add a message that arrives now; its size is in bytes."""
        self.messages.append(ReceivedMessage(trio.current_time(), self._count, message))
        self._sizes.append(size)
        self._bytes += size
        self._count += 1
        if self._keep_last is not None:  # but keep what a wait_for() has not seen yet
            seen = min(self._unseen.values(), default=self._count) - self._first
            self._forget(min(len(self.messages) - self._keep_last, seen))
        if self._keep_bytes is not None:
            while self._bytes > self._keep_bytes and len(self.messages) > 1:
                self._forget(1)
        self._changed.set()
        self._changed = trio.Event()

    def _forget(self, count: int) -> None:
        """Forget the oldest messages; a count below 1 forgets none."""
        for _ in range(count):
            self._bytes -= self._sizes.popleft()
        del self.messages[: max(0, count)]

    def add_audio(self, utterance: int, length: int) -> None:
        """Add a piece of audio that arrives now; its length is in samples."""
        self.audio.append(ReceivedAudio(trio.current_time(), utterance, length))
        if self._keep_last is not None:
            del self.audio[: max(0, len(self.audio) - self._keep_last)]

    def end(self, reason: str) -> None:
        """End all waiting, because the call is over."""
        self._over = reason
        self._changed.set()

    @property
    def _first(self) -> int:
        """The number of the oldest message that is kept."""
        return self._count - len(self.messages)

    async def wait_for(
        self, kind: type[M], where: Callable[[M], bool], after: int
    ) -> ReceivedMessage[M]:
        """Return the first message that meets a condition; see ``NetworkCaller.wait_for()``."""
        seen = after + 1
        me = object()
        try:
            while True:
                for received in self.messages[max(0, seen - self._first) :]:
                    if isinstance(received.message, kind) and where(received.message):
                        await trio.lowlevel.checkpoint()
                        return received
                seen = self._unseen[me] = max(seen, self._count)
                if self._over is not None:
                    raise CallOverError(self._over, kind.__name__)
                await self._changed.wait()
        finally:
            self._unseen.pop(me, None)
