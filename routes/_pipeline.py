"""How the stages of a chain become code that runs.

A chain is cut in three, once:

- ``lead``: the sync stages up to the first stage that waits.  They run at once, when triggered.
- ``head``: from the first to the last stage that waits.  Each is a layer over the async iterator
  of the layer before it, all in the one task of the run, so that a cancelled scope reaches the
  innermost ``await`` directly.
- ``tail``: the sync stages after that.  They are plain calls for each value.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Generator
from dataclasses import dataclass
from typing import Any

import trio

from ._errors import StageTimeout
from ._run import Run
from ._stages import Broadcast, Buffer, Filter, Map, Stage, Stream, Through, Timeout
from ._values import Shape, closing, shape_of, spread

Publish = Callable[[Any, Run | None], None]
Works = Callable[[str], bool]

UNMOVED = object()
"""A mark on a task, which trio wipes off whenever it reschedules the task."""


class StageError(Exception):
    """Carries an error of a stage to the edge of its run."""

    def __init__(self, stage: str, error: Exception) -> None:
        super().__init__(stage, error)
        self.stage = stage
        self.error = error


@dataclass(frozen=True, slots=True)
class Pending:
    """A value that a sync stage gave and that has to be awaited or iterated first."""

    value: Any
    next_step: int
    """The sync stage that goes on with what comes of it."""
    stage: str

    def discard(self) -> None:
        """Let go of a value that nobody will take."""
        close = getattr(self.value, "close", None)
        if close is not None:
            close()


class Steps:
    """A row of sync stages.

    One that has raised is watched until it gives something again: then ``works`` is told its name.
    """

    __slots__ = ("_steps", "_watched", "_works", "only_publishes", "publish")

    def __init__(self, stages: tuple[Stage, ...], publish: Publish, works: Works) -> None:
        self._works = works
        self._watched: dict[int, str] | None = None
        self._steps: tuple[tuple[Any, ...], ...] = tuple(
            (type(stage), getattr(stage, "fn", None), stage, number)
            for number, stage in enumerate(stages, 1)
        )
        self.publish = publish
        self.only_publishes = [type(stage) for stage in stages] == [Broadcast]

    def __len__(self) -> int:
        return len(self._steps)

    def push(self, value: Any, run: Run | None, first: int = 0) -> Pending | Passed | None:
        """Take a value through the row.

        Args:
            value: What the first stage gets.
            run: The run that what is broadcast belongs to.
            first: Where in the row to begin.

        Returns:
            ``None`` if the value went no further, ``Passed`` with what came out at the end, or
            what has to be awaited first.

        Raises:
            StageError: A stage raised.
        """
        stage: Stage | None = None
        try:
            for kind, fn, stage, following in self._steps[first:] if first else self._steps:
                if kind is Map:
                    value = fn(value)
                    if value is None:
                        return None
                    if shape_of(value) not in _PLAIN:
                        return Pending(value, following, str(stage))
                elif kind is Filter:
                    verdict = fn(value)
                    if shape_of(verdict) is Shape.AWAITABLE:
                        return Pending(_When(verdict, value), following, str(stage))
                    if not verdict:
                        return None
                else:
                    self.publish(value, run)
        except Exception as error:
            self._watch(following - 1)
            raise StageError(str(stage), error) from error
        return Passed(value)

    def watches(self, stage: str) -> bool:
        """Whether a stage of this name has raised in this row, and given nothing since."""
        return self._watched is not None and stage in self._watched.values()

    def _watch(self, index: int) -> None:
        watched = self._watched = {} if self._watched is None else self._watched
        if index in watched:
            return
        before, publish = self._steps[index], self.publish
        kind, fn, stage, following = before
        watched[index] = str(stage)

        def tried(value: Any) -> Any:
            given = fn(value)  # a Map and a Filter have one
            name = watched.get(index)  # it may have published, and come back here
            waits = shape_of(given) not in _PLAIN  # may fail yet, and its run tells whether it did
            if name is not None and (waits or self._works(name)):
                self._put(index, before)
                del watched[index]
            return given

        def published(value: Any, run: Run | None) -> None:
            publish(value, run)
            name = watched.get(index)
            if name is not None and self._works(name):
                self.publish = publish
                del watched[index]

        if kind is Broadcast:
            self.publish = published
        else:
            self._put(index, (kind, tried, stage, following))

    def _put(self, index: int, step: tuple[Any, ...]) -> None:
        self._steps = (*self._steps[:index], step, *self._steps[index + 1 :])


_PLAIN = (Shape.PLAIN, Shape.LISTED)


class Passed:
    """A value that came out at the end of a row."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class _When:
    """Awaits what a filter says, and gives the value if that is yes."""

    __slots__ = ("value", "verdict")

    def __init__(self, verdict: Any, value: Any) -> None:
        self.verdict = verdict
        self.value = value

    def __await__(self) -> Generator[Any, Any, Any]:
        verdict = yield from self.verdict.__await__()
        return self.value if verdict else None

    def close(self) -> None:
        """Let go of the question."""
        Pending(self.verdict, 0, "").discard()


