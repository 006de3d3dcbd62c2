"""The steps of a chain: what cuts, pauses or resumes its runs, and what does its work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, overload

from ._chain_types import T_co
from ._event_match import matcher, written_options
from ._rules import ChainRule, Interrupt, PauseRule, ResumeRule, Suspend, an_interrupt
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
    from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping
    from typing import Self

    from ._chain_types import (
        E1,
        E2,
        E3,
        E4,
        AnyEvent,
        Condition,
        E,
        Handler,
        Later,
        Listed,
        Streamed,
        U,
    )
    from ._event_match import Predicate
    from ._message import Message
    from ._route import Route
    from ._run_outcome import Interruption


class ChainRules:
    """Adds rules to a chain."""

    __slots__ = ()

    def _add_rule(self, rule: ChainRule, where: str) -> Self:
        raise NotImplementedError

    @overload
    def interrupt_on(
        self,
        event: type[E],
        handler: Callable[[Message[E]], object] | None = None,
        *,
        condition: Condition[E] | None = None,
        source: str | Iterable[str] | None = None,
        **filters: Any,
    ) -> Self: ...
    @overload
    def interrupt_on(
        self,
        event: type[E],
        handler: Callable[[Message[E], Interruption], object],
        *,
        condition: Condition[E] | None = None,
        source: str | Iterable[str] | None = None,
        **filters: Any,
    ) -> Self: ...
    @overload
    def interrupt_on(
        self,
        event: type[E],
        handler: Callable[[], object],
        *,
        condition: Condition[E] | None = None,
        source: str | Iterable[str] | None = None,
        **filters: Any,
    ) -> Self: ...
    @overload
    def interrupt_on(
        self,
        event: tuple[type[E1], type[E2]],
        handler: Handler[E1 | E2] | None = None,
        *,
        condition: Condition[E1 | E2] | None = None,
        source: str | Iterable[str] | None = None,
        **filters: Any,
    ) -> Self: ...
    @overload
    def interrupt_on(
        self,
        event: tuple[type[E1], type[E2], type[E3]],
        handler: Handler[E1 | E2 | E3] | None = None,
        *,
        condition: Condition[E1 | E2 | E3] | None = None,
        source: str | Iterable[str] | None = None,
        **filters: Any,
    ) -> Self: ...
    @overload
    def interrupt_on(
        self,
        event: tuple[type[E1], type[E2], type[E3], type[E4]],
        handler: Handler[E1 | E2 | E3 | E4] | None = None,
        *,
        condition: Condition[E1 | E2 | E3 | E4] | None = None,
        source: str | Iterable[str] | None = None,
        **filters: Any,
    ) -> Self: ...
    @overload
    def interrupt_on(
        self,
        event: Collection[type[E]],
        handler: Handler[E] | None = None,
        *,
        condition: Condition[E] | None = None,
        source: str | Iterable[str] | None = None,
        **filters: Any,
    ) -> Self: ...
    @overload
    def interrupt_on(
        self,
        event: AnyEvent,
        handler: Handler[Any] | None = None,
        *,
        condition: Condition[Any] | None = None,
        source: str | Iterable[str] | None = None,
        **filters: Any,
    ) -> Self: ...
    def interrupt_on(
        self,
        event: object,
        handler: Callable[..., Any] | None = None,
        *,
        condition: Predicate | None = None,
        source: str | Iterable[str] | None = None,
        **filters: Any,
    ) -> Self:
        """Cut the runs of this chain in the scheduler step in which an event is published.

        Args:
            event: An event class, a list or tuple of them, an alias pattern (``"user.*"``), or a
                plain function over the message.
            handler: Sync or async; takes nothing, the message, or the message and the
                ``Interruption``.  It runs once for each run that was cut, after that run has
                unwound and before the next one begins, and may take at most
                ``Router.handler_s`` seconds.  It is not called when nothing was running.  If
                something else cut the run, it gets the message that did, or ``None``.
            condition: A plain function of the message that decides, in the same step, whether this
                event interrupts; ``None`` always does.
            source: The names of the publishers whose events count; ``None`` means all.
            **filters: Field name to the value it must equal, or to a function of the value.

        Raises:
            RouteDefinitionError: A wrong type, a duplicate, an unknown alias or field.
        """
        matched = matcher(event, ".interrupt_on()", source=source, filters=filters)
        options = written_options(filters, source)
        return self._add_rule(
            an_interrupt(Interrupt, ".interrupt_on()", matched, options, handler, condition),
            ".interrupt_on()",
        )

    if TYPE_CHECKING:
        suspend_on = interrupt_on  # it takes the same, so its types are written once
    else:

        def suspend_on(
            self, event, handler=None, *, condition=None, source=None, **filters: Any
        ) -> Self:
            """Cut the runs of this chain and keep it from triggering until ``.resume_on()``.

            Args:
                event: As in ``interrupt_on()``.
                handler: As in ``interrupt_on()``.
                condition: As in ``interrupt_on()``.
                source: As in ``interrupt_on()``.
                **filters: As in ``interrupt_on()``.
            """
            matched = matcher(event, ".suspend_on()", source=source, filters=filters)
            options = written_options(filters, source)
            return self._add_rule(
                an_interrupt(Suspend, ".suspend_on()", matched, options, handler, condition),
                ".suspend_on()",
            )

    def pause_on(self, event: type | Collection[type] | AnyEvent, **filters: Any) -> Self:
        """Pause the runs of this chain at their next value, until a resuming event.

        Args:
            event: As in ``interrupt_on()``.
            **filters: As in ``interrupt_on()``.
        """
        return self._add_plain_rule(PauseRule, ".pause_on()", event, filters)

    def resume_on(self, event: type | Collection[type] | AnyEvent, **filters: Any) -> Self:
        """Let paused runs continue where they stopped, and a suspended chain trigger again.

        Args:
            event: As in ``interrupt_on()``.
            **filters: As in ``interrupt_on()``.
        """
        return self._add_plain_rule(ResumeRule, ".resume_on()", event, filters)

    def _add_plain_rule(
        self, kind: type[ChainRule], where: str, event: object, filters: Mapping[str, Any]
    ) -> Self:
        matched = matcher(event, where, filters=filters)
        written = ", ".join([str(matched), *written_options(filters, None)])
        return self._add_rule(kind(matched, f"{where[1:-2]}({written})"), where)


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
