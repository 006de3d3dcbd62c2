"""Audio that waits to be sent to the player; a voice that is too far ahead waits for room."""

from __future__ import annotations

from collections.abc import Iterable

import trio


class PlayoutBuffer:
    """The unsent audio of an utterance.

    It keeps the voice's own pieces, and cuts them only when they are sent: copies of audio that a
    voice gave seconds ahead would be the largest part of a call's memory.
    """

    __slots__ = ("_most_bytes", "_pieces", "_room", "_sent_of_first")

    def __init__(self) -> None:
        self._pieces: list[bytes] = []  # usually empty; an empty deque takes 0.7 kB
        self._sent_of_first = 0
        self._most_bytes = 0
        self._room: trio.Event | None = None

    def __bool__(self) -> bool:
        return bool(self._pieces)

    @property
    def size(self) -> int:
        """How many bytes wait."""
        return sum(map(len, self._pieces)) - self._sent_of_first

    def append(self, pcm: bytes) -> None:
        """Add audio behind everything that waits."""
        if pcm:
            self._pieces.append(pcm)

    def prepend(self, pieces: Iterable[bytes]) -> None:
        """Put audio in front of everything that waits."""
        if self._sent_of_first:
            self._pieces[0] = self._pieces[0][self._sent_of_first :]
            self._sent_of_first = 0
        self._pieces[:0] = pieces

    def pop(self, size: int) -> bytes:
        """Remove and return the next audio: at most `size` bytes, less only if no more waits."""
        first, begins = self._pieces[0], self._sent_of_first
        ends = begins + size
        if len(first) > ends:
            self._sent_of_first = ends
            audio = first[begins:ends]
        else:
            audio = self._pop_several(size)
        self._make_room()
        return audio

    def _pop_several(self, size: int) -> bytes:
        """Join audio of pieces: a message for the end of each would cost a write more."""
        taken = [self._pieces.pop(0)[self._sent_of_first :]]
        self._sent_of_first = 0
        size -= len(taken[0])
        while size and self._pieces:
            first = self._pieces[0]
            if len(first) > size:
                self._sent_of_first = size
                taken.append(first[:size])
                break
            size -= len(first)
            taken.append(self._pieces.pop(0))
        return b"".join(taken) if len(taken) > 1 else taken[0]

    def clear(self) -> None:
        """Drop everything."""
        self._pieces.clear()
        self._sent_of_first = 0
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
