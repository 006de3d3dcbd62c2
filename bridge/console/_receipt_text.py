"""Receipts as lines for a person."""

from __future__ import annotations

import math

from .._verbs import Verb
from ..commands._terminal_text import one_line
from ..context._running_tools import StillRunning
from ..context._verb_receipt import Receipt
from ._lines import ConsoleLine, seconds

_DONE: dict[Verb, str] = {
    "pause": "paused; /resume continues",
    "resume": "goes on",
    "redirect": "redirected",
    "cancel": "interrupted",
    "background": "continues in the background",
    "barge_in": "silenced",
    "emergency_stop": "everything stopped",
    "shutdown": "the work ends",
}


def receipt_line(receipt: Receipt, now_s: float) -> ConsoleLine:
    """Return a line on what a verb did, with the tools that it stopped or did not stop.

    Args:
        receipt: The verb's receipt.
        now_s: The time, in seconds of trio's clock.
    """
    if not receipt.accepted:
        name = receipt.verb.replace("_", " ")
        return ConsoleLine(f"{name} did nothing: {receipt.reason}", "dim", "■ ")
    parts = [_DONE[receipt.verb]]
    if receipt.stopped:
        parts.append("stopped: " + ", ".join(one_line(tool.tool, 40) for tool in receipt.stopped))
    if receipt.still_running:
        still = ", ".join(_still(tool, now_s) for tool in receipt.still_running)
        parts.append(f"still running: {still}")
    return ConsoleLine("; ".join(parts), "warn", "■ ")


def _still(tool: StillRunning, now_s: float) -> str:
    name = one_line(tool.tool, 40)
    if tool.deadline_s == math.inf:
        return f"{name} (in the background)"
    return f"{name} ({tool.policy}, at most {seconds(max(0.0, tool.deadline_s - now_s))})"


def not_stopped_line(receipt: Receipt, running: frozenset[str]) -> ConsoleLine | None:
    """Return a line on the tools that a settled verb could not stop; ``None`` if there are none.

    Args:
        receipt: The verb's receipt, settled.
        running: The ids of the running tools.
    """
    names = [one_line(tool.tool, 40) for tool in receipt.stopped if tool.id in running]
    names += [
        one_line(tool.tool, 40)
        for tool in receipt.still_running
        if tool.id in running and tool.deadline_s < math.inf
    ]
    if not names:
        return None
    return ConsoleLine(f"could not be stopped: {', '.join(names)}", "bad", "! ")
