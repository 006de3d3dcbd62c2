"""What a call needs from the caller's side, and from the speech engines."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Protocol

from routes import Message

if TYPE_CHECKING:
    from ._call import Call


class Transport(Protocol):
    """The caller's side of a call.  None of its methods waits.

    What a method raises is logged as ``transport_failed``, and the call goes on as if the method
    had done its work: it cuts, counts and ends as it would have.

    What comes from the caller goes the other way: a transport publishes it with
    ``call.publish()``, and tells how far audio was played with ``call.report_playback()``.
    A transport with a method ``attached(call)`` is told of its call before the first event.  One
    with a method ``hold(on)`` is told to hold its player at the sample that is being heard, and to
    go on from there; without one, the player is cleared at a hold, and given what it has not
    played again at the release, from the start of the last heard word.
    """

    @property
    def audio(self) -> bool:
        """Whether the caller hears audio; otherwise only text travels."""

    @property
    def sample_rate_hz(self) -> int:
        """The rate of the audio it plays, in Hz."""

    def send(self, message: Message) -> None:
        """Tell the caller's side of an event; it picks those that it has words for."""

    def play(self, utterance: int, pcm: bytes) -> None:
        """Play audio after all audio that was given before.

        Args:
            utterance: The number of the utterance; a fresh one for what is given again, which
                ``call.speaking.player_number()`` tells.  Numbers rise: all audio is above every
                fence.
            pcm: PCM16 little-endian mono at `sample_rate_hz`; the call hands over at most half a
                second more than was played.
        """

    def clear(self, utterance: int, reason: str) -> None:
        """Drop all audio of this utterance and of those before it, now and for ever.

        Args:
            utterance: The fence: the number that its newest audio came by.
            reason: Why, for logs.
        """


class Speech(Protocol):
    """Ears and a voice for calls with audio.

    One without ears has an attribute ``hears`` that is False: then the page asks for no microphone,
    and says so where it offers to begin.
    """

    def open(self) -> AbstractAsyncContextManager[object]:
        """Load and warm what all calls of the process share."""

    def attach(self, call: Call) -> None:
        """Add the routes that hear and speak in one call."""
