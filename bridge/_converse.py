"""The usual chain: answer each turn of the caller, and stop when the caller speaks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Protocol

from bargein.routes import Route, RouteDefinitionError

from .events import UserStartedSpeaking, UserStoppedSpeaking

if TYPE_CHECKING:
    from ._bridge import Bridge
    from ._call import Call


class Generates(Protocol):
    """A node that answers."""

    def generate(self, message: Any) -> AsyncIterator[Any]:
        """Yield an answer."""


def converse(call: Call, node: Generates, name: str | None) -> Route:
    """Do what ``Call.converse()`` says."""
    if isinstance(node, type) or not callable(getattr(node, "generate", None)):
        raise RouteDefinitionError(
            f"converse() needs a node with generate(message), not {node!r}; for anything else, "
            "write the chain: call.bridge(...).on(UserStoppedSpeaking)"
        )
    place = _place_of(call, node, name)
    chain = place.on(UserStoppedSpeaking).interrupt_on(UserStartedSpeaking)
    return chain.stream(node.generate).broadcast()


def _place_of(call: Call, node: object, name: str | None) -> Bridge:
    """Return the place that a node has in a call; a new one if it has none."""
    for bridge in call.bridges:
        if bridge.node is node:
            if name is not None and name != bridge.name:
                raise RouteDefinitionError(
                    f"converse(name={name!r}): this {type(node).__name__} has its place in the "
                    f"call already, as {bridge.name!r}; leave name= out"
                )
            return bridge
    return call.bridge(node, name=name)
