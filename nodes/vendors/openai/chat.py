"""A chat model that uses any endpoint with OpenAI's chat completions API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bargein.nodes.llm.completion_chunks import ChunkAssembler
from bargein.nodes.llm.completion_fields import with_own_fields
from bargein.nodes.llm.http_chat import HttpChat
from bargein.nodes.llm.http_reply import Reading

from ._address import OPENAI_HTTP

__all__ = ["OpenAIChat"]


class OpenAIChat(HttpChat):
    """Streams answers from any endpoint with OpenAI's ``/chat/completions``; see `HttpChat`.

    OPENAI_MODEL, OPENAI_API_KEY and OPENAI_BASE_URL stand for arguments that are left out.
    """

    _path = "/chat/completions"
    _vendor = OPENAI_HTTP

    def _body(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]
    ) -> dict[str, Any]:
        return {
            "model": self.model,
            "messages": with_own_fields(messages, self.provider),
            "stream": True,
            "stream_options": {"include_usage": True},
            "tools": list(tools) or None,
        }

    def _reading(self) -> Reading:
        return ChunkAssembler(self.model, self.provider, self._vendor.errors)
