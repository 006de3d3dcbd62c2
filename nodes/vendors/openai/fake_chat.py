"""A fake of chat completions, by the types of OpenAI's SDK 3.54."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from bargein.nodes.fakes import FakeChat, FaultStage, StreamedEvent

__all__ = ["FakeOpenAIChat"]


class FakeOpenAIChat(FakeChat):
    """``/chat/completions``."""

    def call_events(self, body: Mapping[str, Any]) -> Sequence[StreamedEvent]:
        """Return the chunks of the calls, if the newest message is the user's."""
        if not self._calls or not body.get("tools") or body["messages"][-1]["role"] != "user":
            return ()
        chunks: list[StreamedEvent] = [_chunk(fields) for fields in self.thoughts()]
        for index, (name, arguments) in enumerate(self._calls.items()):
            raw = json.dumps(arguments)
            own = self.own_fields(index)
            function = {"name": name, "arguments": ""}
            id = f"call_{len(self.requests)}_{index}"
            begun = {"index": index, "id": id, "type": "function", "function": function, **own}
            rest = {"index": index, "function": {"arguments": raw}}
            chunks += [_chunk({"tool_calls": [begun]}), _chunk({"tool_calls": [rest]})]
        return [*chunks, _chunk({}, "tool_calls"), "[DONE]"]

    def thoughts(self) -> Sequence[Mapping[str, Any]]:
        """Return what the model thinks before its calls, as the deltas of chunks."""
        return ()

    def own_fields(self, index: int) -> Mapping[str, Any]:
        """Return the vendor's own fields of a call."""
        return {}

    error: ClassVar[Mapping[str, Any]] = {
        "error": {"message": "no", "type": "server_error", "param": None, "code": "server_error"}
    }

    def events(self, words: Sequence[str]) -> Sequence[tuple[StreamedEvent, FaultStage]]:
        """Return the chunks, the finish reason, the usage, and the end."""
        pieces: list[tuple[StreamedEvent, FaultStage]] = [
            (_chunk({"role": "assistant", "content": word}), "middle" if n else "first")
            for n, word in enumerate(words)
        ]
        usage = {"prompt_tokens": 7, "completion_tokens": len(words), "total_tokens": 9}
        end = {**_chunk({}), "choices": [], "usage": usage}
        return [*pieces, (_chunk({}, "stop"), "last"), (end, "after"), ("[DONE]", "after")]


def refused(message: str, param: str | None = None) -> Mapping[str, Any]:
    error = {"message": message, "type": "invalid_request_error", "param": param, "code": None}
    return {"error": error}


def _chunk(delta: Mapping[str, Any], reason: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": reason, "logprobs": None}
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_800_000_000}
    return {**head, "model": "fake", "choices": [choice]}
