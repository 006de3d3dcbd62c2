"""An agent with tools, interrupted by every verb at every point."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
import trio

from bargein import Call, ChatNode, Message, ToolEntry
from bargein.events import (
    PermissionRequested,
    UserStartedSpeaking,
    UserStoppedSpeaking,
)
from bargein.llm import AnswerPiece, TextDelta, ToolCallRequest, Usage
from bargein.testing import Caller, barge_in, interrupt_everywhere
from bargein.tools import commit, current_tool, finish, shield, tool

pytestmark = pytest.mark.proof

POLICIES = ["cancel", finish(0.5), shield(2.0), "detach"]
POLICY_NAMES = ["cancel", "finish", "shield", "detach"]

HAD_NO_EFFECT = ("not_started", "cancelled_before_effect", "denied", "withdrawn")
HAD_EFFECT = ("completed", "completed_after_interrupt")


class Model:
    """Books on request and reports the outcome; otherwise says that it is there."""

    def __init__(self) -> None:
        self.requests: list[list[Mapping[str, Any]]] = []

    async def stream(
        self, messages: Sequence[Mapping[str, Any]], *, tools: Sequence[Mapping[str, Any]] = ()
    ) -> AsyncIterator[AnswerPiece]:
        self.requests.append(list(messages))
        await trio.sleep(0.3)
        number = len(self.requests)
        words = [str(m["content"]) for m in messages if m["role"] == "user"]
        if messages[-1]["role"] == "tool":
            yield TextDelta("It is done: ")
            await trio.sleep(0.1)
            yield TextDelta(f"{messages[-1]['content']}.")
        elif tools and "Please book" in words[-1] and "background" not in words[-1]:
            yield TextDelta("One moment. ")
            await trio.sleep(0.1)
            yield ToolCallRequest(f"look_{number}", "look_up", {"city": "Tokyo"}, "{}")
            yield ToolCallRequest(f"book_{number}", "book", {"city": "Tokyo"}, "{}")
        else:
            yield TextDelta("I am here.")
        yield Usage(finish_reason="stop")


@dataclass
class Agency:
    """A fresh agent for each run, and what its tools did."""

    policy: Any = "cancel"
    permission: Any = "auto"
    parallel: bool = True
    model: Model = field(default_factory=Model)
    began: list[str] = field(default_factory=list)
    effects: list[str] = field(default_factory=list)
    at_cut: tuple[int, int] | None = None
    receipts: list[Any] = field(default_factory=list)

    async def answer(self, call: Call) -> None:
        self.model, self.began, self.effects, self.receipts = Model(), [], [], []
        self.at_cut = None

        @tool(read_only=True)
        async def look_up(city: str) -> str:
            """Look a city up."""
            self.began.append(current_tool().id)
            await trio.sleep(0.5)
            self.effects.append(current_tool().id)
            return "a city"

        @tool(policy=self.policy, permission=self.permission)
        async def book(city: str) -> str:
            """Book a journey."""
            self.began.append(current_tool().id)
            await trio.sleep(0.5)
            async with commit():
                await trio.sleep(0.2)
                self.effects.append(current_tool().id)
                await trio.sleep(0.2)
            await trio.sleep(0.3)
            return f"booked {city}"

        node = ChatNode(self.model, tools=[look_up, book], parallel_tools=self.parallel)
        bridge = call.bridge(node, name="agent")
        (
            bridge.on(UserStoppedSpeaking)
            .interrupt_on(UserStartedSpeaking, handler=node.on_interrupt_generate)
            .stream(node.generate)
            .broadcast()
        )

        async def says_yes(message: Message) -> None:
            await trio.sleep(0.4)
            call.handle.respond(message.event.id, allow=True)

        call.bridge(name="screen", is_agent=False).on(PermissionRequested).map(says_yes)

    def verb(self, name: str, *args: Any) -> Callable[[Caller], None]:
        """Return an interrupt that uses a verb."""

        def use(caller: Caller) -> None:
            receipt = getattr(caller.call.handle, name)(*args)
            self.receipts.append(receipt)
            if receipt.accepted:
                self.at_cut = (len(self.model.requests), len(self.began))

        return use

    def pause_for_a_second(self, caller: Caller) -> None:
        self.verb("pause")(caller)
        self.at_cut = None

        async def go_on() -> None:
            await trio.sleep(1)
            self.receipts.append(caller.call.handle.resume())

        caller.call.nursery.start_soon(go_on)

    def check(self, caller: Caller) -> None:
        """What the history says of each tool is what it did."""
        for entry in caller.call.history:
            if isinstance(entry, ToolEntry):
                self._check_tool(entry)
        assert max(Counter(self.effects).values(), default=0) <= 1, "an effect came twice"
        for messages in self.model.requests:
            check_pairs(messages)
        assert all(receipt.settled for receipt in self.receipts), "a verb has not settled"

    def _check_tool(self, entry: ToolEntry) -> None:
        id, outcome = entry.call.id, entry.outcome
        if outcome in ("not_started", "denied", "withdrawn"):
            assert id not in self.began, f"{id} is {outcome!r}, and began"
        if outcome in HAD_NO_EFFECT and entry.call.name == "book":
            assert id not in self.effects, f"{id} is {outcome!r}, and had its effect"
        if outcome in HAD_EFFECT:
            assert id in self.effects, f"{id} is {outcome!r}, and had no effect"
        if outcome == "effect_unknown":
            assert id in self.began, f"{id} is {outcome!r}, and never began"

    def check_stopped(self, caller: Caller) -> None:
        """Nothing began after the cut but what new words, or a job that came back, ask for."""
        self.check(caller)
        if self.at_cut is not None:
            requests, began = self.at_cut
            asked = [m for m in self.model.requests[requests:] if not is_new(m)]
            assert not asked, "the model was called after the cut"
            assert len(self.began) == began, "a tool began after the cut"


def is_new(messages: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a request comes of what was said, or came back, after the interrupt."""
    words = [str(m["content"]) for m in messages if m["role"] == "user"]
    return "Are you still there?" in words[-1] or "went on in the background" in words[-1]


