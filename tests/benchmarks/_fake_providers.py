"""A process with a fake ear and a fake voice on real sockets: prints their two ports, and stays."""

from __future__ import annotations

import trio

from bargein.fakes import FakeCartesiaVoice, FakeDeepgramFlux


async def _serve() -> None:
    async with FakeDeepgramFlux().serve() as ear, FakeCartesiaVoice().serve() as voice:
        print(ear, voice, flush=True)
        await trio.sleep_forever()


if __name__ == "__main__":
    trio.run(_serve)
