"""Recently sent audio, kept in case it must be sent again."""

from __future__ import annotations

from itertools import accumulate, takewhile

SPARE_PIECES = 16
"""How many pieces may be added before the limit is checked: usually words are heard, and their
audio is forgotten, before that."""


class ResendBuffer:
    """The last part of an utterance's sent audio.  All positions are in bytes of the audio.

    It keeps the very pieces that were sent: one block that grows and shrinks would fragment memory
    more than small pieces of one size.
    """

    __slots__ = ("_pieces", "_pieces_allowed", "starts_at")

    def __init__(self) -> None:
        self.starts_at = 0
        """Where the first kept piece starts."""
        self._pieces: list[bytes] = []
        self._pieces_allowed = SPARE_PIECES

    def add(self, pcm: bytes, limit: int) -> None:
        """Keep the next sent piece, and forget audio beyond a limit.

        Args:
            pcm: The audio.
            limit: How many of the last bytes to keep; at most ``SPARE_PIECES`` pieces more.
        """
        self._pieces.append(pcm)
        if len(self._pieces) > self._pieces_allowed:
            self.forget_all_but(limit)

    @property
    def size(self) -> int:
        """How many bytes are kept."""
        return sum(map(len, self._pieces))

    @property
    def _ends_at(self) -> int:
        return self.starts_at + self.size

    def forget_before(self, position: int) -> None:
        """Forget pieces that end before a position.

        Args:
            position: Audio from here on stays.
        """
        ends = accumulate(map(len, self._pieces), initial=self.starts_at)
        forgotten = list(takewhile(position.__ge__, ends))
        if len(forgotten) > 1:
            self.starts_at = forgotten[-1]
            del self._pieces[: len(forgotten) - 1]
        self._pieces_allowed = len(self._pieces) + SPARE_PIECES

    def forget_all_but(self, limit: int) -> None:
        """Forget all audio but the last bytes.

        Args:
            limit: How many bytes to keep; less than one piece more.
        """
        self.forget_before(self._ends_at - limit)

    def pop_from(self, position: int) -> tuple[int, list[bytes]]:
        """Remove and return the audio from a position on.

        Args:
            position: Where to start; if less is kept, it starts with the kept audio.

        Returns:
            Where it actually starts, and the audio.
        """
        position = max(position, self.starts_at)
        ends_at = self._ends_at
        taken: list[bytes] = []
        while self._pieces and ends_at > position:
            piece = self._pieces.pop()
            ends_at -= len(piece)
            before = position - ends_at
            if before > 0:
                self._pieces.append(piece[:before])
                ends_at += before
                piece = piece[before:]
            taken.append(piece)
        taken.reverse()
        self._pieces_allowed = len(self._pieces) + SPARE_PIECES
        return ends_at, taken

    def clear(self) -> None:
        """Forget everything."""
        self.starts_at += sum(map(len, self._pieces))
        self._pieces.clear()
