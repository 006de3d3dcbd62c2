"""The listener that a playout calls."""

from __future__ import annotations

from typing import Protocol

from ._utterance import Utterance


class PlayoutListener(Protocol):
    """Is called for what happens to utterances, in the step in which it happens."""

    def utterance_started(self, utterance: Utterance) -> None:
        """Its first sound was heard."""

    def words_heard(self, utterance: Utterance, text: str) -> None:
        """Some more of its words were heard."""

    def utterance_queued(self, utterance: Utterance) -> None:
        """All its audio was sent to the transport; called again after a resend."""

    def voice_failed(self, utterance: Utterance) -> None:
        """Its voice delivers no more audio; it ends with what was played."""

    def player_failed(self, utterance: Utterance) -> None:
        """Its player reports nothing; it is cut where it was last known to be."""

    def utterance_finished(self, utterance: Utterance) -> None:
        """It was heard to its end, or cut."""

    def utterance_settled(self, utterance: Utterance) -> None:
        """What was heard of it will not change any more."""
