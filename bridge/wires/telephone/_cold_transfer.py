"""A transfer by the carrier's webhook: it dials when its stream ends, and the agent is gone."""

from __future__ import annotations

from typing import final

import trio

from ..._line_abilities import CallActionError
from .._wire import HostedCall


@final
class ColdTransfer:
    """The transfer of one call.

    Attributes:
        handoff: What the carrier is asked to do when the stream ends; ``None`` for nothing.
    """

    __slots__ = ("_hosted", "_silent", "handoff")

    def __init__(self, hosted: HostedCall) -> None:
        self.handoff: dict[str, str] | None = None
        self._hosted = hosted
        self._silent = trio.Event()

    def silent(self) -> None:
        """Record that the agent has stopped speaking."""
        self._silent.set()

    async def transfer(self, target_phone_number: str) -> None:
        """Let the carrier dial a number for the caller, once what is being said was heard.

        Its webhook, which the carrier asks when the stream ends, answers with the number.

        Args:
            target_phone_number: The number, or a SIP address.

        Raises:
            CallActionError: It is neither.
        """
        target = target_phone_number.strip()
        if not (target.startswith("sip:") or target.lstrip("+").replace("-", "").isdigit()):
            raise CallActionError("the number to transfer to is none, such as +15550100")
        await self._quiet()
        self.handoff = {"transfer": target}
        self._hosted.end("transferred")

    async def _quiet(self) -> None:
        """Wait until what was said before was heard or cut."""
        await trio.lowlevel.checkpoint()
        call = self._hosted.call
        while call is not None and not call.answers.playout.is_idle:
            self._silent = trio.Event()
            await self._silent.wait()
