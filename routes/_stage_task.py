"""Runs stages in a task of their own.

A suspended generator may hold a cancel scope or a nursery, and trio applies these to the task that
iterates it.  In one task, a scope of one stage would cancel what the next stage waits for, and a
``through`` function that awaits its next value under a deadline would close scopes out of order.
So where user stages follow one another, each has its own task, with a pump between them.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import trio

from ._run import Run
from ._stage_results import CLOSE_S
from .error_containment import as_error


class StageTask:
    """Iterates stages in a task of the run, and passes on their values one by one.

    Cancelling ``anext()`` loses no value and does not affect the earlier stages.
    """

    def __init__(self, upstream: AsyncIterator[Any], run: Run, ahead: int = 0) -> None:
        """Create the pump; its task starts with the first value asked for.

        Args:
            upstream: The values of the earlier stages.
            run: The run of the stages.
            ahead: How many values they may be ahead; 0 produces each value on demand.
        """
        # The sender holds one value besides those in the channel.
        self._send, self._receive = trio.open_memory_channel[Any](max(0, ahead - 1))
        self._upstream = upstream
        self._run = run
        self._ahead = ahead
        self._scope = trio.CancelScope()
        self._done: trio.Event | None = None
        self._error: Exception | None = None
        self._wanted = trio.Event()
        self._is_asked = self._is_left = self._is_stepping = False

    def __aiter__(self) -> StageTask:
        return self

    async def __anext__(self) -> Any:
        if self._done is None:
            self._start_stages()
        if not self._is_asked:
            self._is_asked = True
            self._wanted.set()
        with contextlib.suppress(trio.EndOfChannel):
            value = await self._receive.receive()
            self._is_asked = False
            return value
        self._raise_error()
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Close the earlier stages, in bounded time.

        Raises:
            Exception: They failed, and the error was not raised yet.
        """
        self._is_left = True
        self._receive.close()
        if self._done is None:
            await self._upstream.aclose()  # type: ignore[attr-defined]  # a layer is a generator
            return
        self._wanted.set()
        if self._is_stepping:
            self._scope.cancel(reason="the stages after have finished")
        with trio.move_on_after(CLOSE_S, shield=True):
            await self._done.wait()
        self._raise_error()

    def _start_stages(self) -> None:
        self._done = trio.Event()
        name = f"stages of {self._run.source}"
        self._run.waits.start_in_nursery(self._pump, self._done, name=name)

    def _raise_error(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error

    async def _pump(self, done: trio.Event) -> None:
        # A plain `with` closes it: a checkpoint here could lose an error of the earlier stages.
        try:
            with self._scope, self._send:
                try:
                    async with aclosing(self._upstream) as items:  # type: ignore[type-var]  # ditto
                        await self._hand_on(items)
                except BaseException as error:  # noqa: ASYNC103, BLE001 - raised to whoever reads the values
                    self._error = as_error(error)
        finally:
            done.set()

    async def _hand_on(self, items: AsyncIterator[Any]) -> None:
        run = self._run
        while True:
            if not self._ahead:
                await run.waits.outside_stages(self._wanted.wait)
                self._wanted = trio.Event()
            if self._is_left:
                return
            self._is_stepping = True
            try:
                value = await anext(items)
            except StopAsyncIteration:
                return
            finally:
                self._is_stepping = False
            try:
                await run.waits.outside_stages(self._send.send, value)
            except trio.BrokenResourceError:
                return  # the later stages have finished
