"""A speech to speech model that is interrupted between any two steps of the scheduler."""

from __future__ import annotations

import pytest
import trio

from bargein import Call, tool
from bargein.events import AgentSpeechCut
from bargein.fakes import FakeOpenAIRealtime, RealtimeCall
from bargein.realtime import OpenAIRealtime, RealtimeNode
from bargein.testing import Caller, interrupt_everywhere

CHAR_S = 0.05
"""How long a character of the vendor's is heard."""

CROSSED = "response_cancel_not_active"
"""A cancel that crosses the end of its response on the way; it does no harm (the SDK)."""

POINTS = 60
"""How many of some hundred points are tried, spread evenly; all of them take a minute."""


@tool
async def brew(drink: str) -> str:
    """Brew a drink."""
    await trio.sleep(0.5)
    return "ready"


async def serve(
    vendor: FakeOpenAIRealtime, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
) -> None:
    """Be there for as long as the call lasts."""
    async with vendor.open():
        task_status.started()
        await trio.sleep_forever()


@pytest.mark.proof
@pytest.mark.parametrize("twice", [False, True])
def test_both_sides_stay_alike_wherever_it_is_interrupted(twice):
    """No point leaves an error of the vendor's, two cancels, or words that nobody has heard."""
    vendors: list[FakeOpenAIRealtime] = []

    async def answer(call: Call) -> None:
        replies = [["One moment please.", RealtimeCall("brew", {"drink": "latte"})]]
        vendor = FakeOpenAIRealtime(*replies, "It is ready now.")
        vendors.append(vendor)
        await call.nursery.start(serve, vendor)
        model = OpenAIRealtime(api_key="k", base_url="ws://fake/v1", dial=vendor.dial)
        call.converse(RealtimeNode(model, "You sell coffee.", tools=[brew]))

    async def order(caller: Caller) -> None:
        await trio.sleep(0.1)
        await caller.says("a latte", takes_s=0.2)
        await caller.quiet()

    def both_sides_are_alike(caller: Caller) -> None:
        line = vendors[-1].line
        assert set(line.errors) <= {CROSSED}
        assert len(line.cancels) == len(set(line.cancels))
        spoken = [item for item in line.items if item.what == "assistant"]
        whole = [item for item in spoken if item.text]
        assert all(item.audio_ms == pytest.approx(1000 * CHAR_S * len(item.text)) for item in whole)
        cut_ms = [int(cut.at_ms) for cut in caller.events(AgentSpeechCut) if cut.at_ms >= 1]
        assert [item.audio_ms for item in spoken if not item.text] == cut_ms
        calls = [item for item in line.items if item.what == "call:brew"]
        results = [item for item in line.items if item.what == "result"]
        assert len(calls) == len(results) <= 1

    report = interrupt_everywhere(
        answer, order, check=both_sides_are_alike, limit=POINTS, twice=twice
    )
    assert len(report.tried) >= POINTS
