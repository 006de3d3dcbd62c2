"""The steps of a chain that declare what cuts, pauses or resumes its runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from ._event_match import matcher, written_options
from ._rules import ChainRule, Interrupt, PauseRule, ResumeRule, Suspend, an_interrupt

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping
    from typing import Self

    from ._chain_types import E1, E2, E3, E4, AnyEvent, Condition, E, Handler
    from ._event_match import Predicate
    from ._message import Message
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
