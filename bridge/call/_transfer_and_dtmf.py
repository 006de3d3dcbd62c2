"""Executes an agent's requests to the caller's line: transfers and key presses.

Rules:
1. Each request is answered by exactly one ``CallActionCompleted`` or ``CallActionFailed``; if the
   transport cannot do it, raises or hangs, the request fails with a reason.
2. Requests are executed one at a time, in the order in which they were published, so the keys of a
   number are pressed in order.
3. Cancelling the code that waits for a request cancels the request; one that nobody waits for
   continues.
4. A queued request is dropped if the run that published it is cut: a run that has ended stays
   interruptible while a request of it is queued.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import trio

from bargein.routes import Message, Router, Run
from bargein.routes.error_containment import CONTAINED
from bargein.routes.logs import get_logger

from .._transport_protocol import CallActionError, CanSendDTMF, CanTransfer, Transport
from ..answers._answer import lineage
from ..events import Button, CallActionCompleted, CallActionFailed, DTMFOutput, TransferCall
from ..validation._verb_arguments import check_string, check_word

log = get_logger()

CallActionOutcome = CallActionCompleted | CallActionFailed

TRANSFER_S = 30.0
"""How many seconds a transfer may take: as long as Twilio's ``<Dial>`` rings by default."""
DTMF_S = 5.0
"""How many seconds a key may take: a tone lasts 0.1 to 0.5 s, and signalling adds to that."""
CLOSE_S = 1.0
"""How many seconds a cancelled transport may take before the next request starts."""
OVER = "the call is over"
CUT = "what asked for it was interrupted"
MAX_WAITING = 64
"""How many requests may wait; a telephone number and an account number are 30 keys."""


@dataclass(slots=True, eq=False)
class _ActionRequest:
    """One request, from its publication to its answer."""

    event: TransferCall | DTMFOutput
    outcome: CallActionOutcome | None = None
    answered: trio.Event = field(default_factory=trio.Event)
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)
    message: Message | None = None
    """The message that requested it; ``None`` before it is queued."""
    unsettled_runs: tuple[Run, ...] = ()
    """The runs that it keeps from settling while it waits."""

    def wait(self, message: Message) -> None:
        """Queue it, and keep the runs that requested it interruptible."""
        self.message, self.unsettled_runs = message, tuple(lineage(message.run))
        for run in self.unsettled_runs:
            run.keep()

    def stop_waiting(self) -> bool:
        """Leave the queue, and return whether it should still be executed."""
        is_cut = self.message is not None and self.message.is_stale
        unsettled_runs, self.unsettled_runs = self.unsettled_runs, ()
        for run in unsettled_runs:
            run.release()
        return not is_cut

    @property
    def action(self) -> Literal["transfer", "dtmf"]:
        return "transfer" if isinstance(self.event, TransferCall) else "dtmf"

    @property
    def limit_s(self) -> float:
        return TRANSFER_S if isinstance(self.event, TransferCall) else DTMF_S

    @property
    def words(self) -> str:
        """What the line cannot do, as text for the reason of a failure."""
        return "transfer calls" if isinstance(self.event, TransferCall) else "press keys"


