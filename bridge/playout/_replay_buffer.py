"""Audio that a player was given lately, kept for the case that it has to be given again."""

from __future__ import annotations

from itertools import accumulate, takewhile

SPARE_PIECES = 16
"""How many pieces may come before it is looked whether the limit is passed: mostly, words are heard
and their audio forgotten before."""


class KeptAudio:
    """The end of what was sent of an utterance.  All positions are in bytes of its audio.

    It holds the very pieces that were sent: a block of its own for them would grow and shrink, and
    that leaves more holes in memory than small pieces of one size do.
    """

    __slots__ = ("_pieces", "_pieces_allowed", "starts_at")

    def __init__(self) -> None:
        self.starts_at = 0
        """Where the first piece begins that is kept."""
        self._pieces: list[bytes] = []
        self._pieces_allowed = SPARE_PIECES

    def add(self, pcm: bytes, limit: int) -> None:
        """Keep what is sent next, and forget what is more than a limit before its end.

        Args:
            pcm: The audio.
            limit: How many bytes are kept at least, if so many were sent; at most that and
                ``SPARE_PIECES`` pieces.
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
            position: What is at it and behind it stays.
        """
        ends = accumulate(map(len, self._pieces), initial=self.starts_at)
        forgotten = list(takewhile(position.__ge__, ends))
        if len(forgotten) > 1:
            self.starts_at = forgotten[-1]
            del self._pieces[: len(forgotten) - 1]
        self._pieces_allowed = len(self._pieces) + SPARE_PIECES

    def forget_all_but(self, limit: int) -> None:
        """Forget what is more than a limit before the end.

        Args:
            limit: How many bytes are kept at least, if so many are; less than one piece more.
        """
        self.forget_before(self._ends_at - limit)

    def take_from(self, position: int) -> tuple[int, list[bytes]]:
        """Give back the audio from a position on, and keep it no longer.

        Args:
            position: Where it shall begin; where what is kept begins, if that is later.

        Returns:
            Where it does begin, and the audio.
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
