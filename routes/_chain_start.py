"""Starts chains: ``on()``, which bridges and chains share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from .error_hints import SuggestsNames

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from ._chain_types import E1, E2, E3, E4, AnyEvent, Condition, E
    from ._message import Message
    from ._route import Route
    from ._rules import Overlap


class ChainStart(SuggestsNames):
    """Starts chains; the events that trigger a chain give it its type."""

    __slots__ = ()

    def _new_chain(self, event: object, **options: Any) -> Route[Any]:
        raise NotImplementedError

    @overload
    def on(
        self,
        event: type[E],
        *,
        where: Condition[E] | None = None,
        source: str | Iterable[str] | None = None,
        overlap: Overlap = "queue",
        limit: int | None = None,
        linked: bool = False,
        **filters: Any,
    ) -> Route[Message[E]]: ...
    @overload
    def on(
        self,
        event: tuple[type[E1], type[E2]],
        *,
        where: Condition[E1 | E2] | None = None,
        source: str | Iterable[str] | None = None,
        overlap: Overlap = "queue",
        limit: int | None = None,
        linked: bool = False,
        **filters: Any,
    ) -> Route[Message[E1 | E2]]: ...
    @overload
    def on(
        self,
        event: tuple[type[E1], type[E2], type[E3]],
        *,
        where: Condition[E1 | E2 | E3] | None = None,
        source: str | Iterable[str] | None = None,
        overlap: Overlap = "queue",
        limit: int | None = None,
        linked: bool = False,
        **filters: Any,
    ) -> Route[Message[E1 | E2 | E3]]: ...
    @overload
    def on(
        self,
        event: tuple[type[E1], type[E2], type[E3], type[E4]],
        *,
        where: Condition[E1 | E2 | E3 | E4] | None = None,
        source: str | Iterable[str] | None = None,
        overlap: Overlap = "queue",
        limit: int | None = None,
        linked: bool = False,
        **filters: Any,
    ) -> Route[Message[E1 | E2 | E3 | E4]]: ...
    @overload
    def on(
        self,
        event: Collection[type[E]],
        *,
        where: Condition[E] | None = None,
        source: str | Iterable[str] | None = None,
        overlap: Overlap = "queue",
        limit: int | None = None,
        linked: bool = False,
        **filters: Any,
    ) -> Route[Message[E]]: ...
    @overload
    def on(
        self,
        event: AnyEvent,
        *,
        where: Condition[Any] | None = None,
        source: str | Iterable[str] | None = None,
        overlap: Overlap = "queue",
        limit: int | None = None,
        linked: bool = False,
        **filters: Any,
    ) -> Route[Message[Any]]: ...
    def on(self, event: object, **options: Any) -> Route[Any]:
        """Start a chain.

        Args:
            event: An event class (and with it its subclasses), a list or tuple of them, an alias
                or alias pattern (``"user.*"``), or a plain function over the message.
            where: A further condition, a plain function of the message.
            source: The publishers whose events trigger it; ``None`` means all.  The caller's side
                is ``"caller"``, a node has the name of its bridge.
            overlap: What a trigger does while a run is active: with ``queue`` it waits, bounded and
                in order; with ``restart`` it cuts that run and takes its place; with ``drop`` it is
                ignored; with ``concurrent`` it starts another run.
            limit: With ``concurrent``, how many runs may be active at once; with ``queue``, how
                many triggers may wait, 64 by default.
            linked: Whether a run of this chain ends when the run that caused it is cut.
            **filters: Field name to the value it must equal, or to a function of the value.

        Returns:
            The chain; add rules and stages to it.

        Raises:
            RouteDefinitionError: A wrong type, a duplicate, an unknown alias, field or option.
        """
        return self._new_chain(event, **options)
