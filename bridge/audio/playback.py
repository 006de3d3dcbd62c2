"""What all players share: the kinds of their reports, and the fence.

The fence drops the audio of a cut utterance, however late it arrives.
"""

from __future__ import annotations

from typing import Literal, final

PlaybackKind = Literal["start", "position", "done", "underrun", "flushed"]
"""What a player reports of an utterance: its first sound, how far it is, its end, a gap, a cut."""


@final
class Fence:
    """Separates the utterances that may be heard from those that were cut.

    The numbers of utterances only rise, and so does the fence: a ``clear`` raises it to the number
    of the utterance that it cuts.  Each player of audio has its own fence, so late audio never gets
    through, whatever the order of messages and threads.
    """

    __slots__ = ("_number",)

    def __init__(self) -> None:
        self._number = -1  # the first utterance may be 0

    def raise_to(self, utterance: int) -> None:
        """Drop the audio of an utterance and of all earlier ones from now on.

        Args:
            utterance: Its number; one below the fence changes nothing.
        """
        self._number = max(self._number, utterance)

    def drops(self, utterance: int) -> bool:
        return utterance <= self._number
