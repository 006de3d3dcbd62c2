"""Each policy does what it declares, measured with real processes of every kind.

A process is polite, deaf to SIGINT, deaf to SIGINT and SIGTERM, or leaves a grandchild that is deaf
to both.  After the policy has had its say, nothing of it may be alive.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import trio

from bargein import ChatNode, open_agent
from bargein.events import ToolOutput
from bargein.llm import ToolCallRequest, Usage
from bargein.tools import CommandTool, SignalLadder, finish, shield

pytestmark = pytest.mark.proof

LADDER = SignalLadder(int_s=0.3, term_s=0.3, kill_s=5)
RUNS_S = 6.0
GRACE_S = 0.7
CAP_S = 1.5
SLACK_S = 3.0
"""What starting Python and looking through the process table may take on a busy machine."""

DEAF = "signal.signal({}, signal.SIG_IGN); "
START = "import os, signal, subprocess, sys, time; "
READY = "print(os.getpid(), flush=True); "
TEMPERS = {
    "polite": "signal.signal(signal.SIGINT, signal.default_int_handler); ",
    "deaf to INT": DEAF.format("signal.SIGINT"),
    "deaf to INT and TERM": DEAF.format("signal.SIGINT") + DEAF.format("signal.SIGTERM"),
    "leaves a grandchild": (
        DEAF.format("signal.SIGINT")
        + DEAF.format("signal.SIGTERM")
        + "child = subprocess.Popen([sys.executable, '-S', '-c', 'import time; time.sleep(60)'],"
        " process_group=0); print(child.pid, flush=True); "
    ),
}
LADDER_S = {
    "polite": 0.0,
    "deaf to INT": LADDER.int_s,
    "deaf to INT and TERM": LADDER.int_s + LADDER.term_s,
    "leaves a grandchild": LADDER.int_s + LADDER.term_s,
}
POLICIES = {"cancel": "cancel", "finish": finish(GRACE_S), "shield": shield(CAP_S)}


class Asks:
    """A model that wants the tool once."""

    def __init__(self) -> None:
        self.asked = 0

    async def stream(self, messages: Any, *, tools: Any = ()) -> Any:
        self.asked += 1
        await trio.lowlevel.checkpoint()
        if self.asked == 1:
            yield ToolCallRequest("call_1", "work", {}, json.dumps({}))
        yield Usage()


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except OSError:
        return False


async def pids_of(messages: Any, count: int) -> list[int]:
    """Wait until the process has told that it and its children have begun."""
    pids: list[int] = []
    async for message in messages:
        if isinstance(message.event, ToolOutput):
            pids += [int(word) for word in message.event.text.split()]
            if len(pids) >= count:
                return pids
    raise AssertionError("the call ended first")


@pytest.mark.parametrize("policy", [*POLICIES, "detach"])
async def test_a_cancel_takes_as_long_as_is_declared(policy, python):
    """Never before the policy allows, never after the ladder is done, and nothing is left."""
    async with trio.open_nursery() as nursery:
        for temper in TEMPERS:
            nursery.start_soon(cancel_it, policy, temper, python)


async def cancel_it(policy: str, temper: str, python: Any) -> None:
    code = START + TEMPERS[temper] + READY + f"time.sleep({RUNS_S if policy != 'detach' else 1})"
    command = CommandTool(
        python(code), "work", policy=POLICIES.get(policy, "detach"), ladder=LADDER
    )
    with trio.fail_after(60):
        async with open_agent(ChatNode(Asks(), tools=[command])) as handle:
            messages = handle.subscribe()
            handle.send_input("go")
            pids = await pids_of(messages, 2 if "grandchild" in temper else 1)
            (work,) = handle.call.running_tools
            began_s, cut_s = work.started_at_s, trio.current_time()
            receipt = handle.cancel()
            await receipt.settled
            settled_s = trio.current_time() - cut_s
            if policy == "detach":
                assert settled_s < SLACK_S
                assert [still.policy for still in receipt.still_running] == ["detach"]
                await work.done.wait()
            else:
                from_s = {"cancel": cut_s, "finish": cut_s + GRACE_S, "shield": began_s + CAP_S}
                least_s = max(0.0, from_s[policy] - cut_s) + LADDER_S[temper]
                assert least_s - 0.05 <= settled_s <= least_s + SLACK_S
                assert bool(receipt.still_running) == (policy != "cancel")
            assert not [pid for pid in pids if is_alive(pid)]
