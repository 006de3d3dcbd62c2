"""The worker process of `LocalChat`: one model, one question at a time, lines of JSON over pipes.

Run as a script, so that it imports nothing of ours.  In: a question ``{"id", "body"}``, or
``{"cancel": id}``.  Out: ``{"ready": true}`` once; for each question its chunks ``{"id",
"chunk"}`` and at last ``{"id", "done": true}``; or ``{"id", "error"}`` before that.  Id 0 is the
loading.  The end of its input ends it, so it never outlives its parent.

The engine always opens an HTTP server.  A TCP port would be open to every user of the machine,
so it gets a unix socket in a folder that only we can enter, and a key that nobody knows.
"""

from __future__ import annotations

import json
import os
import queue
import secrets
import sys
import threading
from typing import Any, TextIO

NICENESS = 5
"""How far the model stands back where cores are few, 0 to 19.  It writes faster than people speak,
but the ears that hear the caller end, and the voice of its first clause, are waited for."""


def load(settings: dict[str, Any]) -> Any:
    """Load the model; the settings are those of `LocalChat`."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = settings["path"]
    params.hostnames = [settings["socket"]]
    params.api_keys = [secrets.token_hex(32)]
    params.ui = False
    params.endpoint_slots = False
    params.offline = True
    params.n_threads_http = 1
    params.n_parallel = 1
    params.n_ctx = settings["context_tokens"]
    params.cache_ram_mib = settings["cache_mib"]
    params.swa_full = True  # else a model with a sliding window, like Gemma 3, caches no prompt
    params.cpuparams.n_threads = settings["threads"]
    params.cpuparams_batch.n_threads = settings["batch_threads"]
    params.verbosity = -1
    return xllamacpp.Server(params)


class Worker:
    """Answers the questions of a queue; another thread may cancel the current one."""

    def __init__(self, server: Any, out: TextIO) -> None:
        """Answer with `server`, write to `out`."""
        self._server = server
        self._out = out
        self._questions: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._cancelled = 0

    def read(self, lines: TextIO) -> None:
        """Take in what the parent sends, until it is gone."""
        for line in lines:
            message = json.loads(line)
            if "cancel" in message:
                self._cancelled = message["cancel"]  # ids rise: all up to it are cancelled
            else:
                self._questions.put(message)
        os._exit(0)  # the main thread may be deep inside of the model

    def answer_all(self) -> None:
        """Answer until the process ends."""
        while True:
            question = self._questions.get()
            self._answer(question["id"], question["body"])

    def _answer(self, number: int, body: dict[str, Any]) -> None:
        def on_chunk(chunk: Any) -> bool:
            if number > self._cancelled:
                self.write(id=number, chunk=chunk)
            return number <= self._cancelled  # True makes the engine stop

        try:
            if number > self._cancelled:
                self._server.handle_chat_completions(body, on_chunk)
        except Exception as error:  # noqa: BLE001 (the parent raises it)
            self.write(id=number, error=str(error))
        self.write(id=number, done=True)

    def write(self, **message: Any) -> None:
        """Send one line."""
        self._out.write(json.dumps(message, separators=(",", ":")) + "\n")
        self._out.flush()


def main() -> None:
    """Load, say so, answer."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever the engine prints goes with its log
    worker = Worker(None, out)
    if hasattr(os, "nice"):
        os.nice(NICENESS)  # now, as the engine's threads take over that of the one that makes them
    try:
        worker = Worker(load(json.loads(sys.argv[1])), out)
    except Exception as error:  # noqa: BLE001 (the parent raises it)
        worker.write(id=0, error=f"{type(error).__name__}: {error}")
        return
    reader = threading.Thread(target=worker.read, args=(sys.stdin,), daemon=True)
    reader.start()
    worker.write(ready=True)
    worker.answer_all()


if __name__ == "__main__":
    main()
