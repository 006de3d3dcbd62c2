"""Warns of chains that are right as a route and wrong as an agent, once each.

The chains are looked at when the call begins, after the first step of ``answer``; one that is
written later is looked at when it is first triggered.  Only the agent that has the floor is meant:
ears, voices and agents in the background need neither rules nor a listener.
"""

from __future__ import annotations

from collections.abc import Callable

import structlog

from bargein.routes import Message, Route, Router

from .events import (
    CallStarted,
    CustomReceived,
    DTMFInput,
    UserStoppedSpeaking,
    UserTranscriptionReceived,
)

log = structlog.get_logger()

BEGINS_ANSWER = (
    CallStarted,
    CustomReceived,
    DTMFInput,
    UserStoppedSpeaking,
    UserTranscriptionReceived,
)
"""What begins an answer.  What answers publish begins chains too, but is cut with them."""

GOES_NOWHERE = (
    "nobody gets what it streams: add .broadcast() to publish it, or end the chain with a .map() "
    "of the function that takes it"
)
NOTHING_CUTS_IT = (
    "no event interrupts it: add .interrupt_on(UserStartedSpeaking), or, if nothing but an "
    "emergency stop should, .interrupt_on(EmergencyStop)"
)


class ChainCheck:
    """Looks at the chains of one call."""

    __slots__ = ("_is_heard", "_router", "_seen")

    def __init__(self, router: Router, is_heard: Callable[[str], bool]) -> None:
        """Look at the chains of a router.

        Args:
            router: Has them.
            is_heard: Tells of a source whether it is an agent, and has the floor.
        """
        self._router = router
        self._is_heard = is_heard
        self._seen: set[Route] = set()
        router.observe(CallStarted, self._check_all)

    def _check_all(self, _: Message) -> None:
        for runtime in self._router.routes:
            self._check(runtime.route)

    def run_started(self, route: Route) -> None:
        """Look at the chain of a run, unless it was seen before."""
        if route not in self._seen:
            self._check(route)

    def _check(self, route: Route) -> None:
        if route in self._seen or not self._is_heard(route.source):
            return
        self._seen.add(route)
        if route.goes_nowhere:
            log.warning("chain_streams_to_nobody", route=str(route), hint=GOES_NOWHERE)
        elif route.streams and _begins_answer(route) and not route.can_be_cut:
            log.warning("chain_cannot_be_interrupted", route=str(route), hint=NOTHING_CUTS_IT)


def _begins_answer(route: Route) -> bool:
    matcher = route.trigger.matcher
    return any(matcher.for_class(event) is not None for event in BEGINS_ANSWER)
