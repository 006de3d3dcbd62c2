"""Keeps what a caller enters from everybody but the one who asked for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import trio

from bargein.routes.error_containment import CONTAINED
from bargein.routes.logs import get_logger

from .._line_abilities import CallActionError
from ..events import (
    CustomReceived,
    DTMFInput,
    PrivateInput,
    RecordingPaused,
    RecordingResumed,
    TranscriptionFailed,
    UserAudio,
    UserStartedSpeaking,
    UserStoppedSpeaking,
    UserTranscriptionReceived,
)

if TYPE_CHECKING:
    from ..call._call import Call

TAIL_S = 0.5
"""For how many seconds after the last key the line stays silenced: its tone lasts as long as the
key is held, and frames of it may be on their way."""

PAUSE_S = 5.0
"""How long a carrier may take to pause its recording, or to resume it, in seconds."""

END_S = TAIL_S + PAUSE_S + 1.0
"""How long ``Privacy.end()`` may take, in seconds: longer than the carrier, so that a carrier which
is late is told."""

log = get_logger()


@runtime_checkable
class CanPauseRecording(Protocol):
    """A transport whose carrier records the line; it says so by having this method."""

    async def pause_recording(self, on: bool, /) -> None:
        """Pause the carrier's recording, or resume it; return once that is done.

        Nothing being recorded is no error.  The call cancels this after 5 s, and when the code that
        asked for it is cancelled.

        Args:
            on: Whether it pauses.

        Raises:
            CallActionError: It cannot be done.
        """


class Privacy:
    """A stretch of a call in which keys reach one function, and nothing else is heard or recorded.

    Each event of the caller's side passes it before chains, models, taps and transports get it:
    sound becomes silence of the same length, and words are dropped as keys are.
    """

    def __init__(self, call: Call, on_key: Callable[[str], None]) -> None:
        """Prepare it.

        Args:
            call: The call.
            on_key: Gets each key.
        """
        self._call = call
        self._on_key = on_key
        self._start_s = 0.0
        self._is_ending = False
        self._unscreen: Callable[[], None] | None = None

    async def start(self) -> None:
        """Silence the line, and pause the carrier's recording; cancelling this is safe.

        Raises:
            CallActionError: The carrier goes on recording.
        """
        self._start_s = trio.current_time()
        self._unscreen = self._call.screen(self._screened)
        self._call.publish(RecordingPaused(), source="call")
        await self._pause(True)

    async def end(self) -> None:
        """Let the line be heard and recorded again, whatever happened.

        Cancelling this lets the line be heard at once; the carrier's recording may stay paused, so
        shield it, for `END_S`.

        Raises:
            CallActionError: The carrier did not resume its recording.
        """
        self._is_ending = True
        try:
            await trio.sleep(TAIL_S)
            await self._pause(False)
        finally:
            self._lift()

    async def _pause(self, on: bool) -> None:
        """Pause the carrier's recording, or resume it, if its transport can."""
        pause = self._call.actions.pause_recording
        await trio.lowlevel.checkpoint()
        if pause is None:
            return
        try:
            with trio.fail_after(PAUSE_S), CONTAINED:
                await pause(on)
        except CallActionError:
            raise
        except Exception as error:
            log.exception("transport_failed", method="pause_recording")
            raise CallActionError(type(error).__name__) from None

    def _lift(self) -> None:
        if self._unscreen is not None:
            self._unscreen()
            self._unscreen = None
            paused_s = trio.current_time() - self._start_s
            self._call.publish(RecordingResumed(paused_s=paused_s), source="call")

    def _screened(self, event: Any) -> Any:
        match event:
            case UserAudio(pcm=pcm, sample_rate_hz=rate_hz):
                return UserAudio(pcm=bytes(len(pcm)), sample_rate_hz=rate_hz)
            case DTMFInput(button=button):
                if not self._is_ending:
                    self._on_key(button)
                return PrivateInput()
            case UserStartedSpeaking() | UserTranscriptionReceived() | CustomReceived():
                return PrivateInput()
            case UserStoppedSpeaking():  # of a turn that may have begun before
                return TranscriptionFailed(reason="no_words")
        return event