class CallActions:
    """The requests of one call's agents to the caller's line.

    Made by the call, as ``call.actions``.

    Attributes:
        pause_recording: As in ``CanPauseRecording``; ``None`` if the transport cannot.
    """

    __slots__ = (
        "_ended", "_expected", "_is_working", "_press", "_router", "_transfer", "_waiting",
        "pause_recording",
    )  # fmt: skip

    def __init__(self, router: Router, transport: Transport, ended: trio.Event) -> None:
        """Listen for requests.

        Args:
            transport: The caller's side; what it can do is looked up here, once.
            ended: Set once the call is over; nothing is executed after that.
        """
        self._router = router
        self._ended = ended
        self._transfer = transport.transfer if isinstance(transport, CanTransfer) else None
        self.pause_recording: Callable[[bool], Awaitable[None]] | None = getattr(
            transport, "pause_recording", None
        )
        self._press = transport.send_dtmf if isinstance(transport, CanSendDTMF) else None
        self._expected: dict[int, _ActionRequest] = {}
        self._waiting: deque[_ActionRequest] = deque()
        self._is_working = False
        router.add_sink(self._requested, [TransferCall, DTMFOutput])

    async def transfer(
        self, target_phone_number: str, *, source: str = "call"
    ) -> CallActionOutcome:
        """Transfer the caller to a telephone number, and return the outcome.

        Cancelling this gives up the transfer; it may have been made all the same.

        Raises:
            TypeError: The number is not a string.
        """
        check_string("transfer", "target_phone_number", target_phone_number)
        return await self._carry_out(TransferCall(target_phone_number=target_phone_number), source)

    async def send_dtmf(self, button: Button, *, source: str = "call") -> CallActionOutcome:
        """Press a key, and return the outcome.

        Cancelling this gives up the key; it may have been pressed all the same.

        Raises:
            ValueError: There is no such key.
        """
        check_word("send_dtmf", "button", button, get_args(Button))
        return await self._carry_out(DTMFOutput(button=button), source)

    async def _carry_out(self, event: TransferCall | DTMFOutput, source: str) -> CallActionOutcome:
        request = _ActionRequest(event)
        self._expected[id(event)] = request
        try:
            self._router.publish_detached(event, source)
        finally:
            self._expected.pop(id(event), None)
        try:
            await request.answered.wait()
        except trio.Cancelled:
            self._cancel(request)
            raise
        assert request.outcome is not None
        return request.outcome

    def _cancel(self, request: _ActionRequest) -> None:
        request.scope.cancel(reason="nobody waits for it")
        self._answer(request, "it was cancelled")

    def _requested(self, message: Message) -> None:
        request = self._expected.pop(id(message.event), None) or _ActionRequest(message.event)
        if self._ended.is_set():
            self._answer(request, OVER)
        elif self._means_of(request) is None:
            self._answer(request, f"the caller's line cannot {request.words}")
        elif len(self._waiting) >= MAX_WAITING:
            self._answer(request, f"{MAX_WAITING} others wait already")
        else:
            request.wait(message)
            self._waiting.append(request)
            if not self._is_working:
                self._is_working = True
                self._router.nursery.start_soon(self._work, name="call actions")

    def _means_of(self, request: _ActionRequest) -> Callable[[], Awaitable[Any]] | None:
        match request.event:
            case TransferCall(target_phone_number=number) if self._transfer is not None:
                transfer = self._transfer
                return lambda: transfer(number)
            case DTMFOutput(button=button) if self._press is not None:
                press = self._press
                return lambda: press(button)
        return None

    async def _work(self) -> None:
        try:
            while self._waiting:
                request = self._waiting.popleft()
                is_wanted = request.stop_waiting()
                if self._ended.is_set():
                    self._answer(request, OVER)
                elif not is_wanted:
                    self._answer(request, CUT)
                elif request.outcome is None:
                    await self._run_in_time(request)
        finally:
            self._is_working = False

    async def _run_in_time(self, request: _ActionRequest) -> None:
        ended = trio.Event()
        self._router.nursery.start_soon(self._run, request, ended, name="call action")
        with trio.move_on_after(request.limit_s + CLOSE_S):
            await ended.wait()
            return
        log.warning("call_action_hangs", action=request.action)
        self._answer(request, f"it was not done within {request.limit_s:g} s")

    async def _run(self, request: _ActionRequest, ended: trio.Event) -> None:
        means = self._means_of(request)
        assert means is not None
        request.scope.deadline = trio.current_time() + request.limit_s
        reason = ""
        try:
            with request.scope, CONTAINED:
                await means()
        except CallActionError as error:
            reason = str(error) or "it failed"
        except Exception as error:
            log.exception("transport_failed", method=request.action)
            reason = type(error).__name__
        finally:
            ended.set()
        if request.scope.cancelled_caught:
            reason = f"it was not done within {request.limit_s:g} s"
        self._answer(request, reason)

    def _answer(self, request: _ActionRequest, reason: str) -> None:
        """Publish how a request ended, unless that is published already."""
        if request.outcome is not None:
            return
        if reason:
            log.info("call_action_failed", action=request.action, pii_reason=reason)
            request.outcome = CallActionFailed(action=request.action, reason=reason)
        else:
            request.outcome = CallActionCompleted(action=request.action)
        request.answered.set()
        self._router.publish_detached(request.outcome, "call")
