"""The part of the answers that is being played: their utterances, and their echo."""

from __future__ import annotations

import trio

from bargein.routes import Message

from ..playout._echo_text import words_around
from ..playout._playout import Playout
from ..playout._playout_events import PlayoutEvents
from ..playout._utterance import Utterance


class AnswerAudio:
    """Knows which part of a call's answers is being heard, and which waits."""

    _playout: Playout
    _events: PlayoutEvents

    @property
    def is_audible_now(self) -> bool:
        """Whether the caller hears an agent now."""
        return self._playout.is_audible

    @property
    def saying(self) -> str:
        """The text around now to compare an echo with: from about 4 s before what is heard to the
        end of the clause after what the player has.  It stays for 3 s after the end."""
        now_s = trio.current_time()
        self._playout.advance(now_s)
        return words_around(self._events.said_before(now_s), self._playout.utterances)

    @property
    def has_notice(self) -> bool:
        """Whether something that no route may cut is being said or waits to be said."""
        return any(not utterance.interruptible for utterance in self._playout.utterances)

    @property
    def is_pending(self) -> bool:
        """Whether generated text waits to be heard."""
        return self._playout.front is not None

    def unreported_since_s(self) -> float:
        """Return since when the player has owed a report on its audio; infinite if it owes none."""
        return self._playout.unreported_since_s()

    def front(self) -> Utterance | None:
        """Return the utterance that is heard now or next; ``None`` for none."""
        return self._playout.front

    def utterance_of(self, message: Message) -> Utterance | None:
        """Return the utterance that the text of an ``AgentResponse`` message belongs to.

        Args:
            message: The message; valid from the step in which it is published.

        Returns:
            The utterance; ``None`` for text that nobody will hear, and for any other event.
        """
        found: Utterance | None = message.tag
        return found

    def utterance(self, number: int) -> Utterance | None:
        """Return the utterance with this number, if it is not over."""
        return self._playout.utterance(number)

    def resend(self) -> None:
        """Send the player's unplayed audio again, because its connection was lost.

        It starts from the last word known to be heard; while the voice is held, at the release.
        """
        self._playout.resend()

    def player_number(self, utterance: int) -> int:
        """Return the number under which the player has an utterance now; for transports.

        Args:
            utterance: The number of the utterance, as in events.
        """
        found = self.utterance(utterance)
        return utterance if found is None else found.play_number

    def report(self, utterance: int, kind: str, played_ms: float) -> None:
        """Record a report of the player."""
        self._playout.report(utterance, kind, played_ms)
