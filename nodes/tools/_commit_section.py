"""A tool's commit section, in which all of its effect is.

    async with commit():          # in a thread: with commit():
        await pay(invoice)

It is shielded from every interrupt until its own deadline. A tool that was stopped before its
section cannot enter it.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Literal, Self, TypeVar

import trio

from bargein.routes import Interrupted
from bargein.routes.logs import get_logger

from ._errors import CommitOverrunError

log = get_logger()

T = TypeVar("T")

CommitStage = Literal["unused", "refused", "open", "closed", "broken"]
"""``refused``: a stop came first; ``broken``: left by an error, or after its deadline."""


class CommitState:
    """The state of a running tool's commit section; safe from any thread.

    Attributes:
        tool: The name of the tool.
        announce: Records, on the loop, that the tool enters its section, and waits until that is
            kept, in bounded time.
    """

    def __init__(self, tool: str, announce: Callable[[], Awaitable[None]]) -> None:
        self.tool = tool
        self.announce = announce
        self.stage: CommitStage = "unused"
        self._until_s = -math.inf
        self._lock = threading.Lock()
        self._stopped = False

    @property
    def until_s(self) -> float:
        """The deadline of the tool's section, in seconds of trio's clock; ``-inf`` outside."""
        return self._until_s if self.is_open else -math.inf

    @property
    def is_open(self) -> bool:
        """Whether the tool is inside its section."""
        return self.stage == "open"

    @property
    def is_entered(self) -> bool:
        """Whether the tool has entered its section."""
        return self.stage in ("open", "closed", "broken")

    def stop(self) -> None:
        """Refuse to open the section from now on."""
        with self._lock:
            self._stopped = True

    def knock(self) -> None:
        """Record that the tool tried to enter its section after a stop."""
        with self._lock:
            if self._stopped and self.stage == "unused":
                self.stage = "refused"

    def open(self, until_s: float) -> bool:
        """Enter the section unless a stop came first; return whether it was entered.

        Raises:
            RuntimeError: The tool has already used its section.
        """
        with self._lock:
            if self.is_entered:
                raise RuntimeError(
                    f"{self.tool!r} has used its commit section; put all of its effect into one"
                )
            self.stage = "refused" if self._stopped else "open"
            self._until_s = until_s
            return self.is_open

    def close(self, *, whole: bool) -> None:
        """Leave the section."""
        self.stage = "closed" if whole else "broken"


class CommitSection:
    """A tool's commit section; made by ``commit()`` only."""

    def __init__(
        self, state: CommitState, deadline_s: float, trio_token: trio.lowlevel.TrioToken
    ) -> None:
        if not 0 < deadline_s < math.inf:
            raise ValueError(f"commit(deadline_s) is a finite number above 0, not {deadline_s!r}")
        self._state = state
        self._deadline_s = deadline_s
        self._trio_token = trio_token
        self._scope = trio.CancelScope(shield=True)

    async def __aenter__(self) -> Self:
        try:
            await trio.lowlevel.checkpoint()  # an earlier stop cancels here
            await self._state.announce()  # so does one that comes meanwhile
        finally:
            # Also when it was cancelled here: the outcome says that its effect was refused.
            self._state.knock()
        until_s = trio.current_time() + self._deadline_s
        if not self._state.open(until_s):
            raise Interrupted("the tool was asked to stop before its commit section")
        self._scope.deadline = until_s
        self._scope.__enter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:  # swallows nothing: what its deadline cancelled is an overrun
        caught = self._scope.__exit__(kind, error, traceback)
        self._state.close(whole=error is None)
        if caught and self._scope.cancelled_caught:
            raise self._overrun()

    def __enter__(self) -> Self:
        self._run(self._state.announce)
        if not self._state.open(self._now_s() + self._deadline_s):
            raise Interrupted("the tool was asked to stop before its commit section")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        late = self._now_s() > self._state.until_s
        self._state.close(whole=error is None and not late)
        if late and error is None:
            raise self._overrun()

    def _now_s(self) -> float:
        return self._run(_current_time)

    def _run(self, fn: Callable[[], Awaitable[T]]) -> T:
        if trio.lowlevel.in_trio_run():
            raise TypeError("write `async with commit():`; `with commit():` is for threads")
        try:
            # With an explicit token this also works in an abandoned thread.
            return trio.from_thread.run(fn, trio_token=self._trio_token)
        except trio.RunFinishedError:
            raise Interrupted("the call of the tool is over") from None

    def _overrun(self) -> CommitOverrunError:
        overrun = CommitOverrunError(self._state.tool, self._deadline_s)
        log.warning("commit_overrun", tool=self._state.tool, deadline_s=self._deadline_s)
        return overrun


async def _current_time() -> float:
    return trio.current_time()
