"""Moves queued triggers from the chains of one bridge to those of another."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from ._dispatch_plan import guarded
from ._message import Message

if TYPE_CHECKING:
    from ._chain_runtime import RouteRuntime


def hand_on(
    chains: Iterable[RouteRuntime],
    source: str,
    target: str,
    meant: Callable[[Message], bool],
    reason: str,
    unfinished: Iterable[Message],
) -> None:
    """Move the queued triggers of one bridge's streaming chains to another bridge's chains.

    Args:
        chains: All chains.
        source: The bridge that loses its triggers.
        target: The bridge whose matching chains they trigger.
        meant: Which triggers to move.
        reason: Why, as text for people.
        unfinished: Further messages to move, whose runs at the source were cut.
    """
    chains = tuple(chains)
    given = {message.id: message for message in unfinished}
    for runtime in chains:
        if runtime.source == source and runtime.route.streams:
            taken = runtime.drop_queued(meant, reason)
            given.update((message.id, message) for message in taken)
    for _, message in sorted(given.items()):
        for runtime in chains:
            trigger = runtime.route.trigger
            checks = trigger.matcher.for_class(type(message.event))
            if runtime.source != target or checks is None or runtime.removed:
                continue
            if not runtime.has_run_or_trigger(message):
                guarded(runtime, trigger.written, checks, runtime.trigger)(message)
