"""Goes on with a call that another process began: with its floor and its unfinished answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import trio

from bargein.routes.logs import get_logger

from ..answers._call_answers import BegunAnswer
from ..events import UserStoppedSpeaking
from ..history._entries import AgentEntry, Entry, UserEntry
from ..validation.texts import has_words

if TYPE_CHECKING:
    from ..call._call import Call
    from ._call_records import SavedAnswer, SavedCall

AGENTS_S = 5.0
"""How many seconds ``answer(call)`` may take to give the agents their places."""

LOOK_S = 0.01
"""How often this is looked at, in seconds."""

MOST_RUNS = 2
"""How many processes begin an answer: what has ended two would end the next one, too."""

log = get_logger()


async def continue_call(call: Call, saved: SavedCall) -> None:
    """Go on where the other process was; its words count from what was heard.

    Args:
        call: The call, whose ``answer`` function runs.
        saved: What the other process had recorded.
    """
    await _agents_there(call, saved)
    if saved.floor and saved.floor in call.parts.context.floor.agents:
        call.parts.context.floor.give(saved.floor)
    entries = call.last_history.entries
    for number, answer in saved.answers.items():
        _continue(call, _heard_of(number, entries), number, answer)
    last = entries[-1] if entries else None
    if not saved.answers and isinstance(last, UserEntry) and not last.is_returned:
        call.router.trigger_again(UserStoppedSpeaking(), "caller")
    if saved.is_paused:
        call.control.use("pause", source="call")


async def _agents_there(call: Call, saved: SavedCall) -> None:
    wanted = {answer.agent for answer in saved.answers.values()} | {saved.floor}
    wanted -= {"", "call"}
    for _ in range(round(AGENTS_S / LOOK_S)):
        if wanted <= set(call.parts.context.floor.agents):
            return
        await trio.sleep(LOOK_S)
    log.warning("resumed_call_lacks_agents", agents=sorted(wanted))


def _heard_of(answer: int, entries: Sequence[Entry]) -> str:
    """Return what was heard of an answer: by the journal, or by the store that has the history."""
    said = (one for one in reversed(entries) if isinstance(one, AgentEntry))
    return next((one.heard for one in said if one.answer == answer), "")


def _continue(call: Call, heard: str, number: int, answer: SavedAnswer) -> None:
    if answer.text is not None:
        rest = answer.text.removeprefix(heard)
        if has_words(rest):
            call.answers.say_rest(BegunAnswer(number, heard, None), rest)
        return
    if answer.runs >= MOST_RUNS:
        log.error("answer_ends_its_workers", answer=number, runs=answer.runs)
        return
    trigger = answer.trigger or UserStoppedSpeaking()
    call.answers.continue_by(BegunAnswer(number, heard, trigger, is_generated_again=True))
    call.router.trigger_again(trigger, answer.source or "caller")
