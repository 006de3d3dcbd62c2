"""Asks a speech-to-speech model for a word, to see whether it works."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

from bargein.nodes.llm import AnswerPiece
from bargein.routes.error_containment import closing
from bargein.routes.service_nursery import open_service_nursery

from ._caller_audio import CallerAudioStream
from ._protocol import RealtimeModel
from ._realtime_connection import RealtimeLine, SessionSettings


async def probe_realtime(
    model: RealtimeModel, messages: Sequence[Mapping[str, Any]]
) -> AsyncGenerator[AnswerPiece, None]:
    """Yield what the model answers, over a session of its own.

    Args:
        model: The model.
        messages: What it is asked.

    Raises:
        VendorError: The session or the response failed.
    """

    def ignore() -> None:
        """Do nothing: a conversation of one question has nothing to keep."""

    line = RealtimeLine(
        model,
        lambda: SessionSettings("", (), detects=False, speaks=True),
        on_committed=ignore,
        on_restart=ignore,
        everything=lambda: messages,
    )
    async with (
        line.open_stream() as stream,
        open_service_nursery("the model was probed") as nursery,
    ):
        nursery.start_soon(_hear, stream)  # a session that nobody hears yields nothing
        line.ask_about((), len(messages))
        async with closing(line.stream(messages)) as pieces:
            async for piece in pieces:
                yield piece


async def _hear(stream: CallerAudioStream) -> None:
    while True:
        await stream.receive()
