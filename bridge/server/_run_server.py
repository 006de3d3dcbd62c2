"""Runs a server until a signal stops it; a second signal closes it by force."""

from __future__ import annotations

import signal
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING, Unpack

import structlog
import trio

from bargein.routes.error_containment import only_error

from ._serve import Server, ServerOptions, open_server

if TYPE_CHECKING:
    from .. import App

log = structlog.get_logger()


def run(
    app: App,
    *,
    on_ready: Callable[[Server], None] = lambda server: None,
    **options: Unpack[ServerOptions],
) -> None:
    """Serve an app until SIGINT or SIGTERM, then drain; a second signal closes at once.

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
        started: list[Server] = []
        with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_obey_signals, signals, serving, started)
                with serving:
                    async with open_server(app, **options) as server:
                        started.append(server)
                        on_ready(server)
                        await trio.sleep_forever()
                nursery.cancel_scope.cancel()

    try:
        trio.run(main)
    except BaseExceptionGroup as group:
        raise only_error(group) from group


async def _obey_signals(
    signals: AsyncIterator[int], serving: trio.CancelScope, started: Sequence[Server]
) -> None:
    async for number in signals:
        name = signal.Signals(number).name
        if not serving.cancel_called:
            log.info("stopping", signal=name)
            serving.cancel(reason=name)
            continue
        log.warning("stopping_by_force", signal=name)
        for server in started:
            server.force()
        return
