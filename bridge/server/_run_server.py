"""Runs a server until a signal stops it; a second signal closes it by force."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Unpack

import trio

from bargein.routes.error_containment import only_error
from bargein.routes.logs import get_logger

from ..stopping._stop_signals import StopSignals
from ..wires._limits import Limits
from ._serve import open_server
from ._server import Server
from ._server_options import ServerOptions

if TYPE_CHECKING:
    from .._app import App

FORCE_S = 2.0
"""How long closing by force may take before the process is ended, in seconds."""

log = get_logger()


def run(
    app: App,
    *,
    on_ready: Callable[[Server], None] = lambda server: None,
    **options: Unpack[ServerOptions],
) -> None:
    """Serve an app until SIGINT, SIGTERM or SIGHUP, then drain; a second signal closes at once.

    A server that does not stop is ended by force: at the second signal if its event loop hangs, 5 s
    after the first if it still hangs, and 2 s after the time for draining.

    Args:
        app: Answers the calls.
        on_ready: Called on the event loop once calls are accepted; must not wait.
        options: Those of ``open_server``.

    Raises:
        OSError: The address cannot be listened on; ``errno`` says why.
        UnguardedError: It is public, and nothing keeps strangers out.
        RuntimeError: This is not the main thread, the only one that gets signals.
        Exception: Opening the app raised this, or the server failed with it.
    """
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError(
            "run() stops on signals, which only the main thread gets; in another thread, call "
            "trio.run() with an async function that awaits serve(app)"
        )

    async def main() -> None:
        serving = trio.CancelScope()
        stopping = _Stopping(serving, (options.get("limits") or Limits()).drain_s)
        with stopping.signals.heard(), serving:
            async with open_server(app, **options) as server:
                stopping.server = server
                on_ready(server)
                await trio.sleep_forever()

    try:
        trio.run(main)
    except BaseExceptionGroup as group:
        raise only_error(group) from group


class _Stopping:
    """Stops a server at the first signal, and closes it by force at the second."""

    def __init__(self, serving: trio.CancelScope, drain_s: float) -> None:
        self.server: Server | None = None
        self.signals = StopSignals(self._obey)
        self._serving = serving
        self._drain_s = drain_s

    def _obey(self, number: int) -> None:
        name = signal.Signals(number).name
        if not self._serving.cancel_called:
            log.info("stopping", signal=name)
            self._serving.cancel(reason=name)
            self.signals.limit(self._drain_s + FORCE_S)
            return
        log.warning("stopping_by_force", signal=name)
        if self.server is not None:
            self.server.force()
        self.signals.make_final()
        self.signals.limit(FORCE_S)
