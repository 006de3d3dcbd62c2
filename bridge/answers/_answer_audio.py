"""What of the answers is on its way to the caller's ear: their utterances, and their echo."""

from __future__ import annotations

import trio

from bargein.routes import Message

from ..playout._echo_text import words_around
from ..playout._events import Telling
from ..playout._playout import Playout
from ..playout._utterance import Utterance


class AnswerAudio:
    """Knows what of the answers of a call is being heard, and what waits to be."""

    _playout: Playout
    _telling: Telling

    @property
    def is_audible_now(self) -> bool:
        """Whether the caller hears an agent at this moment."""
        return self._playout.is_audible

    @property
    def saying(self) -> str:
        """The text that is being said now, to compare an echo with: from about 4 s before what is
        heard to the end of the clause after what the player has.  It lingers for 3 s."""
        now_s = trio.current_time()
        self._playout.advance(now_s)
        return words_around(self._telling.said_before(now_s), self._playout.utterances)

    @property
    def has_notice(self) -> bool:
        """Whether something is being said, or waits to be, that no route may cut."""
        return any(not utterance.interruptible for utterance in self._playout.utterances)

    @property
    def is_pending(self) -> bool:
        """Whether something was generated and waits to be heard."""
        return self._playout.front is not None

    def unreported_since_s(self) -> float:
        """Return since when the player has said nothing of what it was given; infinite if it owes
        no report."""
        return self._playout.unreported_since_s()

    def front(self) -> Utterance | None:
        """Return the utterance that is heard now, or next."""
        return self._playout.front

    def utterance_of(self, message: Message) -> Utterance | None:
        """Return the utterance that the text of an ``AgentResponse`` message belongs to.

        Args:
            message: The message; valid from the step in which it is published.

        Returns:
            The utterance; ``None`` for a text that nobody is to hear, and for any other event.
        """
        found: Utterance | None = message.tag
        return found

    def utterance(self, number: int) -> Utterance | None:
        """Return the utterance with this number, if it is not over."""
        return self._playout.utterance(number)

    def resend(self) -> None:
        """Send again what the player was given and has not played: its connection was lost.

        It goes on from the last word that is known to be heard; while the voice is held, once it is
        released.
        """
        self._playout.resend()

    def player_number(self, utterance: int) -> int:
        """Return the number under which the player has an utterance now; for transports.

        Args:
            utterance: The number of the utterance, as events tell it.
        """
        found = self.utterance(utterance)
        return utterance if found is None else found.play_number

    def report(self, utterance: int, kind: str, played_ms: float) -> None:
        """Take in what the player reports."""
        self._playout.report(utterance, kind, played_ms)
