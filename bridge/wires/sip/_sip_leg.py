"""One call of the SIP stack, as its session and the port see it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, final

import trio

from bargein.routes.logs import get_logger

from ..._asyncio_thread import AsyncioThread
from ...audio.errors import need
from ...events import Button
from ...websocket import Data, Source
from ._sip_transport import LineAudio

MOST_READ = 16_000
"""How many bytes of a caller's sound are taken at once: half a second at 16 kHz."""

log = get_logger()


@final
class StackAudio:
    """The sound of one call of baresip's; see ``LineAudio``."""

    def __init__(self, audio: Any) -> None:
        """Keep the sound, whose streams are open.

        Args:
            audio: The ``CallAudio``.
        """
        baresip = need("Sip", "baresip", "sip")
        self._audio = audio
        # The far end may renegotiate at every moment: the next operation finds the new streams.
        self._gone = (baresip.AudioNotActive, baresip.AudioRestarted)
        self.rate_hz: int = audio.info().tx_sample_rate

    def read(self) -> bytes:
        try:
            return bytes(self._audio.read(MOST_READ))
        except self._gone:
            return b""

    def write(self, pcm: bytes) -> int:
        try:
            return int(self._audio.write(pcm))
        except self._gone:
            return 0

    def waiting(self) -> int:
        try:
            return int(self._audio.info().tx_buffered)
        except self._gone:
            return 0

    def flush(self) -> None:
        with suppress(*self._gone):
            self._audio.flush_tx()


@final
class NoAudio:
    """The sound of a call that is not answered; see ``LineAudio``."""

    rate_hz = 8_000

    def read(self) -> bytes:
        return b""

    def write(self, pcm: bytes) -> int:
        return 0

    def waiting(self) -> int:
        return 0

    def flush(self) -> None:
        """Do nothing: nothing waits."""


@final
class SipLeg:
    """A call of the stack; as ``WireConnection`` it carries no messages.

    Attributes:
        closed: Set when the far end, or this one, has ended it.
        why_closed: Why, in the stack's words.
        audio: Its sound; none before ``answer()`` has returned True.
        on_key: Called with each key that the caller presses.
        close_s: Seconds that hanging up may take.
    """

    close_s = 2.0
    close_code = 1005
    close_sent = None

    def __init__(self, thread: AsyncioThread, call: Any) -> None:
        """Keep the call; runs in the loop of its library.

        Args:
            thread: Where its library runs.
            call: The ``Call``.
        """
        self.closed = trio.Event()
        self.why_closed = ""
        self.on_key: Callable[[Button], None] = lambda button: None
        self._thread = thread
        self._call = call
        self._established = trio.Event()
        self.audio: LineAudio = NoAudio()
        call.on(self._heard)
        call.on_dtmf(lambda event: thread.deliver(self._pressed, event.digit))

    def _heard(self, event: Any) -> None:
        baresip = need("Sip", "baresip", "sip")
        if event.event is baresip.Event.CALL_ESTABLISHED:
            self._thread.deliver(self._established.set)
        elif event.event is baresip.Event.CALL_CLOSED:
            self._thread.deliver(self._over, event.text or "")

    def _over(self, why: str) -> None:
        self.why_closed = why
        self.closed.set()

    def _pressed(self, digit: Button) -> None:
        self.on_key(digit)

    async def answer(self, within_s: float) -> bool:
        """Answer it; return whether the caller is there, with sound.

        Args:
            within_s: How many seconds the caller's ACK and the sound may take.
        """
        if not await self._try(self._call.answer):
            return False
        with trio.move_on_after(within_s):
            async with trio.open_nursery() as nursery:
                for event in (self._established, self.closed):
                    nursery.start_soon(self._cancel_after, event, nursery.cancel_scope)
            while not self.closed.is_set():
                info = self._info()
                if info is not None and info.tx_ready and info.rx_ready:
                    self.audio = StackAudio(self._call.audio)
                    return True
                await trio.sleep(0.01)
        return False

    @staticmethod
    async def _cancel_after(event: trio.Event, scope: trio.CancelScope) -> None:
        await event.wait()
        scope.cancel(reason="it came")

    def _info(self) -> Any:
        baresip = need("Sip", "baresip", "sip")
        try:
            return self._call.audio.info()
        except baresip.AudioNotActive:
            return None

    async def reject(self) -> None:
        """Say that the line is busy."""
        await self._try(self._call.reject)

    async def hang_up(self) -> None:
        """End it, unless it is over."""
        if not self.closed.is_set():
            await self._try(self._call.hangup)

    async def _try(self, function: Callable[[], Awaitable[Any]]) -> bool:
        baresip = need("Sip", "baresip", "sip")
        try:
            await self._thread.call(function)
        except baresip.BaresipError as error:  # most often: it is over already
            log.info("sip_refused", error=type(error).__name__)
            return False
        return True

    # --- as a connection, for the port ----------------------------------------------------------

    @property
    def is_open(self) -> bool:
        return not self.closed.is_set()

    @property
    def is_over(self) -> bool:
        return self.closed.is_set()

    @property
    def message_at_s(self) -> float:
        """Now: the stack itself ends a call without sound."""
        return trio.current_time()

    @property
    def was_closed_by_peer(self) -> bool:
        return self.closed.is_set()

    def end_with(self, code: int, reason: str = "") -> None:
        """Do nothing: a call over SIP has no close frame."""

    def cut(self, why: str = "cut") -> None:
        """Do nothing: the session hangs up."""

    def check(self, now_s: float) -> None:
        """Do nothing: the stack itself ends a call without sound."""

    async def first(self) -> Data | None:
        """Return None: no message comes."""
        await trio.lowlevel.checkpoint()
        return None

    async def run(
        self,
        source: Source,
        take: Callable[[Data], None],
        may_read: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Wait for the end of the call."""
        await self.closed.wait()
