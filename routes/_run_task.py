"""The task of a run: whether a cut wakes it, and whether its clean-up waits for anything."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from types import FrameType
from typing import Any

import trio

from ._generator_cancel_scope import closing

_ASLEEP = object()
"""A mark on a task, which trio removes whenever it reschedules the task."""


class RunTask:
    """Awaits the work of a run, and reports if a run that was cut waits again.

    The deferred work of a cut comes after the next step of the run's task, and most runs end in
    that step.  Only a run that waits in its clean-up needs another task to do the deferred work.
    The engine has no code of its own in the step of a node that was cut, so this object passes the
    step on.

    Attributes:
        send: Resumes the work.  Until a cut it is the ``send`` of the work itself, so that no
            Python code of the engine runs when trio resumes a node.
        throw: The ``throw`` of the work.
        close: The ``close`` of the work.
    """

    __slots__ = ("_items", "_task", "_waits_again", "_work", "close", "send", "throw")

    def __init__(
        self,
        work: Coroutine[Any, Any, None],
        items: closing | None,
        waits_again: Callable[[], None],
    ) -> None:
        """Await work in the current task.

        Args:
            work: The stages of the run.
            items: What they iterate, if that is known.
            waits_again: Called if the work waits for anything after ``cancel()`` has woken it.
        """
        self._work = work
        self._items = items
        self._waits_again = waits_again
        self._task = trio.lowlevel.current_task()
        self.send: Callable[[Any], Any] = work.send
        self.throw = work.throw
        self.close = work.close

    def cancel(self, scope: trio.CancelScope, reason: str) -> None:
        """Cancel the scope of the run, and report if its task waits after its next step.

        If this does not wake the task, because it is running, is ready to run anyway, or waits
        behind a shield, report at once.

        Args:
            scope: The scope of the run.  If the node certainly sleeps in the middle of a step, the
                scope around its generator is cancelled in its place.
            reason: Why, for people.
        """
        task, items = self._task, self._items
        if task.custom_sleep_data is None:  # unknown whether it sleeps or is ready to run
            task.custom_sleep_data = _ASLEEP
        elif (
            items is not None and items.generator.ag_running and not self._work.cr_running  # type: ignore[attr-defined]
        ):
            scope = items.scope
        scope.cancel(reason=reason)
        if task.custom_sleep_data is None:
            self.send = self._send_and_report
        else:
            self._waits_again()

    def _send_and_report(self, value: Any) -> Any:
        trap = self._work.send(value)  # raises StopIteration when the work has ended
        self.send = self._work.send
        self._waits_again()
        return trap

    def __await__(self) -> Generator[Any, None, None]:
        return self  # pyright: ignore[reportReturnType]  # it has what `await` uses of a generator

    def __iter__(self) -> RunTask:
        return self

    def __next__(self) -> Any:
        return self.send(None)

    @property
    def cr_frame(self) -> FrameType | None:
        """The frame of the work; trio reads it to tell where a task waits."""
        return self._work.cr_frame  # type: ignore[attr-defined,no-any-return]

    @property
    def cr_await(self) -> Any:
        """What the work waits for; trio reads it to tell where a task waits."""
        return self._work.cr_await  # type: ignore[attr-defined]
