"""The steps of a chain that do its work, each typed by its input and its output."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, overload

from ._chain_types import T_co
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

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from ._chain_types import Later, Listed, Streamed, U
    from ._route import Route


class ChainStages(Generic[T_co]):
    """Adds stages to a chain whose last stage produces ``T_co``."""

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
        """Call a sync or async function, and pass on what it returns.

        Args:
            fn: Takes the message in the first stage, and the previous stage's value in later
                ones.  ``None`` goes no further; if it returns an iterator, the values go on one
                by one.

        Raises:
            RouteDefinitionError: It is a generator, such as ``node.generate``, which belongs into
                ``.stream()``; or it takes more than one argument.
        """
        return self._add_stage(a_map(fn))

    @overload
    def filter(self, fn: Callable[[T_co], object]) -> Route[T_co]: ...
    @overload
    def filter(self, fn: Callable[[], object]) -> Route[T_co]: ...
    def filter(self, fn: Callable[..., Any]) -> Route[Any]:
        """Pass on only the values for which a sync or async function is true.

        Args:
            fn: Takes the message in the first stage, and the previous stage's value in later ones.
        """
        return self._add_stage(a_filter(fn))

    @overload
    def stream(self, source: Callable[[T_co], Awaitable[Listed[U]]]) -> Route[U]: ...
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
        """Pass on the values that a generator yields, one by one.

        Args:
            source: A sync or async generator function, or a function that returns an iterator, a
                list or a single value; it is called for each trigger.  Or something that can be
                iterated repeatedly, such as a list: each trigger gets all of it.

        Raises:
            RouteDefinitionError: It can be iterated only once, like ``node.generate()`` with
                parentheses; or it takes more than one argument.
        """
        return self._add_stage(a_stream(source))

    def through(self, fn: Callable[[AsyncIterator[T_co]], Streamed[U]]) -> Route[U]:
        """Give the stream of values to a function that returns another stream.

        Args:
            fn: Takes an async iterator and returns one; for example, an async generator that
                joins pieces of text into sentences.
        """
        return self._add_stage(a_through(fn))

    def buffer(self, size: int) -> Route[T_co]:
        """Run the stages before this one and those after it concurrently.

        Args:
            size: How many values the earlier stages may be ahead, at least 1.
        """
        return self._add_stage(a_buffer(size))

    def timeout(self, limit_s: float) -> Route[T_co]:
        """Fail the run if the stages before this one do not produce their next value in time.

        Args:
            limit_s: Seconds for each value, including the first.  Time in which the run is
                paused, or waits for a person, does not count.
        """
        return self._add_stage(a_timeout(limit_s))

    def broadcast(self) -> Route[T_co]:
        """Publish each value as an event to the routes and sinks of the call, and pass it on.

        Raises:
            RouteDefinitionError: The stage before it publishes the same values, or is annotated to
                produce what is no event, such as text.
        """
        return self._add_stage(Broadcast())
