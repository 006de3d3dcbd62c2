"""The agents of a call: their places, their usual chains, and which of them the caller hears."""

from __future__ import annotations

from typing import Generic, TypeVar

from bargein.routes import Message, Route, Router

from ..context._call_context import CallContext
from ._call_bridges import Bridges, PlaceInCall
from ._default_chain import (
    Generates,
    answer_turns,
    answer_with_floor,
    check_answers_once,
    check_generates,
)

B = TypeVar("B", bound=PlaceInCall)


class AgentsOfCall(Generic[B]):
    """What a ``Call`` does with its agents."""

    router: Router
    _answering: set[str]
    _bridges: Bridges[B]
    _context: CallContext

    def bridge(self, node: object = None, *, name: str | None = None, is_agent: bool = True) -> B:
        """Give a node its place in this call, or return the bridge that it has already.

        The first agent gets the floor; ``AgentHandoff`` passes it on.

        Args:
            node: The node whose routes you will declare; its method ``attached(bridge)`` is called,
                if it has one.
            name: The source its events carry; derived from the node's class by default.
            is_agent: False for ears and voices, which never have the floor.

        Raises:
            TypeError: The name is not a string, or the node is a class or a name.
            ValueError: The name is empty or taken.
            RouteDefinitionError: Its bridge has another name, or another `is_agent`.
        """
        return self._bridges.find_or_add(node, name, is_agent=is_agent)

    def converse(self, node: Generates, *, name: str | None = None) -> Route:
        """Let a node answer each turn of the caller, and stop when the caller speaks.

        Short for ``call.bridge(node).on(UserStoppedSpeaking).interrupt_on(UserStartedSpeaking)
        .stream(node.generate).broadcast()``.  A node that has a bridge in this call keeps it.  For
        one of several agents, use ``join()``.

        Args:
            node: A ``ReasoningNode``, or anything with ``generate(message)``.
            name: As in ``bridge()``.

        Returns:
            The chain; add rules to it, or start the node's next chain with ``.on()``.

        Raises:
            RouteDefinitionError: `node` has no ``generate()``, its bridge has another name, or it
                answers the turns of this call already.
            ValueError: The name is taken.
        """
        check_generates(node, "converse")
        place = self.bridge(node, name=name)
        check_answers_once(place.name, node, self._answering, self.router, "converse")
        return answer_turns(place, node)

    def join(self, node: Generates, name: str | None = None) -> B:
        """Give a node its place in a call with several agents; the first one has the floor.

        It answers when it is handed the floor, and each turn of the caller while it has it; it
        stops when the caller speaks.  ``converse()`` is for the only agent of a call.

        Args:
            node: A ``ReasoningNode``, or anything with ``generate(message)``.
            name: What ``hand_over()`` calls it; as in ``bridge()``.

        Returns:
            Its bridge, for further chains.

        Raises:
            RouteDefinitionError: As for ``converse()``.
            TypeError: The name is not a string.
            ValueError: The name is empty or taken.
        """
        check_generates(node, "join")
        place = self.bridge(node, name=name)
        check_answers_once(place.name, node, self._answering, self.router, "join")
        answer_with_floor(place, node, self.has_floor)
        return place

    @property
    def floor(self) -> B | None:
        """The bridge whose agent the caller hears; ``None`` before the first agent."""
        return self._bridges.with_floor

    @property
    def bridges(self) -> tuple[B, ...]:
        """All bridges of the call."""
        return self._bridges.all

    def is_agent(self, source: str) -> bool:
        """Whether a source is an agent of this call (or the call's own fixed texts)."""
        return self._context.floor.is_agent(source)

    def has_floor(self, source: str) -> bool:
        """Whether the caller hears what a source says: it has the floor, or is the call itself."""
        return self._context.floor.has(source)

    def is_audible(self, message: Message) -> bool:
        """Whether the caller hears what this message says: its agent has the floor."""
        return self._context.floor.is_audible(message)
