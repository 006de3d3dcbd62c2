"""The one door between a call and its transport: what the transport raises stays outside.

A call cuts, pauses and hangs up through its transport.  If an error of the transport came out in
the middle of that, what follows would be left undone: a turn without an end, a call that is never
over.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import structlog

from bargein.routes import Message
from bargein.routes.containment import Failures, as_error, text_of

from ._transport import Transport

log = structlog.get_logger()


class TransportGuard:
    """Hands each call on to a transport; logs what that raises, and goes on.

    What a method of the transport raised counts as done: text as sent, audio as played.

    Attributes:
        send: As the transport's own, but never raises.
        play: As the transport's own, but never raises.
        clear: As the transport's own, but never raises.
        hold: The same; ``None`` for a player that cannot stand still.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._failures = Failures(transport=type(transport).__name__)
        self._fails = False  # looked at with each chunk of audio, so no question to the failures
        self.send: Callable[[Message], None] = self._guarded("send", transport.send)
        self.play: Callable[[int, bytes], None] = self._guarded("play", transport.play)
        self.clear: Callable[[int, str], None] = self._guarded("clear", transport.clear)
        holds: Callable[[bool], None] | None = getattr(transport, "hold", None)
        self.hold = None if holds is None else self._guarded("hold", holds)

    @property
    def audio(self) -> bool:
        """Whether the caller hears audio; otherwise only text travels."""
        return self._transport.audio

    @property
    def sample_rate_hz(self) -> int:
        """The rate of the audio it plays, in Hz."""
        return self._transport.sample_rate_hz

    def _guarded(self, method: str, fn: Callable[..., object]) -> Callable[..., None]:
        def guarded(*args: Any) -> None:
            try:
                fn(*args)
            except BaseException as error:  # noqa: ASYNC103, BLE001 - foreign code: told, and the call goes on
                self._failed(method, as_error(error))
            else:
                if self._fails:
                    self._worked(method)

        return guarded

    def _failed(self, method: str, error: Exception) -> None:
        self._fails = True
        if self._failures.is_news(method, error):
            log.error(
                "transport_failed",
                transport=type(self._transport).__name__,
                method=method,
                error=type(error).__name__,
                pii_error=text_of(error),
                exc_info=error,
            )

    def _worked(self, method: str) -> None:
        self._failures.works(method)
        self._fails = bool(self._failures.stages)
