"""llama.cpp as the engine of a worker process; it imports nothing of this framework.

A job is the body of a chat completion, as JSON; the pieces of its answer are chunks, as JSON.
While a prompt is read, chunks without content say how far: a reading that gets on is told from one
that is stuck.

The engine always opens an HTTP server.  A TCP port would be open to every user of the machine, so
it gets a unix socket in a folder that only we can enter, and a key that nobody knows.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable
from typing import Any

BATCH = 128
"""Tokens of a prompt that are read at a time.  After each batch the engine says how far it is, and
hears a cancel.  A batch of 512 takes a tenth less of processor time, and 2 s without a word."""


def load(settings: dict[str, Any]) -> Model:
    """Load the model.

    Args:
        settings: Those of `LocalChat`, the ``folder`` of the socket, and a body to ``warm`` the
            model with, or None.
    """
    # A thread that spins while it waits starves all others on few cores.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    import xllamacpp

    params = xllamacpp.CommonParams()  # pyright: ignore[reportAttributeAccessIssue]  # in C++
    params.model.path = settings["path"]
    params.hostnames = [f"{settings['folder']}/{os.getpid()}.sock"]
    params.api_keys = [secrets.token_hex(32)]
    params.ui = False
    params.endpoint_slots = False
    params.offline = True
    params.n_threads_http = 1
    params.n_parallel = 1
    params.n_batch = params.n_ubatch = BATCH
    params.n_ctx = settings["context_tokens"]
    params.cache_ram_mib = settings["cache_mib"]
    params.swa_full = True  # else a model with a sliding window, like Gemma 3, caches no prompt
    params.cpuparams.n_threads = settings["threads"]
    params.cpuparams_batch.n_threads = settings["batch_threads"]
    params.verbosity = -1
    # It reads the model once more to see what fits beside a GPU, which is half of the time that
    # loading takes; without one there is nothing to fit.
    params.fit_params = len(xllamacpp.get_device_info()) > 1  # pyright: ignore[reportAttributeAccessIssue]  # in C++
    server = xllamacpp.Server(params)  # pyright: ignore[reportAttributeAccessIssue]  # in C++
    if settings["warm"] is not None:
        server.handle_chat_completions(settings["warm"], lambda chunk: False)
    return Model(server)


class Model:
    """Answers one chat after the other."""

    about: dict[str, Any] = {}  # noqa: RUF012 (nobody writes to it)

    def __init__(self, server: Any) -> None:
        """Answer with a server of xllamacpp."""
        self._server = server

    def run(
        self, payload: bytes, give: Callable[[bytes], None], is_cancelled: Callable[[], bool]
    ) -> None:
        """Answer one chat; a cancel stops it within a token."""

        def on_chunk(chunk: Any) -> bool:
            give(json.dumps(chunk, separators=(",", ":")).encode())
            return is_cancelled()  # True makes the engine stop

        self._server.handle_chat_completions(json.loads(payload), on_chunk)
