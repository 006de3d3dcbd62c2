"""Audio that a player was given lately, kept for the case that it has to be given again."""

from __future__ import annotations


class KeptAudio:
    """The end of what was sent of an utterance.  All positions are in bytes of its audio.

    It holds the very pieces that were sent: a block of its own for them would grow and shrink, and
    that leaves more holes in memory than small pieces of one size do.
    """

    __slots__ = ("_pieces", "_size", "starts_at")

    def __init__(self) -> None:
        self.starts_at = 0
        """Where the first piece begins that is kept."""
        self._pieces: list[bytes] = []
        self._size = 0

    def add(self, pcm: bytes, limit: int) -> None:
        """Keep what is sent next, and forget what is more than a limit before its end.

        Args:
            pcm: The audio.
            limit: How many bytes are kept at least, if so many were sent.
        """
        self._pieces.append(pcm)
        self._size += len(pcm)
        if self._size > limit:
            self.forget_before(self.starts_at + self._size - limit)

    @property
    def size(self) -> int:
        """How many bytes are kept."""
        return self._size

    def forget_before(self, position: int) -> None:
        """Forget pieces that end before a position.

        Args:
            position: What is at it and behind it stays.
        """
        count, starts_at = 0, self.starts_at
        for piece in self._pieces:
            ends_at = starts_at + len(piece)
            if ends_at > position:
                break
            starts_at = ends_at
            count += 1
        self._size -= starts_at - self.starts_at
        self.starts_at = starts_at
        del self._pieces[:count]

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
