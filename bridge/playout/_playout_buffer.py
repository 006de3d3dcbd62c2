"""Audio that waits to be sent to the player; a voice that is too far ahead waits for room."""

from __future__ import annotations

from collections.abc import Iterable

import trio

BLOCK_BYTES = 65_536
"""How long a kept piece is at most: 1.4 s at 24 kHz.  What is left of it is copied for each message
that is cut off."""


class PlayoutBuffer:
    """The unsent audio of an utterance.

    It keeps the voice's own pieces until the first message is cut off them, and then only the rest:
    audio that a voice gave ahead is the largest part of a call's memory.
    """

    __slots__ = ("_most_bytes", "_pieces", "_room")

    def __init__(self) -> None:
        self._pieces: list[bytes] = []  # usually empty; an empty deque takes 0.7 kB
        self._most_bytes = 0
        self._room: trio.Event | None = None

    def __bool__(self) -> bool:
        return bool(self._pieces)

    @property
    def size(self) -> int:
        """How many bytes wait."""
        return sum(map(len, self._pieces))

    def append(self, pcm: bytes) -> None:
        """Add audio behind everything that waits."""
        for begins in range(0, len(pcm), BLOCK_BYTES):  # usually once, which copies nothing
            self._pieces.append(pcm[begins : begins + BLOCK_BYTES])

    def prepend(self, pieces: Iterable[bytes]) -> None:
        """Put audio in front of everything that waits."""
        self._pieces[:0] = pieces

    def pop(self, size: int) -> bytes:
        """Remove and return the next audio: at most `size` bytes, less only if no more waits.

        The end of a piece and the start of the next one are one message: each costs a write.
        """
        pieces = self._pieces
        audio = pieces.pop(0)
        while len(audio) < size and pieces:
            audio += pieces.pop(0)
        if len(audio) > size:
            pieces.insert(0, audio[size:])
            audio = audio[:size]
        self._make_room()
        return audio

    def clear(self) -> None:
        """Drop everything."""
        self._pieces.clear()
        self._make_room()

    def is_more_than(self, most_bytes: int) -> bool:
        """Whether more than this many bytes wait; if so, ``room()`` waits until they do not.

        Args:
            most_bytes: How many bytes may wait.
        """
        if self.size <= most_bytes:
            return False
        self._most_bytes = most_bytes
        if self._room is None:
            self._room = trio.Event()
        return True

    async def room(self) -> None:
        """Wait until no more waits than the last limit given to ``is_more_than()``.

        Cancelling this is safe.
        """
        if self._room is not None:
            await self._room.wait()

    def _make_room(self) -> None:
        if self._room is not None and self.size <= self._most_bytes:
            self._room.set()
            self._room = None
