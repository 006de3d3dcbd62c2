"""What a call needs from the caller's side."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol, runtime_checkable

from bargein.routes import BargeinError, Message

from .audio.playback import PlaybackKind as PlaybackKind
from .events import Button, CallActionCause, TransferStep


class Transport(Protocol):
    """The caller's side of a call.  None of its methods waits.

    If a method raises, the error is logged as ``transport_failed`` and the call continues as if the
    method had worked.

    In the other direction, a transport publishes the caller's events with ``call.publish()`` and
    reports how far audio was played with ``call.report_playback()``.  Two methods are optional.
    ``attached(call)`` is called before the first event.  ``hold(on)`` holds the player at the
    sample being heard, or resumes it there; for a transport without it, a hold clears the player,
    and the release sends the unplayed audio again, from the start of the last word heard.  A
    transport whose other end has a voice of its own speaks text: see ``SpeaksText``.  One on a
    telephone line may also transfer the caller and press keys: see ``CanTransfer`` and
    ``CanSendDTMF``.
    """

    @property
    def audio(self) -> bool:
        """Whether the caller hears audio; otherwise only text travels."""
        ...

    @property
    def sample_rate_hz(self) -> int:
        """The sample rate of the audio it plays, in Hz."""
        ...

    def send(self, message: Message, /) -> None:
        """Send an event to the caller's side, which ignores those it does not know."""

    def play(self, utterance: int, pcm: bytes, /) -> None:
        """Play audio after all earlier audio.

        Args:
            utterance: The number of the utterance; audio that is sent again has a new one, which
                ``call.answers.player_number()`` maps back.  Numbers only rise, so new audio is
                above every fence.
            pcm: PCM16 little-endian mono at `sample_rate_hz`; the call is never more than half a
                second ahead of what was played.
        """

    def clear(self, utterance: int, reason: str, /) -> None:
        """Drop all audio up to and including this utterance, even if it arrives later.

        Args:
            utterance: The fence: the number under which its newest audio was sent.
            reason: Why, for logs.
        """


@runtime_checkable
class SpeaksText(Protocol):
    """A transport whose other end speaks text with a voice of its own; it says so by having this
    method.

    Its ``audio`` is False.  What was heard is what it reports with
    ``call.answers.audio.report_speech()``, and
    ``clear()`` silences the voice.  One whose voice nothing but the caller silences has
    ``silences = False``.
    """

    def speak(self, utterance: int, text: str, last: bool, interruptible: bool, /) -> None:
        """Speak text, after all earlier text of the utterance.

        An utterance follows when the one before it was heard or cut.

        Args:
            utterance: The number of the utterance; numbers rise.
            text: The next text of it, with its own spaces; may be empty with `last`.
            last: Whether no more text of it comes.
            interruptible: Whether the caller's voice may stop it.
        """


class CallActionError(BargeinError):
    """A transport could not do what an agent asked for.

    Attributes:
        reason: Why, in words for the agent's model and the caller's side, such as "the number is
            busy".
        cause: The kind of reason.
        advice: What the developer can do about it, for the log; may be empty.
    """

    def __init__(
        self, reason: str = "", *, cause: CallActionCause = "failed", advice: str = ""
    ) -> None:
        """Say why it could not be done.

        Args:
            reason: In words for the agent's model.
            cause: The kind of reason.
            advice: What the developer can do about it; neither the model nor the caller gets it.
        """
        super().__init__(f"{reason}: {advice}" if advice else reason)
        self.reason = reason
        self.cause: CallActionCause = cause
        self.advice = advice


@runtime_checkable
class CanTransfer(Protocol):
    """A transport that can transfer the caller; it says so by having this method."""

    async def transfer(self, target_phone_number: str) -> None:
        """Transfer the caller; return once that is done.

        The call does not end by itself: a transport that no longer has the caller ends it with
        ``call.end("transferred")``.  The call cancels this after 30 s, and when the code that asked
        for the transfer is cancelled.

        Args:
            target_phone_number: The number, as the agent gave it; not checked.

        Raises:
            CallActionError: It cannot be done; any other error is told by its class alone.
        """


Consult = Callable[[Any], Awaitable[bool]]
"""Talks to a colleague in a call of its own, and returns whether they take the waiting caller."""


@runtime_checkable
class CanConsult(Protocol):
    """A transport that can ask a colleague before a transfer; it says so by having this method."""

    async def consult(
        self,
        target_phone_number: str,
        consult: Consult | str,
        progressed: Callable[[TransferStep], None],
    ) -> None:
        """Call a colleague while the caller waits, and connect both if the colleague agrees.

        As for ``CanTransfer``, the call ends by ``call.end("transferred")``.  If it is cancelled,
        or the colleague does not take the call, the caller is with the agent as before, and the
        colleague's call is ended.

        Args:
            target_phone_number: The colleague's number, as the agent gave it; not checked.
            consult: Answers the colleague's call, and returns whether they take the caller; or what
                they are told before they say so.
            progressed: Called with each step.

        Raises:
            CallActionError: The two are not connected; ``cause`` says why.
        """


@runtime_checkable
class CanSendDTMF(Protocol):
    """A transport that can press keys for the other end; it says so by having this method."""

    async def send_dtmf(self, button: Button) -> None:
        """Press a key; return once that is done.

        The call presses the next key when this one is done.  It cancels this after 5 s, and when
        the code that asked for the key is cancelled.

        Args:
            button: The key.

        Raises:
            CallActionError: It cannot be done; any other error is told by its class alone.
        """
