"""Hosts libraries that need asyncio: one event loop, in one thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar, final

import trio

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")

CANCEL_S = 2.0
"""How many seconds a cancelled call may take to end in its own loop."""


@final
class AsyncioThread:
    """An asyncio loop in a thread; its methods are trio's, but for ``deliver()``."""

    def __init__(self, name: str) -> None:
        """Keep a name; nothing runs before ``start()``.

        Args:
            name: The name of the thread.
        """
        self._name = name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._token: trio.lowlevel.TrioToken | None = None
        self._over = trio.Event()
        self._lock = threading.Lock()
        self._delivered: list[tuple[Callable[..., None], tuple[Any, ...]]] = []

    async def start(self) -> None:
        """Start the thread; return once its loop runs."""
        self._token = trio.lowlevel.current_trio_token()
        ready = trio.Event()
        thread = threading.Thread(target=self._run, args=(ready,), name=self._name, daemon=True)
        thread.start()
        with trio.CancelScope(shield=True):  # a thread that starts does not take long
            await ready.wait()

    def _run(self, ready: trio.Event) -> None:
        import asyncio  # 50 ms, which only such libraries cost

        try:
            asyncio.run(self._main(ready))
        finally:
            self._call_in_trio(self._over.set)

    async def _main(self, ready: trio.Event) -> None:
        import asyncio

        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        self._call_in_trio(ready.set)
        await self._stop.wait()

    def _call_in_trio(self, function: Callable[[], object]) -> None:
        assert self._token is not None  # since start()
        with suppress(trio.RunFinishedError):
            self._token.run_sync_soon(function)

    async def call(self, function: Callable[..., Awaitable[T]], *args: object) -> T:
        """Run an async function in the loop, and return its result.

        Cancelling this cancels it there, and waits two seconds at most for its end.

        Args:
            function: The function.
            args: What it gets.

        Raises:
            BaseException: What it raises.
        """
        results: list[T] = []
        errors: list[BaseException] = []
        tasks: list[asyncio.Task[None]] = []
        done = trio.Event()

        async def run() -> None:
            try:
                results.append(await function(*args))
            except BaseException as error:  # noqa: ASYNC103, BLE001 - raised where it was asked for
                errors.append(error)
            finally:
                self._call_in_trio(done.set)

        import asyncio

        self.post(lambda: tasks.append(asyncio.get_running_loop().create_task(run())))
        try:
            await done.wait()
        except trio.Cancelled:
            self.post(lambda: [task.cancel() for task in tasks])
            with trio.move_on_after(CANCEL_S, shield=True):
                await done.wait()
            raise
        if errors:
            raise errors[0]
        return results[0]

    def post(self, function: Callable[[], object]) -> None:
        """Call a function in the loop soon, and do not wait for it.

        Args:
            function: The function.

        Raises:
            RuntimeError: The loop does not run.
        """
        if self._loop is None:
            raise RuntimeError(f"the thread {self._name!r} was not started")
        self._loop.call_soon_threadsafe(function)

    def deliver(self, function: Callable[..., None], *args: object) -> None:
        """Call a function in trio soon, from any thread; many calls cost one wake-up.

        Args:
            function: The function; must not raise.
            args: What it gets.
        """
        with self._lock:
            self._delivered.append((function, args))
            if len(self._delivered) > 1:
                return
        self._call_in_trio(self._call_delivered)

    def _call_delivered(self) -> None:
        with self._lock:
            delivered, self._delivered = self._delivered, []
        for function, args in delivered:
            function(*args)

    async def close(self, deadline_s: float) -> bool:
        """End the loop, and cancel what runs in it.

        Args:
            deadline_s: How many seconds that may take; the thread is left behind then.

        Returns:
            Whether it has ended.
        """
        if self._loop is None or self._stop is None:
            return True
        self.post(self._stop.set)
        with trio.move_on_after(deadline_s, shield=True):
            await self._over.wait()
        return self._over.is_set()
