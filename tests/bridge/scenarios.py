"""Agents and scenarios to interrupt."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import trio
import trio.testing

from bargein import Call, Message
from bargein.events import (
    AgentResponse,
    EmergencyStop,
    UserStartedSpeaking,
    UserStoppedSpeaking,
)
from bargein.testing import (
    Caller,
    Report,
    interrupt_everywhere,
)

Generate = Callable[[Message], AsyncIterator[object]]


def agent(*generators: Callable[[Call], Generate]) -> Callable[[Call], Any]:
    """Return an answer whose agent gives what these generate, and can be interrupted."""

    async def answer(call: Call) -> None:
        for number, generator in enumerate(generators):
            bridge = call.bridge(name=f"agent{number or ''}")
            (
                bridge.on(UserStoppedSpeaking)
                .interrupt_on([UserStartedSpeaking, EmergencyStop])
                .stream(generator(call))
                .broadcast()
            )

    return answer


def two_sentences(call: Call) -> Generate:
    async def generate(message: Message) -> AsyncIterator[object]:
        await trio.sleep(0.4)
        yield AgentResponse(content="One sentence. ")
        await trio.sleep(0.4)
        yield AgentResponse(content="And another.")

    return generate


sound = agent(two_sentences)


async def one_question(caller: Caller) -> None:
    await caller.says("Well?", takes_s=1.0)
    await caller.quiet()


def broken(answer: Any, scenario: Any = one_question, **options: Any) -> Report:
    """Return what was found wrong."""
    with pytest.raises(AssertionError, match="interrupts broke the scenario") as caught:
        interrupt_everywhere(answer, scenario, **{"audio": False, **options})
    assert isinstance(caught.value.report, Report)
    return caught.value.report


def breaches(report: Report) -> set[str]:
    return {breach for run in report.broken for breach in run.breaches}