def check_pairs(messages: Sequence[Mapping[str, Any]]) -> None:
    """Each call has exactly one result, in the messages right after it."""
    awaited: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            assert message["tool_call_id"] in awaited, "a result without a call"
            awaited.remove(message["tool_call_id"])
        else:
            assert not awaited, f"no result of {awaited}"
            awaited = [call["id"] for call in message.get("tool_calls") or ()]
    assert not awaited, f"no result of {awaited}"


async def books(caller: Caller) -> None:
    await caller.says("Please book Tokyo", takes_s=1.0)
    await caller.quiet()


VERBS = ["barge_in", "cancel", "emergency_stop", "redirect", "background", "pause", "shutdown"]


def tried(agency: Agency, verb: str, **options: Any) -> None:
    interrupt = {
        "redirect": agency.verb("redirect", "Look at Paris instead."),
        "pause": agency.pause_for_a_second,
        "shutdown": agency.verb("shutdown", 1.0),
    }.get(verb, agency.verb(verb))
    stops = verb in ("barge_in", "cancel", "emergency_stop")
    report = interrupt_everywhere(
        agency.answer,
        books,
        interrupt=interrupt,
        check=agency.check_stopped if stops else agency.check,
        ends_call=verb == "shutdown",
        **options,
    )
    assert report.drifted == 0


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("policy", POLICIES, ids=POLICY_NAMES)
def test_every_verb_with_every_policy(policy, verb):
    """In text, what the history says of the tools is what they did, wherever they are cut."""
    tried(Agency(policy), verb, audio=False, limit=4)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_in_a_voice_call(verb):
    """With audio, one tool after the other, and each verb twice."""
    tried(Agency(parallel=False), verb, twice=True, limit=4)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_around_a_question(verb):
    """A tool that asks first: a question that is withdrawn was neither allowed nor denied."""
    tried(Agency(permission="ask"), verb, audio=False, limit=5)


def test_every_point_of_speaking_to_it():
    """The caller starts to speak, as callers do, at each point of a call without audio."""
    agency = Agency(permission="ask")
    report = interrupt_everywhere(
        agency.answer, books, interrupt=barge_in, check=agency.check, audio=False
    )
    assert report.points == len(report.tried) > 30
    assert report.cut > 20
