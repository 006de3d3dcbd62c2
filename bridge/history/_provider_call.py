"""A tool call in a chat together with what only its provider reads.

A model's provider may send fields of its own with a call, and refuse the next request without them:
Gemini's thought signatures, Claude's thoughts.  Any other provider refuses a request with them.  So
they are no items of the call: whoever sends a chat as JSON leaves them out, and only the model that
knows them puts them back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class ProviderCall(dict[str, Any]):
    """A tool call as in OpenAI's chat completions; its provider's fields are beside its items."""

    __slots__ = ("extra", "provider")

    def __init__(
        self, call: Mapping[str, Any], *, provider: str = "", extra: Mapping[str, Any] | None = None
    ) -> None:
        """Copy a call."""
        super().__init__(call)
        self.provider = provider
        self.extra: Mapping[str, Any] = {} if extra is None else extra


def extra_of(call: Mapping[str, Any], provider: str) -> Mapping[str, Any]:
    """Return the own fields of a provider with a tool call; empty if the call is not its own.

    Args:
        call: One of a message's ``tool_calls``.
        provider: The name that the model gave to `ToolCallRequest.provider`.
    """
    if isinstance(call, ProviderCall) and provider and call.provider == provider:
        return call.extra
    return {}
