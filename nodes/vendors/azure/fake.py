"""A fake of a chat model deployed at Azure OpenAI, by OpenAI's SDK 3.54."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from bargein.nodes.fakes import FaultStage, StreamedEvent
from bargein.nodes.vendors.openai.fake_chat import FakeOpenAIChat

__all__ = ["FakeAzureChat"]

V1 = "/openai/v1/chat/completions"
DATED = re.compile(r"/openai/deployments/([^/]+)/chat/completions")

SAFE = {"filtered": False, "severity": "safe"}


class FakeAzureChat(FakeOpenAIChat):
    """``/openai/v1`` and ``/openai/deployments/``: the answer begins with results of a filter."""

    key = "^(api-key: |authorization: bearer )"
    no_key: ClassVar[Mapping[str, Any]] = {
        "error": {
            "code": "401",
            "message": "Access denied due to invalid subscription key or wrong API endpoint.",
        }
    }

    def refusal(self, head: str) -> tuple[int, Mapping[str, Any]] | None:
        """Refuse a request without a key, without a version of the API, or with another path."""
        if refused := self.refusal_without_key(head):
            return refused
        path, _, query = head.partition("\r\n")[0].split()[1].partition("?")
        if path == V1 or (DATED.fullmatch(path) and "api-version=" in query):
            return None
        return 404, {"error": {"code": "404", "message": "Resource not found"}}

    def events(self, words: Sequence[str]) -> Sequence[tuple[StreamedEvent, FaultStage]]:
        """Return the filter's results for the question, then the answer with those for it."""
        results = {"prompt_index": 0, "content_filter_results": {"hate": SAFE}}
        first = {
            **{"id": "", "object": "", "created": 0, "model": "", "choices": []},
            "prompt_filter_results": [results],
        }
        return [(first, "after"), *((_filtered(event), at) for event, at in super().events(words))]


def _filtered(event: StreamedEvent) -> StreamedEvent:
    if not isinstance(event, Mapping):
        return event
    choices = [{**choice, "content_filter_results": {"hate": SAFE}} for choice in event["choices"]]
    return {**event, "choices": choices}
