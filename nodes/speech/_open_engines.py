"""Opens what a speech stack loads before the first call."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import trio

from bargein.routes.logs import get_logger

from ._late_answer_fillers import SpokenFillers

log = get_logger()


@asynccontextmanager
async def open_engines(*engines: object, fillers: SpokenFillers | None) -> AsyncIterator[None]:
    """Open the engines that can be opened, one after the other, and speak the fillers in advance.

    Args:
        engines: Ears, voices and models; one without ``open()`` needs no opening.
        fillers: What the voice says when an answer is late; ``None`` for nothing.
    """
    began_s = trio.current_time()
    async with AsyncExitStack() as stack:
        for engine in engines:
            opener = getattr(engine, "open", None)
            if opener is not None:
                await stack.enter_async_context(opener())
        if fillers is not None:
            await fillers.prepare()
        log.info("speech_ready", took_s=round(trio.current_time() - began_s, 2))
        yield