class Pipeline:
    """The stages of one chain, ready to run."""

    __slots__ = ("head", "lead", "needs_nursery", "route", "tail")

    def __init__(
        self, route: str, stages: tuple[Stage, ...], publish: Publish, works: Works
    ) -> None:
        waiting = [index for index, stage in enumerate(stages) if stage.waits]
        first = waiting[0] if waiting else len(stages)
        last = waiting[-1] + 1 if waiting else len(stages)
        self.route = route
        self.lead = Steps(stages[:first], publish, works)
        self.head = stages[first:last]
        self.tail = Steps(stages[last:], publish, works)
        self.needs_nursery = any(isinstance(stage, Buffer) for stage in self.head)

    def open(self, run: Run, value: Any) -> Any:
        """Return an async iterator over what the head gives for a value."""
        first, *others = self.head
        if isinstance(first, (Map, Stream)) and not others:
            # The usual chain, .stream(generate).broadcast(): the run iterates the node's own
            # generator, with no layer between.
            items = first.fn(value)
            if shape_of(items) is Shape.ASYNC_ITERATOR:
                return items
            return spread(items, lists=isinstance(first, Stream))
        items = _layer(self, run, first, _once(value))
        for stage in others:
            items = _layer(self, run, stage, items)
        return items

    def watches(self, stage: str) -> bool:
        """Whether a sync stage of this name has raised, and given nothing since."""
        return self.lead.watches(stage) or self.tail.watches(stage)

    @property
    def head_name(self) -> str:
        """The stage to blame for an error of the head that no layer claimed."""
        return str(self.head[0]) if self.head else ""


async def _once(value: Any) -> AsyncIterator[Any]:
    yield value


def _layer(
    pipeline: Pipeline, run: Run, stage: Stage, upstream: AsyncIterator[Any]
) -> AsyncIterator[Any]:
    match stage:
        case Map() | Stream():
            layer = _mapped(stage, upstream, run)
        case Filter():
            layer = _filtered(stage, upstream)
        case Through():
            layer = _led_through(stage, upstream)
        case Timeout():
            layer = _timed(pipeline.route, stage, upstream, run)
        case Buffer():
            return _buffered(stage, upstream, run)
        case Broadcast():
            layer = _published(pipeline, upstream, run)
    return _blamed(str(stage), layer)


async def _blamed(stage: str, items: AsyncIterator[Any]) -> AsyncIterator[Any]:
    async with closing(items):
        try:
            async for item in items:
                yield item
        except StageError:
            raise
        except Exception as error:
            raise StageError(stage, error) from error


async def _mapped(
    stage: Map | Stream, upstream: AsyncIterator[Any], run: Run
) -> AsyncIterator[Any]:
    lists = isinstance(stage, Stream)
    async with closing(upstream):
        async for value in upstream:
            gave = False
            async with closing(spread(stage.fn(value), lists=lists)) as items:
                async for item in items:
                    gave = item is not None
                    if gave:
                        yield item
                    else:
                        await _breathe()
            if not gave:
                await _breathe()


async def _filtered(stage: Filter, upstream: AsyncIterator[Any]) -> AsyncIterator[Any]:
    async with closing(upstream):
        async for value in upstream:
            verdict = stage.fn(value)
            if shape_of(verdict) is Shape.AWAITABLE:
                verdict = await verdict
            if verdict:
                yield value
            else:
                await _breathe()


async def _led_through(stage: Through, upstream: AsyncIterator[Any]) -> AsyncIterator[Any]:
    async with closing(upstream):
        fair = _fair(upstream)
        async with closing(fair), closing(spread(stage.fn(fair), lists=True)) as items:
            async for item in items:
                yield item


async def _fair(upstream: AsyncIterator[Any]) -> AsyncIterator[Any]:
    async for value in upstream:
        yield value
        await _breathe()


async def _breathe() -> None:
    """Give others a turn if nothing was waited for since the last call.

    The run does this for each value that reaches it; a stage does it that keeps values from it.
    """
    task = trio.lowlevel.current_task()
    if task.custom_sleep_data is UNMOVED:
        await trio.lowlevel.checkpoint()
    else:
        task.custom_sleep_data = UNMOVED


async def _timed(
    route: str, stage: Timeout, upstream: AsyncIterator[Any], run: Run
) -> AsyncIterator[Any]:
    async with closing(upstream):
        while True:
            with run._clock(stage.limit_s) as scope:
                try:
                    value = await anext(upstream)
                except StopAsyncIteration:
                    return
            if scope.cancelled_caught:
                raise StageTimeout(route, stage.limit_s)
            yield value


async def _published(
    pipeline: Pipeline, upstream: AsyncIterator[Any], run: Run
) -> AsyncIterator[Any]:
    async with closing(upstream):
        async for value in upstream:
            if not await run._may_go_on():
                return
            pipeline.tail.publish(value, run)
            await run._room()
            yield value


async def _buffered(stage: Buffer, upstream: AsyncIterator[Any], run: Run) -> AsyncIterator[Any]:
    # One value waits in the sender's hands beside those in the channel.
    send, receive = trio.open_memory_channel[Any](stage.size - 1)
    assert run._nursery is not None
    run._nursery.start_soon(_pump, upstream, send)
    with receive:
        async for value in receive:
            yield value


async def _pump(upstream: AsyncIterator[Any], send: trio.MemorySendChannel[Any]) -> None:
    # Closed by a plain `with`: a checkpoint there could lose an error of the stages before.
    with send:
        async with closing(upstream):
            async for value in upstream:
                try:
                    await send.send(value)
                except trio.BrokenResourceError:
                    return  # the stages after the buffer have finished, and want no more
