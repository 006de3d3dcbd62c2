"""A cancellation token, for code that polls or runs in a thread.

Rules:
1. A token goes from quiet to requested, and never back: each run has a fresh one.
2. Cancel wins over background, in both orders.
3. A parent's request reaches its children; a child's never reaches its parent.
4. Every method is safe from any thread.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from weakref import WeakSet

import trio

from ._errors import Interrupted


class InterruptToken:
    """Says whether the work that holds it should stop, or move to the background.

    A run's token is linked to its cancel scope in both directions: a request on the token cuts the
    run, and a cut of the run requests the token.
    """

    def __init__(
        self,
        on_request: Callable[[], None] | None = None,
        on_background: Callable[[], None] | None = None,
    ) -> None:
        """Make a quiet token.

        Args:
            on_request: Called once, in the requesting thread, at the first request to stop;
                ``None`` calls nothing.
            on_background: Likewise at the first request to continue in the background, unless a
                request to stop came first.
        """
        self._lock = threading.Lock()
        self._on_request = on_request
        self._on_background = on_background
        self._requested = False
        self._force = False
        self._background = False
        self._children: WeakSet[InterruptToken] = WeakSet()
        self._waiters: set[tuple[trio.lowlevel.TrioToken, trio.Event]] = set()

    @property
    def is_requested(self) -> bool:
        """Whether the work should stop; one attribute read, cheap enough for a hot loop."""
        return self._requested

    @property
    def is_forced(self) -> bool:
        """Whether the work should stop without a grace period."""
        return self._force

    @property
    def is_background_requested(self) -> bool:
        """Whether the work should continue in the background, and was not asked to stop."""
        return self._background and not self._requested

    def request(self) -> None:
        """Ask the work to stop; asking again does nothing."""
        with self._lock:
            if self._requested:
                return
            self._requested = True
            waiters, self._waiters = self._waiters, set()
            children = list(self._children)
            on_request, self._on_request = self._on_request, None
        if on_request is not None:
            on_request()
        for trio_token, event in waiters:
            call_on(trio_token, event.set)
        for child in children:
            child.request()

    def force(self) -> None:
        """Ask the work to stop without a grace period."""
        with self._lock:
            self._force = True
            children = list(self._children)
        for child in children:
            child.force()
        self.request()

    def request_background(self) -> None:
        """Ask the work to continue in the background; a request to stop still wins."""
        with self._lock:
            on_background, self._on_background = self._on_background, None
        self.notify_background()
        if on_background is not None and not self._requested:
            on_background()

    def notify_background(self) -> None:
        """Mark the work as moved to the background; called by the code that moved it."""
        with self._lock:
            self._background = True
            children = list(self._children)
        for child in children:
            child.notify_background()

    def refuse_background(self) -> None:
        """Forget the request to move, because a stop goes first; called by the code that moves."""
        with self._lock:
            self._background = False
            children = list(self._children)
        for child in children:
            child.refuse_background()

    def throw_if_requested(self) -> None:
        """Raise if the work was asked to stop.

        Raises:
            Interrupted: The work should stop.
        """
        if self._requested:
            raise Interrupted("the work was asked to stop")

    async def cancelled(self) -> None:
        """Wait until the work is asked to stop.  Cancelling this is safe."""
        event = trio.Event()
        waiter = (trio.lowlevel.current_trio_token(), event)
        with self._lock:
            if self._requested:
                event.set()
            else:
                self._waiters.add(waiter)
        try:
            await event.wait()
        finally:
            with self._lock:
                self._waiters.discard(waiter)

    def child(self) -> InterruptToken:
        """Return a token that is requested whenever this one is, and not the reverse."""
        child = InterruptToken()
        with self._lock:
            child._requested = self._requested
            child._force = self._force
            child._background = self._background
            self._children.add(child)
        return child

    def __repr__(self) -> str:
        state = "requested" if self._requested else "quiet"
        return f"<InterruptToken {state}>"


def call_on(trio_token: trio.lowlevel.TrioToken, fn: Callable[[], object]) -> None:
    """Call a function in an event loop: now if this is its thread, else soon."""
    if trio.lowlevel.in_trio_run() and trio.lowlevel.current_trio_token() is trio_token:
        fn()
    else:
        with contextlib.suppress(trio.RunFinishedError):
            trio_token.run_sync_soon(fn)  # without the event loop, nobody waits any more
