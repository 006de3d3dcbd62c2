"""A node's place in a call: where its routes are declared."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, final

from bargein.routes import Message, Overlap, Predicate, Route

if TYPE_CHECKING:
    from ._call import Call


@final
class Bridge:
    """Dispatches the events of a call to the routes of one node.

    Made by ``call.bridge(node)`` alone, since it is the node's place in that call.

    Attributes:
        call: The call.
        node: The node, or ``None``.
        name: The name that its events carry as their source.
        is_agent: Whether it may have the floor; ears and voices may not.
    """

    call: Call
    node: object
    name: str
    is_agent: bool

    def __init__(self, *given: object, **named: object) -> None:
        """Refuse to be made by hand.

        Raises:
            TypeError: Always.
        """
        node = type(given[0]).__name__ if given else "node"
        raise TypeError(
            f"Bridge({node}, ...) belongs to no call; in answer(call), write call.bridge({node}), "
            "which gives the node its place in that call, or call.converse(node)"
        )

    @classmethod
    def _of(cls, call: Call, node: object, name: str, *, is_agent: bool) -> Bridge:
        """Make the place of a node; for the call."""
        self = object.__new__(cls)
        self.call = call
        self.node = node
        self.name = name
        self.is_agent = is_agent
        return self

    def on(
        self,
        event: object,
        *,
        where: Predicate | None = None,
        source: str | Iterable[str] | None = None,
        overlap: Overlap = "queue",
        limit: int | None = None,
        linked: bool = False,
        **filters: Any,
    ) -> Route:
        """Begin a chain.

        Args:
            event: An event class (and with it its subclasses), a list or tuple of them, an alias
                or alias pattern (``"user.*"``), or a plain function over the message.
            where: A further plain function of the message.
            source: The names of publishers that are meant; ``None`` means all.  The caller's side
                is ``"caller"``, a node has the name of its bridge.
            overlap: What a trigger does while a run is active: ``queue`` waits, bounded and in
                order; ``restart`` cuts the running one and takes its place; ``drop`` ignores the
                trigger; ``concurrent`` runs beside it.
            limit: With ``concurrent`` how many runs may be active at once; with ``queue`` how many
                triggers may wait, 64 by default.
            linked: Whether a run of this chain ends when the run that caused it is cut.
            **filters: Field name to the value it must equal, or to a function of the value.

        Returns:
            The chain, to be written further.

        Raises:
            RouteDefinitionError: A wrong type, a duplicate, an unknown alias, field or option.
        """
        return self.call.router.on(
            event,
            name=self.name,
            where=where,
            source=source,
            overlap=overlap,
            limit=limit,
            linked=linked,
            **filters,
        )

    def publish(self, event: Any) -> Message:
        """Publish an event as this bridge's, now; never waits.

        Args:
            event: An instance of any event class.
        """
        return self.call.publish(event, source=self.name)

    @property
    def has_floor(self) -> bool:
        """Whether the caller hears this bridge's agent."""
        return self.call.floor is self

    def leave(self) -> None:
        """Take this bridge's routes out of the call; runs that are under way go on."""
        self.call.router.remove(self.name)

    def __repr__(self) -> str:
        return f"<Bridge {self.name!r} of call {self.call.call_id!r}>"
