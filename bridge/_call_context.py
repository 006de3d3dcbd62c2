"""What the parts of a call know of it: its routes, its history, its floor, and its state."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import trio

from bargein.routes import Router

from ._floor import Floor
from .control._running_tools import WorkRoom
from .events import CallState, UserStartedSpeaking
from .history._history import History


class CallContext:
    """The face of a call that its parts get; what else a part needs, it is given by name.

    Times are those of trio's clock; ``router.call_at()`` calls a function at one.

    Attributes:
        router: Carries the messages of the call; its nursery owns the call's tasks.
        history: What was said, as it was last written down; ``Speaking.history`` is up to now.
        audio: Whether the caller hears audio; otherwise only text travels.
        floor: Who the agents are, and which of them is heard.
        work: The tools that run.
        ended: Set once the call is over.
        state: What the call is doing, as it was last told.
        is_paused: Whether everything is held, by the verb.
        is_closing: Whether nothing new is taken any more.
        touch_state: Has the state worked out anew, once the publication under way is over.
        on_touch: Called after whatever may have changed what a snapshot shows.
    """

    __slots__ = (
        "_looks", "_update", "audio", "ended", "floor", "history", "is_closing",
        "is_paused", "on_touch", "router", "state", "touch_state", "work",
    )  # fmt: skip

    def __init__(self, router: Router, history: History, *, audio: bool) -> None:
        self.router = router
        self.touch_state: Callable[[], None] = partial(router.call_after, self._work_out)
        self.history = history
        self.audio = audio
        self.floor = Floor()
        self.work = WorkRoom(self.touch_state, self._time_cuts)
        self.ended = trio.Event()
        self.state: CallState = "idle"
        self.is_paused = False
        self.is_closing = False
        self.on_touch: list[Callable[[], None]] = []
        self._update: Callable[[], None] | None = None
        self._time_cuts(False)
        self._looks: list[tuple[Callable[[], object], Callable[[], None]]] = []

    def _time_cuts(self, works: bool) -> None:
        """Hear of a barge-in at once where a voice or a tool has to end by it.

        Where there is neither, what is known of it is known as well when the node has cleaned up.

        Args:
            works: Whether a tool is at work.
        """
        self.router.tell_later(None if self.audio or works else UserStartedSpeaking)

    def _work_out(self) -> None:
        if self._update is not None:
            self._update()
        notify = self.router.listeners.notify
        for fn in tuple(self.on_touch):
            notify(fn)
        for waits, look in self._looks:
            if waits():
                notify(look)

    def work_out_by(self, update: Callable[[], None]) -> None:
        """Have the state worked out by a function, whenever it is touched."""
        self._update = update

    def look_when(self, waits: Callable[[], object], look: Callable[[], None]) -> None:
        """Call a function whenever the state is touched, behind that, while something waits."""
        self._looks.append((waits, look))

    def enter(self, state: CallState) -> None:
        """Record the state that is told."""
        self.state = state

    def pause(self, *, on: bool) -> None:
        """Record whether everything is held."""
        self.is_paused = on

    def close(self) -> None:
        """Record that nothing new is taken any more."""
        self.is_closing = True
