"""One response of a model that speaks: asked for, given piece by piece, over or cancelled.

Rule 1. Text is told before the audio that says it, whatever comes first: an utterance begins with
its text.
Rule 2. A response that nobody wants any more gives nothing, and is cancelled once at most.
Rule 3. It holds `MOST_WAITING_S` of audio at most: then it fails.
"""

from __future__ import annotations

from collections import deque

import trio

from bargein.nodes.llm import AnswerPiece, AnswerProgress, SpeechDelta, TextDelta
from bargein.nodes.vendors import VendorError

from ._protocol import (
    AskRefused,
    CallAsked,
    ItemAdded,
    RealtimeFact,
    ResponseOver,
    SpeechGiven,
    TextGiven,
)

MOST_WAITING_S = 240.0
"""How much audio may wait for its reader: a response of OpenAI's has 4,096 tokens at most, and a
token is 50 ms.  Whoever speaks reads faster than it is made."""


class LineLostError(VendorError):
    """The line was lost that a response came by, and another one is open."""


class Response:
    """A response, from the line's side and from its reader's.

    Attributes:
        ask: The name that it is asked for by.
        name: The vendor's name of it; empty until it begins.
        items: The items that it has added to the conversation.
        used: Those of which its reader was given something: audio, a call, or text that is shown.
        is_wanted: Whether somebody reads it, or may.
        is_cancelled: Whether the vendor was told to end it.
        is_over: Whether nothing more of it will come.
        is_read: Whether its reader was given all of it.
    """

    def __init__(self, ask: str, output_rate_hz: int, *, speaks: bool) -> None:
        """Begin with nothing.

        Args:
            ask: The name that it is asked for by.
            output_rate_hz: Of its audio.
            speaks: Whether it is to be heard; otherwise its text is shown.
        """
        self.ask = ask
        self.name = ""
        self.items: list[str] = []
        self.used: set[str] = set()
        self.is_wanted = True
        self.is_cancelled = self.is_over = self.is_read = False
        self._rate_hz = output_rate_hz
        self._speaks = speaks
        self._has_text = False
        self._waiting_s = 0.0
        self._held: list[SpeechDelta] = []  # audio before any text
        self._pieces: deque[tuple[str, AnswerPiece]] = deque()
        self._error: VendorError | None = None
        self._news = trio.Event()

    def start(self, name: str) -> None:
        """Record that the vendor begins it, by a name."""
        self.name = name

    def leave(self) -> None:
        """Record that nobody reads it any more."""
        self.is_wanted = False
        self._held.clear()
        self._pieces.clear()

    def mark_cancelled(self) -> bool:
        """Record that the vendor is told to end it; False if it was told before."""
        was_told, self.is_cancelled = self.is_cancelled, True
        return not was_told

    @property
    def is_full(self) -> bool:
        """Whether more audio waits for its reader than may."""
        return self._waiting_s > MOST_WAITING_S

    def add(self, fact: RealtimeFact) -> None:
        """Take in what the vendor tells of it."""
        match fact:
            case ItemAdded():
                self.items.append(fact.item)
                if fact.tool:
                    self._pieces.append(("", AnswerProgress("tool_call", fact.tool)))
            case SpeechGiven() | TextGiven() if self.is_over or not self.is_wanted:
                pass  # it comes late
            case SpeechGiven():
                self._hold(SpeechDelta(fact.pcm, self._rate_hz, fact.item))
            case TextGiven() if fact.text:
                item = "" if self._speaks else fact.item
                self._pieces.append((item, TextDelta(fact.text)))
                self._has_text = True
                self._release()
            case CallAsked():
                self._pieces.append((fact.item, fact.request))
            case ResponseOver() if self.is_over:
                pass  # it has failed
            case ResponseOver():
                if self._held:  # a sound that nobody has written down
                    self._pieces.append(("", TextDelta(" ")))
                    self._release()
                self._error = fact.error
                if fact.error is None:
                    self._pieces.append(("", fact.usage))
                self.is_over = True
            case AskRefused():
                self.fail(fact.error)
        self._news.set()

    def fail(self, error: VendorError) -> None:
        """End it with an error."""
        self._error, self.is_over = error, True
        self._news.set()

    def lose(self, vendor: str) -> None:
        """End it because its line is lost."""
        self.fail(LineLostError(vendor, "the line was lost in mid-answer"))

    def _hold(self, delta: SpeechDelta) -> None:
        self._held.append(delta)
        self._waiting_s += _lasts_s(delta)
        if self._has_text:
            self._release()

    def _release(self) -> None:
        self._pieces += [(delta.item, delta) for delta in self._held]
        self._held.clear()

    async def receive(self, within_s: float) -> tuple[str, AnswerPiece] | None:
        """Return the next piece, behind the item that it is of; cancelling it is safe.

        Args:
            within_s: How long it may take.

        Returns:
            The item is empty for what is of none, or not heard by itself; None when nothing more
            will come.

        Raises:
            VendorError: The response failed, or the line; what was given before stays good.
            trio.TooSlowError: Nothing came in time.
        """
        with trio.fail_after(within_s):
            await trio.lowlevel.checkpoint()
            while not self._pieces:
                if self._error is not None:
                    raise self._error
                if self.is_over:
                    self.is_read = True
                    return None
                self._news = trio.Event()
                await self._news.wait()
        item, piece = self._pieces.popleft()
        self.used.add(item)
        if isinstance(piece, SpeechDelta):
            self._waiting_s -= _lasts_s(piece)
        return item, piece


def _lasts_s(delta: SpeechDelta) -> float:
    return len(delta.pcm) / 2 / delta.sample_rate_hz
