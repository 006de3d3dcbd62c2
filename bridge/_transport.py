"""What a call needs from the caller's side."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from bargein.routes import BargeinError, Message

from .events import Button


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
    One on a telephone line may also be able to pass the caller on and to press keys: see
    ``CanTransfer`` and ``CanSendDTMF``.
    """

    @property
    def audio(self) -> bool:
        """Whether the caller hears audio; otherwise only text travels."""
        ...

    @property
    def sample_rate_hz(self) -> int:
        """The rate of the audio it plays, in Hz."""
        ...

    def send(self, message: Message, /) -> None:
        """Tell the caller's side of an event; it picks those that it has words for."""

    def play(self, utterance: int, pcm: bytes, /) -> None:
        """Play audio after all audio that was given before.

        Args:
            utterance: The number of the utterance; a fresh one for what is given again, which
                ``call.speaking.player_number()`` tells.  Numbers rise: all audio is above every
                fence.
            pcm: PCM16 little-endian mono at `sample_rate_hz`; the call hands over at most half a
                second more than was played.
        """

    def clear(self, utterance: int, reason: str, /) -> None:
        """Drop all audio of this utterance and of those before it, now and for ever.

        Args:
            utterance: The fence: the number that its newest audio came by.
            reason: Why, for logs.
        """


class CallActionError(BargeinError):
    """A transport could not do what an agent asked for.

    Its text is told to the agent's model and to the caller's side: "the number is busy".
    """


@runtime_checkable
class CanTransfer(Protocol):
    """A transport that can pass the caller on; having this method says so."""

    async def transfer(self, target_phone_number: str) -> None:
        """Pass the caller on; returning means that it was done.

        The call does not end by itself: a transport that no longer has the caller ends it with
        ``call.end("transferred")``.  It is cancelled after 30 s, and when who asked for it is.

        Args:
            target_phone_number: Where to, as the agent gave it: not checked.

        Raises:
            CallActionError: It cannot be done; any other error is told by its class alone.
        """


@runtime_checkable
class CanSendDTMF(Protocol):
    """A transport that can press keys for the other end; having this method says so."""

    async def send_dtmf(self, button: Button) -> None:
        """Press a key; returning means that it was done.

        The next key is given when this one is done.  It is cancelled after 5 s, and when who asked
        for it is.

        Args:
            button: The key.

        Raises:
            CallActionError: It cannot be done; any other error is told by its class alone.
        """
