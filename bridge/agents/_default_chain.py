"""The usual chains: answer the turns of the caller, and stop when the caller speaks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any, Protocol

from bargein.routes import ChainStart, Route, RouteDefinitionError, Router

from ..events import AgentHandoff, UserStartedSpeaking, UserStoppedSpeaking
from ._call_bridges import PlaceInCall


class Generates(Protocol):
    """A node that generates answers."""

    def generate(self, message: Any) -> AsyncIterator[Any]:
        """Yield an answer."""
        ...


def check_generates(node: object, verb: str) -> None:
    """Check that a node can answer.

    Raises:
        RouteDefinitionError: It has no ``generate()``.
    """
    if isinstance(node, type) and callable(getattr(node, "generate", None)):
        raise RouteDefinitionError(
            f"{verb}() needs a node, not its class; make one: {verb}({node.__name__}(...))"
        )
    if isinstance(node, type) or not callable(getattr(node, "generate", None)):
        raise RouteDefinitionError(
            f"{verb}() needs a node with generate(message), not {node!r}; for anything else, "
            "write the chain: call.bridge(...).on(UserStoppedSpeaking)"
        )


def check_answers_once(
    name: str, node: Generates, answering: set[str], router: Router, verb: str
) -> None:
    """Check that a node does not answer the turns of a call already.

    Args:
        answering: The bridges that had this chain before; gets this one.
        router: The call's; a bridge that has left the call has no chains in it.
        verb: The method of the call that gets the node.

    Raises:
        RouteDefinitionError: It does.
    """
    if name in answering and any(chain.route.source == name for chain in router.routes):
        raise RouteDefinitionError(
            f"{verb}(): this {type(node).__name__} answers the turns of this call already; "
            "a second time, the caller would hear each answer twice"
        )
    answering.add(name)


def answer_turns(place: ChainStart, node: Generates) -> Route:
    """Let a node answer each turn of the caller, with a chain of its bridge."""
    chain = place.on(UserStoppedSpeaking).interrupt_on(UserStartedSpeaking)
    return chain.stream(node.generate).broadcast()


def answer_with_floor(
    place: PlaceInCall, node: Generates, has_floor: Callable[[str], bool]
) -> None:
    """Let a node answer when its bridge gets the floor, and each turn while it has it."""
    arrives = place.on(AgentHandoff, target=place.name)
    speaks = place.on(UserStoppedSpeaking, where=lambda message: has_floor(place.name))
    for trigger in (arrives, speaks):
        trigger.interrupt_on(UserStartedSpeaking).stream(node.generate).broadcast()
