"""Calls over SIP, from a PBX, a trunk or a softphone, by baresip's wheel (extra ``sip``; alpha)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, final

import trio
from websockets.http11 import Response

from bargein.routes.logs import get_logger

from ..._asyncio_thread import AsyncioThread
from ...audio.errors import need
from ...websocket import HttpRequest
from .._listening_wire import CallHost
from .._signals import Signals
from .._wire import HostedCall, NewCall, Wire, WireConnection
from ._sip_leg import SipLeg
from ._sip_session import SipSession

if TYPE_CHECKING:
    from ..._app import SpeechStack

CODECS = ("pcmu", "pcma", "g722/16000/1")
"""What the stack offers and takes, best first: all mono, at 8 and at 16 kHz."""

RTP_LOST_S = 30
"""After how many seconds without any sound of the caller's the stack ends a call."""

CLOSE_S = 5.0
"""How many seconds the stack may take to end; its thread is left behind then."""

log = get_logger()


@final
class Sip:
    """A wire that listens for SIP calls by itself, over UDP and TCP.

    It is a phone for ``App(phone=)``, and a wire for ``open_server(wires=)``; one runs in a process
    at a time.  It is as trusting as the net that it listens on: the number of
    a caller is what the caller says, so listen where only your PBX or trunk reaches it.
    """

    name = "sip"
    paths: Sequence[str] = ()
    webhooks: Sequence[str] = ()
    signals = Signals(caller_rate_hz=8_000, agent_rate_hz=8_000, carries_dtmf=True)

    def __init__(
        self,
        *,
        user: str = "agent",
        host: str = "127.0.0.1",
        port: int = 5060,
        calls_per_number: int | None = 3,
        speech: SpeechStack | None = None,
    ) -> None:
        """Keep the address; nothing listens before the server runs.

        Args:
            user: The user that is called, as in ``sip:agent@192.0.2.7``.
            host: The address of this machine to listen on, as others see it.
            port: The UDP and TCP port.
            calls_per_number: How many calls one caller may have at a time; ``None`` for no limit.
            speech: The ears and the voice of its calls, opened by the app; ``None`` for the app's.

        Raises:
            SpeechExtraError: The extra ``sip`` is not installed.
            ValueError: The user, the address or the port is none.
        """
        if not 0 < port < 65_535:
            raise ValueError(f"Sip(port=) is 1 to 65534, not {port!r}")
        self._account = need("Sip", "baresip", "sip").Account(
            user, f"{host}:{port}", "", reg_interval=0, audio_codecs=CODECS
        )
        self.speech = speech
        self._host = host
        self._port = port
        self._address = f"sip:{user}@{host}:{port}"
        self._calls_per_number = calls_per_number
        self._calls_of: dict[str, int] = {}

    def wires(self, public_url: str | None) -> Sequence[Wire]:
        """Return the wires of its calls.

        Args:
            public_url: Not needed: nobody asks over HTTP.
        """
        return (self,)

    async def claim(self, number: str, public_url: str) -> str:
        """Say that there is nothing to claim.

        Raises:
            ValueError: Always, with what to do.
        """
        raise ValueError(
            f"no request sets {number}: route it at the PBX or trunk to {self._address}"
        )

    async def restore(self, number: str) -> str:
        """Say that there is nothing to put back.

        Raises:
            ValueError: Always.
        """
        raise ValueError(f"{number} is set at the PBX or trunk, where it can be set back")

    def answer(self, request: HttpRequest) -> NewCall | Response:
        """Never called: no path is its."""
        raise NotImplementedError("Sip has no paths")

    def session(self, connection: WireConnection, call: HostedCall) -> SipSession:
        """Return the session of a call that was admitted."""
        assert isinstance(connection, SipLeg)  # of its own, by listen()
        return SipSession(connection, call, self.speech)

    async def listen(self, host: CallHost, ready: Callable[[], None]) -> None:
        """Listen until cancelled; see ``Listens``."""
        baresip = need("Sip", "baresip", "sip")
        thread = AsyncioThread("bargein-sip")
        config = baresip.Config(
            net_interface=self._host,
            max_concurrent_calls=None,  # the port counts them
            rtp_timeout=RTP_LOST_S,
            native_log_level="error",
            extra_config_text=f"sip_listen {self._host}:{self._port}\n",
        )
        runtime = baresip.Runtime()
        await thread.start()
        try:
            await thread.call(runtime.start, config)
            try:
                agent = await thread.call(self._create, runtime)
                async with trio.open_nursery() as nursery:

                    def ring(leg: SipLeg, caller: str) -> None:
                        nursery.start_soon(self._host_leg, leg, caller, host)

                    def incoming(call: Any) -> None:
                        thread.deliver(ring, SipLeg(thread, call), call.peer or "")

                    thread.post(lambda: agent.on_incoming(incoming))
                    log.info("sip_listening", host=self._host, port=self._port)
                    ready()
                    await trio.sleep_forever()
            finally:
                with trio.move_on_after(CLOSE_S, shield=True):
                    await thread.call(runtime.close)
        finally:
            await thread.close(CLOSE_S)

    async def _create(self, runtime: Any) -> Any:
        baresip = need("Sip", "baresip", "sip")
        return await baresip.UserAgent.create(runtime, self._account, transfer_policy="reject")

    async def _host_leg(self, leg: SipLeg, caller: str, host: CallHost) -> None:
        most = self._calls_per_number
        if most is not None and self._calls_of.get(caller, 0) >= most:
            log.info("sip_caller_refused", code="rate_limited", pii_caller=caller)
            await leg.reject()
            return
        self._calls_of[caller] = self._calls_of.get(caller, 0) + 1
        try:
            if await host.host(leg, NewCall(), {"from": caller}, "") is not None:
                await leg.reject()
        finally:
            self._calls_of[caller] -= 1
            if not self._calls_of[caller]:
                del self._calls_of[caller]
