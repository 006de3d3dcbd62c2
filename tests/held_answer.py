"""A call with an answer under way, for tests of what happens within one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import trio

from bargein import current_run
from bargein.events import UserStartedSpeaking, UserStoppedSpeaking
from bargein.testing import Caller, open_call


@asynccontextmanager
async def held_answer(*, expect_errors: Any = False) -> AsyncIterator[tuple[Caller, Any]]:
    """Open a text call with a run that lasts until it is cut; yield the caller and the run."""
    runs: list[Any] = []

    async def hold(message: Any) -> AsyncIterator[Any]:
        runs.append(current_run())
        await trio.sleep_forever()
        yield message

    async def answer(call: Any) -> None:
        bridge = call.bridge(name="agent")
        on_stop = bridge.on(UserStoppedSpeaking).interrupt_on(UserStartedSpeaking)
        on_stop.stream(hold).broadcast()

    async with open_call(answer, audio=False, expect_errors=expect_errors) as caller:
        caller.publish(UserStoppedSpeaking())
        while not runs:
            await trio.lowlevel.checkpoint()
        yield caller, runs[0]
