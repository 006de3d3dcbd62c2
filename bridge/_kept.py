"""Audio that a player was given lately, kept for the case that it has to be given again."""

from __future__ import annotations

from collections import deque


class KeptAudio:
    """The end of what was sent of an utterance.  All positions are in bytes of its audio."""

    __slots__ = ("_pieces", "_size", "starts_at")

    def __init__(self) -> None:
        self.starts_at = 0
        """Where the first piece begins that is kept."""
        self._pieces: deque[bytes] = deque()
        self._size = 0

    def add(self, pcm: bytes, limit: int) -> int:
        """Keep what is sent next, and forget what is more than a limit before its end.

        Args:
            pcm: The audio.
            limit: How many bytes are kept at least, if so many were sent.

        Returns:
            How many bytes are kept now.
        """
        self._pieces.append(pcm)
        self._size += len(pcm)
        if self._size > limit:
            self.forget_before(self.starts_at + self._size - limit)
        return self._size

    @property
    def size(self) -> int:
        """How many bytes are kept."""
        return self._size

    def forget_before(self, position: int) -> None:
        """Forget pieces that end before a position.

        Args:
            position: What is at it and behind it stays.
        """
        pieces = self._pieces
        while pieces and self.starts_at + len(pieces[0]) <= position:
            first = len(pieces.popleft())
            self._size -= first
            self.starts_at += first

    def take_from(self, position: int) -> tuple[int, list[bytes]]:
        """Give back the audio from a position on, and keep it no longer.

        Args:
            position: Where it shall begin; where what is kept begins, if that is later.

        Returns:
            Where it does begin, and the audio.
        """
        position = max(position, self.starts_at)
        taken: list[bytes] = []
        while self._pieces and self.starts_at + self._size > position:
            piece = self._pieces.pop()
            self._size -= len(piece)
            before = position - self.starts_at - self._size
            if before > 0:
                self._pieces.append(piece[:before])
                self._size += before
                piece = piece[before:]
            taken.append(piece)
        taken.reverse()
        return self.starts_at + self._size, taken

    def clear(self) -> None:
        """Forget everything."""
        self.starts_at += self._size
        self._pieces.clear()
        self._size = 0
