"""The steps of a chain that do its work, each typed by what goes in and what comes out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, overload

from ._stages import (
    Broadcast,
    Stage,
    a_buffer,
    a_filter,
    a_map,
    a_stream,
    a_through,
    a_timeout,
)
from ._types import T_co

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from ._route import Route
    from ._types import Later, Listed, Streamed, U


class ChainStages(Generic[T_co]):
    """Adds stages to a chain whose last stage gives ``T_co``."""

    __slots__ = ()

    def _add_stage(self, stage: Stage) -> Route[Any]:
        raise NotImplementedError

    @overload
    def map(self, fn: Callable[[T_co], Later[U]]) -> Route[U]: ...
    @overload
    def map(self, fn: Callable[[T_co], U | None]) -> Route[U]: ...
    @overload
    def map(self, fn: Callable[[], Later[U]]) -> Route[U]: ...
    @overload
    def map(self, fn: Callable[[], U | None]) -> Route[U]: ...
    def map(self, fn: Callable[..., Any]) -> Route[Any]:
        """Call a function, sync or async, and pass on what it gives.

        Args:
            fn: Takes the message in the first stage, else what the stage before gave.  ``None``
                goes no further; what a generator yields goes on one by one.
        """
        return self._add_stage(a_map(fn))

    @overload
    def filter(self, fn: Callable[[T_co], object]) -> Route[T_co]: ...
    @overload
    def filter(self, fn: Callable[[], object]) -> Route[T_co]: ...
    def filter(self, fn: Callable[..., Any]) -> Route[Any]:
        """Let a value pass only when a function of it, sync or async, is true.

        Args:
            fn: Takes the message in the first stage, else what the stage before gave.
        """
        return self._add_stage(a_filter(fn))

    @overload
    def stream(self, source: Callable[[T_co], Streamed[U]]) -> Route[U]: ...
    @overload
    def stream(self, source: Callable[[T_co], U | None]) -> Route[U]: ...
    @overload
    def stream(self, source: Callable[[], Streamed[U]]) -> Route[U]: ...
    @overload
    def stream(self, source: Callable[[], U | None]) -> Route[U]: ...
    @overload
    def stream(self, source: range) -> Route[int]: ...
    @overload
    def stream(self, source: Listed[U]) -> Route[U]: ...
    def stream(self, source: object) -> Route[Any]:
        """Pass on, one by one, what a generator yields.

        Args:
            source: A generator function, sync or async, or a function that returns an iterator, a
                list or a single value; it is called for each trigger.  Or something that can be
                iterated again and again, such as a list: each trigger gets all of it.

        Raises:
            RouteDefinitionError: It can be iterated only once, as ``node.generate()``, with
                parentheses, can; or it takes more than one argument.
        """
        return self._add_stage(a_stream(source))

    def through(self, fn: Callable[[AsyncIterator[T_co]], Streamed[U]]) -> Route[U]:
        """Hand the stream of values to a function that gives another stream.

        Args:
            fn: Takes an async iterator and returns one, such as an async generator that joins
                pieces of text to sentences.
        """
        return self._add_stage(a_through(fn))

    def buffer(self, size: int) -> Route[T_co]:
        """Run the stages before this one and those after it at once.

        Args:
            size: How many values the stages before may be ahead, from 1.
        """
        return self._add_stage(a_buffer(size))

    def timeout(self, limit_s: float) -> Route[T_co]:
        """Fail the run when the stages before this one do not give their next value in time.

        Args:
            limit_s: Seconds for each value, the first included.  Time in which a run is paused,
                or waits for a person, does not count.
        """
        return self._add_stage(a_timeout(limit_s))

    def broadcast(self) -> Route[T_co]:
        """Publish each value as an event to the routes and sinks of the call, and pass it on."""
        return self._add_stage(Broadcast())
