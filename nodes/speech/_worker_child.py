"""What runs in a speech worker process: the loop around one engine.

Run as a script, ``python -P _worker_child.py ENGINE.py SETTINGS``, by `_worker.py`; it imports
nothing of this framework, so that it starts at once and a GPL engine lives in a process of its own.

Frames in both directions: u32 length of what follows, u8 kind, u32 job, payload (little-endian).

    in:  ``T`` synthesise, payload: text in UTF-8          ``C`` cancel that job
    out: ``R`` ready, payload: JSON {"sample_rate_hz"}     ``E`` the job ended (or was cancelled)
         ``P`` piece, payload: u32 length of the words' JSON, that JSON, PCM16 mono
         ``X`` the job failed, payload: message

End of input ends the process at once, whatever it is doing: it never outlives its parent.
"""

from __future__ import annotations

import importlib.util
import json
import os
import queue
import struct
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO, Protocol

HEADER = struct.Struct("<IBI")
Words = list[tuple[str, float, float]]


class Engine(Protocol):
    """What a module given as ENGINE.py returns from its ``load(settings)``."""

    sample_rate_hz: int

    def synthesize(
        self, text: str, is_cancelled: Callable[[], bool]
    ) -> Iterable[tuple[bytes, Words]]:
        """Yield pieces of PCM16 and their words; stop early once `is_cancelled()` is true."""
        ...


def read_frames(stream: BinaryIO) -> Iterator[tuple[bytes, int, bytes]]:
    """Yield (kind, job, payload) until the stream ends."""
    while len(head := stream.read(HEADER.size)) == HEADER.size:
        length, kind, job = HEADER.unpack(head)
        yield bytes((kind,)), job, stream.read(length - 5)


def frame(kind: bytes, job: int, payload: bytes = b"") -> bytes:
    """Return one frame as bytes."""
    return HEADER.pack(5 + len(payload), kind[0], job) + payload


class _Inbox:
    """Reads what the parent sends, in a thread, so that a cancel is seen in mid-synthesis."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._cancelled = 0
        self.jobs: queue.SimpleQueue[tuple[int, str]] = queue.SimpleQueue()

    def run(self) -> None:
        for kind, job, payload in read_frames(self._stream):
            if kind == b"C":
                self._cancelled = max(self._cancelled, job)
            else:
                self.jobs.put((job, payload.decode()))
        os._exit(0)  # the engine may be inside a long native call: nothing gentler would end it

    def is_cancelled(self, job: int) -> bool:
        return job <= self._cancelled  # jobs are numbered in order and run one at a time


def _load(path: str, settings: dict[str, Any]) -> Engine:
    spec = importlib.util.spec_from_file_location("speech_engine", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path!r} is no Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    engine: Engine = module.load(settings)
    return engine


def _run(job: int, text: str, engine: Engine, inbox: _Inbox, out: BinaryIO) -> None:
    try:
        for pcm, words in engine.synthesize(text, lambda: inbox.is_cancelled(job)):
            if inbox.is_cancelled(job):
                break
            meta = json.dumps(words).encode()
            out.write(frame(b"P", job, struct.pack("<I", len(meta)) + meta + pcm))
            out.flush()
        end = frame(b"E", job)
    except Exception as error:  # noqa: BLE001 - it is told, and the process lives on
        end = frame(b"X", job, f"{type(error).__name__}: {error}".encode())
    out.write(end)
    out.flush()


def main(engine_path: str, settings: str) -> None:
    """Load the engine, say that it is ready, and serve jobs until the input ends.

    Args:
        engine_path: Python file with a function ``load(settings) -> Engine``.
        settings: JSON object for that function.
    """
    # Native libraries print to descriptor 1: what they say goes to the log, not into our frames.
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    inbox = _Inbox(sys.stdin.buffer)
    threading.Thread(target=inbox.run, daemon=True).start()
    try:
        engine = _load(engine_path, json.loads(settings))
    except Exception as error:  # noqa: BLE001 - whatever it is, it is told to the parent
        out.write(frame(b"X", 0, f"{type(error).__name__}: {error}".encode()))
        out.flush()
        sys.exit(1)
    ready = json.dumps({"sample_rate_hz": engine.sample_rate_hz})
    out.write(frame(b"R", 0, ready.encode()))
    out.flush()
    while True:
        job, text = inbox.jobs.get()
        _run(job, text, engine, inbox, out)


if __name__ == "__main__":
    main(*sys.argv[1:])
