"""Load 15: the cost of a provider compared with a bare WebSocket loop that does the same.

The provider is a fake of ``bargein.fakes`` in a process of its own, over real sockets. The ear is
Deepgram's, which gets 80 ms per message; the voice is Cartesia's, which sends the audio of a word
and its times in separate messages. Both sides send and decode the same messages.
"""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import trio

from bargein.ears import DeepgramFlux
from bargein.speech import SpeechPiece, TurnOver, VoiceStyle
from bargein.voices import CartesiaVoice

from ._bare_provider import open_bare
from ._measure import Row, Size, compare
from ._process import ROOT, environment

FRAME = b"\x01\x00" * 320
EVERY_S = 0.02
FRAMES_A_MESSAGE = 4
SILENCE = bytes(640)
SILENT_FRAMES = 52
"""The fake ends a turn after 0.8 s of silence."""

CARTESIA = {"Authorization": "Bearer k", "Cartesia-Version": "2026-08-14"}

UTTERANCES = 4
SENTENCE = "these words last about as long as those of people do " * 2

EAR_BOUND = 1.45
"""A frame took 1.20 and 1.31 times the CPU, in runs of eight rounds on two busy cores."""

VOICE_BOUND = 1.8
"""A piece, with the message of its words' times, took 1.45 and 1.50 times the CPU, in runs of eight
rounds on two busy cores: three tasks handle it; the bare loop is one task."""


@contextmanager
def providers(*asked: str) -> Iterator[tuple[str, str]]:
    """Run the fakes while the block runs, and yield the addresses of the ear and the voice.

    Args:
        *asked: See `_fake_providers`.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.benchmarks._fake_providers", *asked],
        stdout=subprocess.PIPE, text=True, env=environment(), cwd=ROOT,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        ear, voice = process.stdout.readline().split()
        where = "ws://127.0.0.1" if len(asked) < 2 else "wss://localhost"
        yield f"{where}:{ear}", f"{where}:{voice}"
    finally:
        process.kill()
        process.wait()


async def _say_frames(send: Callable[[bytes], Awaitable[None]], frames: int) -> None:
    due_s = trio.current_time()
    for number in range(frames + SILENT_FRAMES):
        await send(FRAME if number < frames else SILENCE)
        due_s += EVERY_S
        await trio.sleep_until(due_s)


async def bare_ear(url: str, frames: int) -> None:
    """Send one turn from a bare loop."""
    async with (
        open_bare(f"{url}/v2/listen", Authorization="Token k") as socket,
        trio.open_nursery() as nursery,
    ):
        gathered = bytearray()

        async def send(pcm: bytes) -> None:
            gathered.extend(pcm)
            if len(gathered) == FRAMES_A_MESSAGE * len(pcm):
                await socket.send(bytes(gathered))
                gathered.clear()

        nursery.start_soon(_say_frames, send, frames)
        async for message in socket.messages():
            if message.get("event") == "EndOfTurn":
                break


async def our_ear(url: str, frames: int) -> None:
    """Send one turn through `DeepgramFlux`."""
    async with (
        DeepgramFlux(api_key="k", base_url=url).open_stream() as stream,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(_say_frames, stream.send, frames)
        while not isinstance(await stream.receive(), TurnOver):
            pass


def _ear_us(
    hear: Callable[[str, int], Awaitable[None]], url: str, streams: int, frames: int
) -> list[float]:
    """Return the CPU time per frame, in µs."""

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            for _ in range(streams):
                nursery.start_soon(hear, url, frames)
                await trio.sleep(EVERY_S / streams)

    began_s = time.process_time()
    trio.run(main)
    return [(time.process_time() - began_s) * 1e6 / streams / (frames + SILENT_FRAMES)]


def _asked(number: int, text: str, *, more: bool) -> str:
    return json.dumps({
        "context_id": f"u{number}", "model_id": "sonic-3", "voice": {"mode": "id", "id": "joe"},
        "output_format": {"container": "raw", "encoding": "pcm_s16le", "sample_rate": 24_000},
        "add_timestamps": True, "max_buffer_delay_ms": 0, "transcript": text, "continue": more,
    })  # fmt: skip


async def bare_voice(url: str) -> float:
    """Have all sentences said at once by a bare loop; return the CPU time per piece, in µs."""
    async with open_bare(f"{url}/tts/websocket", **CARTESIA) as socket:
        began_s = time.process_time()
        for number in range(UTTERANCES):
            await socket.send(_asked(number, SENTENCE, more=True))
            await socket.send(_asked(number, "", more=False))
        pieces = done = 0
        heard: dict[str, list[tuple[bytes, list[Any]]]] = {}
        async for message in socket.messages():
            said = heard.setdefault(message["context_id"], [])
            if message["type"] == "chunk":
                said.append((base64.b64decode(message["data"]), []))
                pieces += 1
            elif message["type"] == "timestamps":
                times = message["word_timestamps"]
                words = [*zip(times["words"], times["start"], times["end"], strict=True)]
                said.append((b"", words))
            elif message["type"] == "done":
                heard[message["context_id"]].clear()
                done += 1
                if done == UTTERANCES:
                    break
        return (time.process_time() - began_s) * 1e6 / pieces


async def our_voice(url: str) -> float:
    """Have all sentences said at once by `CartesiaVoice`; return the CPU time per piece, in µs."""
    voice = CartesiaVoice("joe", api_key="k", base_url=url)
    pieces = 0

    async def say() -> None:
        nonlocal pieces
        async with voice.open_context(VoiceStyle()) as context:
            await context.send(SENTENCE)
            await context.end()
            said = []
            while (piece := await context.receive()) is not None:
                said.append(piece)
                # Word times come in a separate piece without audio.
                pieces += isinstance(piece, SpeechPiece) and bool(piece.pcm)

    async with voice.open():
        async with voice.open_context(VoiceStyle()) as context:
            await context.send("Hello.")  # opens the line before the measurement
        began_s = time.process_time()
        async with trio.open_nursery() as nursery:
            for _ in range(UTTERANCES):
                nursery.start_soon(say)
        return (time.process_time() - began_s) * 1e6 / pieces


def _voice_us(say: Callable[[str], Awaitable[float]], url: str) -> list[float]:
    return [trio.run(say, url)]


def rows(size: Size) -> list[Row]:
    """Run the load."""
    streams, frames = (20, 60) if size.calls >= 20 else (3, 10)
    rounds = max(1, size.stream_rounds)
    with providers() as (ear_url, voice_url):
        return [
            compare(
                "CPU of a frame to an ear", "us",
                partial(_ear_us, bare_ear, ear_url, streams, frames),
                partial(_ear_us, our_ear, ear_url, streams, frames),
                rounds=rounds, bound=EAR_BOUND, note=f"{streams} callers",
            ),
            compare(
                "CPU of a piece from a voice", "us",
                partial(_voice_us, bare_voice, voice_url),
                partial(_voice_us, our_voice, voice_url),
                rounds=rounds, bound=VOICE_BOUND, note=f"{UTTERANCES} utterances at once",
            ),
        ]  # fmt: skip
