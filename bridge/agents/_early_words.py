"""What the caller says before any agent can answer: ``answer()`` still opens its tools."""

from __future__ import annotations

from collections import deque

from bargein.routes import Message, Route

from ..context._call_context import CallContext
from ..events import UserStartedSpeaking, UserStoppedSpeaking, UserTranscriptionReceived
from ._chain_warnings import starts_answer

MOST_KEPT = 100
"""How many transcripts are kept: minutes of talk; the history keeps all words anyway."""

WHY = "no agent could answer it yet"


class EarlyWords:
    """Keeps the caller's words until the agent with the floor has a chain that answers them.

    It then gets them as if they came now: one turn, however often the caller has spoken.
    """

    __slots__ = ("_context", "_is_over", "_turn", "_words")

    def __init__(self, context: CallContext) -> None:
        self._context = context
        self._is_over = False
        self._words: deque[Message] = deque(maxlen=MOST_KEPT)
        self._turn: Message | None = None
        router = context.router
        for event in (UserTranscriptionReceived, UserStoppedSpeaking, UserStartedSpeaking):
            router.observe(event, self._said)

    def _said(self, message: Message) -> None:
        if self._is_over or self._context.floor.is_agent(message.source):
            return
        routes = self._routes()
        self._is_over = any(_answers(route) for route in routes)
        if self._is_over:
            return
        match message.event:
            case UserStartedSpeaking():
                self._turn = None  # another turn end will come
            case UserStoppedSpeaking():
                self._turn = message
            case _ if not any(_matches(route, message) for route in routes):
                self._words.append(message)

    def chain_added(self) -> None:
        """Look in the next step, once the chain is complete, whether it answers what was said."""
        if not self._is_over and (self._turn is not None or self._words):
            self._context.start_soon(self._give)

    async def _give(self) -> None:
        if self._is_over or not any(_answers(r) for r in self._routes()):
            return
        self._is_over = True
        kept = [*self._words] if self._turn is None else [*self._words, self._turn]
        self._words.clear()
        holder = self._context.floor.holder
        self._context.router.hand_on("", holder, lambda message: False, WHY, kept)

    def _routes(self) -> list[Route]:
        """Return the chains of the agent with the floor."""
        has_floor = self._context.floor.has_agent
        routes = (runtime.route for runtime in self._context.router.routes)
        return [route for route in routes if has_floor(route.source)]


def _answers(route: Route) -> bool:
    return route.broadcasts and starts_answer(route)


def _matches(route: Route, message: Message) -> bool:
    return route.trigger.matcher.for_class(type(message.event)) is not None
