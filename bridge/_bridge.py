"""A node's place in a call: where its routes are declared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, final

from bargein.routes import ChainStart, Message, Route

if TYPE_CHECKING:
    from ._call import Call

E = TypeVar("E")


@final
class Bridge(ChainStart):
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

    def _begin(self, event: object, **options: Any) -> Route[Any]:
        return self.call.router.on(event, name=self.name, **options)

    def publish(self, event: E) -> Message[E]:
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
