"""The fence: audio of an utterance that was cut is dropped, however late it arrives."""

from __future__ import annotations

from typing import final


@final
class Fence:
    """Divides the utterances that may be heard from those that were cut.

    The numbers of utterances only rise, and so does the fence: a ``clear`` raises it to the number
    of the utterance that it cuts.  Whatever plays audio has one of its own, so that no order of
    messages and no thread lets late audio through.
    """

    __slots__ = ("_number",)

    def __init__(self) -> None:
        self._number = -1  # the first utterance may be 0

    def raise_to(self, utterance: int) -> None:
        """Drop the audio of an utterance, and of all before it, from now on.

        Args:
            utterance: Its number; one below the fence changes nothing.
        """
        self._number = max(self._number, utterance)

    def drops(self, utterance: int) -> bool:
        """Whether the audio of an utterance is dropped.

        Args:
            utterance: Its number.
        """
        return utterance <= self._number
