"""llama.cpp as the engine of a worker process; it imports nothing from this framework.

A job is the body of a chat completion, as JSON; the pieces of its answer are chunks, as JSON. While
the engine reads a prompt, it sends chunks without content that report progress, so that a slow
prompt is not mistaken for a stuck process.

The engine always opens an HTTP server. A TCP port would be open to every user of the machine, so
the server gets a Unix socket in a private folder and a random key.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable
from typing import Any

BATCH = 128
"""Prompt tokens read at a time. After each batch the engine reports progress and checks for a
cancel. Batches of 512 take a tenth less processor time, but 2 s without a report."""


def load(settings: dict[str, Any]) -> LlamaCpp:
    """Load the model.

    Args:
        settings: The settings of `LocalChat`, the ``folder`` of the socket, and the body of a
            request to ``warm`` the model with, or None.
    """
    # A thread that spins while it waits starves the others if there are few cores.
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
    params.swa_full = True  # else models with a sliding window, like Gemma 3, cache no prompt
    params.cpuparams.n_threads = settings["threads"]
    params.cpuparams_batch.n_threads = settings["batch_threads"]
    params.verbosity = -1
    # Fitting reads the model again to see what fits on a GPU, which takes half of the loading time;
    # without a GPU there is nothing to fit.
    params.fit_params = len(xllamacpp.get_device_info()) > 1  # pyright: ignore[reportAttributeAccessIssue]  # in C++
    server = xllamacpp.Server(params)  # pyright: ignore[reportAttributeAccessIssue]  # in C++
    if settings["warm"] is not None:
        server.handle_chat_completions(settings["warm"], lambda chunk: False)
    return LlamaCpp(server)


class LlamaCpp:
    """Answers one chat after the other."""

    about: dict[str, Any] = {}  # noqa: RUF012 (nobody writes to it)

    def __init__(self, server: Any) -> None:
        """Wrap a server of xllamacpp."""
        self._server = server

    def run(
        self, payload: bytes, give: Callable[[bytes], None], is_cancelled: Callable[[], bool]
    ) -> None:
        """Answer one chat; a cancel stops it within a token."""

        def on_chunk(chunk: Any) -> bool:
            give(json.dumps(chunk, separators=(",", ":")).encode())
            return is_cancelled()  # True makes the engine stop

        self._server.handle_chat_completions(json.loads(payload), on_chunk)
