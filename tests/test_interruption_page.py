"""The documented page "Interruption handling" of Line 0.1: its samples run, its promises hold.

The samples stand here as they are published.  Only imports differ, and ``asyncio.CancelledError``
reads ``trio.Cancelled``; what a sample leaves out (a model, a clock, a logger) is given to it.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import structlog
import trio

from bargein import Bridge, Call, ConversationContext, ReasoningNode
from bargein.events import (
    AgentError,
    AgentGenerationComplete,
    AgentHandoff,
    AgentResponse,
    AgentSpeechCut,
    EmergencyStop,
    UserStartedSpeaking,
    UserStoppedSpeaking,
    UserTranscriptionReceived,
)
from bargein.testing import Caller, open_call

logger = structlog.get_logger()


class Chunk:
    def __init__(self, text: str) -> None:
        self.text = text


class FakeModel:
    """A streaming model: a word each 100 ms; it knows how many of its streams are open."""

    def __init__(self, text: str = "One two three four five six seven eight nine ten") -> None:
        self.text = text
        self.open_streams = 0
        self.given = 0

    async def generate_stream(self, messages: object) -> AsyncIterator[Chunk]:
        self.open_streams += 1
        try:
            for word in self.text.split():
                await trio.sleep(0.1)
                self.given += 1
                yield Chunk(word + " ")
        finally:
            self.open_streams -= 1


class PlainNode(ReasoningNode):
    """The simplest node there is."""

    def __init__(self) -> None:
        super().__init__()
        self.llm_client = FakeModel()

    async def process_context(self, context: ConversationContext) -> AsyncIterator[AgentResponse]:
        async for chunk in self.llm_client.generate_stream(context.as_chat()):
            yield AgentResponse(content=chunk.text)


class InterruptAwareNode(ReasoningNode):
    def __init__(self) -> None:
        super().__init__()
        self.llm_client = FakeModel()
        self.log: list[str] = []

    def on_interrupt_generate(self, message):
        """Called when generation is interrupted."""
        self.log.append("Generation interrupted by user")
        # Cleanup streaming resources, cancel API calls, etc.

    async def process_context(self, context):
        messages = context.as_chat()
        try:
            # Stream response chunks
            async for chunk in self.llm_client.generate_stream(messages):
                yield AgentResponse(content=chunk.text)

        except trio.Cancelled:
            # Handle cancellation gracefully
            self.log.append("Generation cancelled due to user interruption")
            # Perform any final cleanup
            raise  # Re-raise to complete cancellation


class StatefulInterruptNode(ReasoningNode):
    def __init__(self):
        super().__init__()
        self.generation_state = None
        self.llm_client = FakeModel()
        self.saved: list[dict[str, Any]] = []

    def on_interrupt_generate(self, message):
        # Save state for potential recovery
        self.generation_state = {
            "interrupted_at": trio.current_time(),
            "partial_response": self.current_response,
            "context_snapshot": self.context.copy(),
        }
        self.saved.append(self.generation_state)
        logger.info("Saved generation state for recovery")

    async def generate_response(self, context):
        async for chunk in self.llm_client.generate_stream(context):
            yield chunk.text

    async def process_context(self, context):
        try:
            # Check if resuming from interruption
            if self.generation_state:
                logger.info("Resuming from previous interruption")
                # Potentially use saved state
                self.generation_state = None

            # Normal generation flow
            async for chunk in self.generate_response(context):
                yield AgentResponse(content=chunk)

        except trio.Cancelled:
            logger.info("Generation cancelled")
            raise


Declare = Callable[[Bridge, Any], None]


def calling(node: ReasoningNode, declare: Declare) -> Any:
    """A call in which a node answers by the routes that a sample declares."""

    async def answer(call: Call) -> None:
        bridge = call.bridge(node, name="agent")
        bridge.on(UserTranscriptionReceived).map(node.add_event)
        declare(bridge, node)

    return open_call(answer, chars_per_s=10)


def basic(bridge: Bridge, node: Any) -> None:
    # Basic interruption setup
    (
        bridge.on(UserStoppedSpeaking)
        .interrupt_on(UserStartedSpeaking)
        .stream(node.generate)
        .broadcast()
    )


def with_node_handler(bridge: Bridge, node: Any) -> None:
    # Connect interrupt handler in route
    (
        bridge.on(UserStoppedSpeaking)
        .interrupt_on(UserStartedSpeaking, handler=node.on_interrupt_generate)
        .stream(node.generate)
        .broadcast()
    )


def multiple(bridge: Bridge, node: Any) -> None:
    # Interrupt on multiple event types
    (
        bridge.on(UserStoppedSpeaking)
        .interrupt_on([UserStartedSpeaking, EmergencyStop, AgentHandoff])
        .stream(node.generate)
        .broadcast()
    )


async def outcomes(caller: Caller) -> list[str]:
    return [event.outcome for event in caller.events(AgentGenerationComplete)]


# --- Basic Example ------------------------------------------------------------------------------


async def test_basic_interruption_setup(autojump_clock):
    """Natural Conversation: the user interrupts at any time, and is answered."""
    async with calling(PlainNode(), basic) as caller:
        await caller.says("hello", takes_s=0.5)
        await caller.says("wait", at_s=1.5, takes_s=0.5)
        await caller.quiet()
        assert await outcomes(caller) == ["interrupted", "completed"]
        texts = [(e.role, getattr(e, "content", None) or e.heard) for e in caller.call.history]
        assert [role for role, _ in texts] == ["user", "agent", "user", "agent"]
        assert texts[1][1] == "One two"


async def test_a_custom_async_interrupt_handler(autojump_clock):
    """An async handler runs after the cut, once, with the message that interrupted."""
    cleaned: list[str] = []

    async def cleanup_resources() -> None:
        await trio.sleep(0.05)
        cleaned.append(f"{trio.current_time():.2f}")

    async def handle_interrupt(message):
        logger.info("User interrupted, stopping generation")
        assert isinstance(message.event, UserStartedSpeaking)
        # Perform any needed cleanup
        await cleanup_resources()

    def declare(bridge: Bridge, node: Any) -> None:
        # With custom interrupt handler
        (
            bridge.on(UserStoppedSpeaking)
            .interrupt_on(UserStartedSpeaking, handler=handle_interrupt)
            .stream(node.generate)
            .broadcast()
        )

    async with calling(PlainNode(), declare) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(0.45)
        caller.publish(UserStartedSpeaking())
        await caller.quiet()
        assert cleaned == ["0.50"]


# --- Node-Level Interruption Handling -----------------------------------------------------------


async def test_a_node_hears_of_its_cancellation_and_of_the_interrupt(autojump_clock):
    """Graceful Cancellation: the node's except clause runs, then its handler, and no error."""
    node = InterruptAwareNode()
    async with calling(node, with_node_handler) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(0.45)
        caller.publish(UserStartedSpeaking())
        await caller.quiet()
        assert node.log == [
            "Generation cancelled due to user interruption",
            "Generation interrupted by user",
        ]
        assert not caller.events(AgentError)
        assert await outcomes(caller) == ["interrupted"]
        assert node.llm_client.given == 4


# --- Advanced Patterns --------------------------------------------------------------------------


async def test_conditional_interruption(autojump_clock):
    """Only after the agent has spoken for a minimum time does an interrupt count."""
    MIN_SPEAK_TIME = 0.5
    generation_start_time = 0.0

    class time:
        time = staticmethod(trio.current_time)

    # Only allow interruption after agent has spoken for a minimum time
    def can_interrupt(message):
        return time.time() - generation_start_time > MIN_SPEAK_TIME

    def declare(bridge: Bridge, node: Any) -> None:
        (
            bridge.on(UserStoppedSpeaking)
            .interrupt_on(UserStartedSpeaking, condition=can_interrupt)
            .stream(node.generate)
            .broadcast()
        )

    async with calling(PlainNode(), declare) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(0.45)
        caller.publish(UserStartedSpeaking())
        assert not caller.call.history.interruptions
        await caller.at(0.55)
        caller.publish(UserStartedSpeaking())
        assert len(caller.call.history.interruptions) == 1


@pytest.mark.parametrize(
    "event", [UserStartedSpeaking(), EmergencyStop(), AgentHandoff(target="agent")]
)
async def test_multiple_interrupt_events(autojump_clock, event):
    """Any event of the list interrupts."""
    node = PlainNode()
    async with calling(node, multiple) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(0.45)
        caller.publish(event)
        await caller.quiet()
        assert await outcomes(caller) == ["interrupted"]
        assert node.llm_client.given == 4


async def test_state_is_kept_for_recovery(autojump_clock):
    """The node saves what it has generated and what it knew, and the next turn finds it."""
    node = StatefulInterruptNode()
    async with calling(node, with_node_handler) as caller:
        await caller.says("tell me", takes_s=0.1)
        await caller.at(0.65)
        await caller.says("no", takes_s=0.1)
        (state,) = node.saved
        assert state["interrupted_at"] == pytest.approx(0.65)
        assert state["partial_response"] == "One two three four five "
        snapshot = state["context_snapshot"]
        assert [entry.role for entry in snapshot] == ["user", "agent"]
        before = list(snapshot)
        await caller.quiet()
        assert node.generation_state is None
        assert list(snapshot) == before
        assert node.current_response == node.llm_client.text + " "


# --- Key Components -----------------------------------------------------------------------------


async def test_events_of_the_page(autojump_clock):
    """Starting to speak interrupts, stopping resumes the flow, completion tells the end."""
    async with calling(PlainNode(), basic) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(0.45)
        caller.publish(UserStartedSpeaking())
        await caller.until(lambda c: c.events(AgentGenerationComplete), within_s=0.1)
        caller.publish(UserStoppedSpeaking())
        complete = await caller.receives(AgentGenerationComplete)
        assert complete.outcome == "completed"
        assert complete.content == "One two three four five six seven eight nine ten "


# --- the overview and the best practices --------------------------------------------------------


async def test_resource_cleanup(autojump_clock):
    """Resource Cleanup, Resource Leaks: an interrupt closes the model's stream in that tick."""
    node = PlainNode()
    async with calling(node, basic) as caller:
        for round_ in range(20):
            await caller.at(round_ + 0.0)
            caller.publish(UserStoppedSpeaking())
            await trio.sleep(0.45)
            assert node.llm_client.open_streams == 1
            caller.publish(UserStartedSpeaking())
            await trio.testing.wait_all_tasks_blocked()
            assert node.llm_client.open_streams == 0


async def test_seamless_recovery(autojump_clock):
    """Seamless Recovery, State Recovery: after any number of interrupts a full answer comes."""
    async with calling(PlainNode(), basic) as caller:
        for _ in range(5):
            caller.publish(UserStoppedSpeaking())
            await trio.sleep(0.45)
            caller.publish(UserStartedSpeaking())
        caller.publish(UserStoppedSpeaking())
        await caller.quiet()
        assert await outcomes(caller) == ["interrupted"] * 5 + ["completed"]
        assert caller.heard.endswith("One two three four five six seven eight nine ten ")


async def test_handlers_are_kept_light_by_a_bound(autojump_clock):
    """Fast Interruption Response: a slow handler delays neither silence nor, for long, the turn."""

    async def slow() -> None:
        await trio.sleep(60)

    def declare(bridge: Bridge, node: Any) -> None:
        chain = bridge.on(UserStoppedSpeaking).interrupt_on(UserStartedSpeaking, handler=slow)
        chain.stream(node.generate).broadcast()

    async with calling(PlainNode(), declare) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(0.45)
        caller.publish(UserStartedSpeaking())
        assert [cut.utterance for cut in caller.events(AgentSpeechCut)] == [1]
        caller.publish(UserStoppedSpeaking())
        await caller.receives(AgentResponse)
        assert caller.now_s == pytest.approx(0.45 + 1.0 + 0.1, abs=0.002)


async def test_interruptions_are_logged(autojump_clock):
    """Log Interruptions: the node has a record of each, with what was heard and by whom."""
    node = PlainNode()
    async with calling(node, basic) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(1.05)
        caller.publish(UserStartedSpeaking())
        (record,) = node.interruptions
        assert (record.by, record.cause) == ("caller", "user.started_speaking")
        assert record.heard == "One two"
        decisions = [d for route in caller.call.router.routes for d in route.decisions]
        assert "cut" in [decision.verdict for decision in decisions]


async def test_partial_responses_are_handled(autojump_clock):
    """Recovery Planning: the model is told what was heard, not what was generated."""
    node = PlainNode()
    async with calling(node, basic) as caller:
        await caller.says("count", takes_s=0.1)
        await caller.at(1.15)
        await caller.says("stop", takes_s=0.1)
        assert node.context.as_chat() == [
            {"role": "user", "content": "count"},
            {"role": "assistant", "content": "One two"},
            {"role": "user", "content": "stop"},
        ]


# --- common use cases ---------------------------------------------------------------------------


async def test_long_responses(autojump_clock):
    """A lengthy answer is cut in the middle, and the words after it are never said."""
    node = PlainNode()
    node.llm_client.text = " ".join(["word"] * 500)
    async with calling(node, basic) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(59.9)
        caller.publish(UserStartedSpeaking())
        await caller.quiet()
        assert caller.now_s == pytest.approx(59.9)
        assert len(caller.heard.split()) == 119


async def test_emergency_stop_is_immediate(autojump_clock):
    """Emergency Stops: past the condition that keeps the user from interrupting."""

    def declare(bridge: Bridge, node: Any) -> None:
        never = {"condition": lambda message: False}
        chain = bridge.on(UserStoppedSpeaking).interrupt_on(UserStartedSpeaking, **never)
        chain.stream(node.generate).broadcast()

    async with calling(PlainNode(), declare) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(1.05)
        caller.publish(UserStartedSpeaking())
        assert caller.events(AgentSpeechCut) == []
        caller.publish(EmergencyStop())
        assert [cut.utterance for cut in caller.events(AgentSpeechCut)] == [1]


async def test_context_switches(autojump_clock):
    """The user changes the topic in mid-answer: the next answer knows both."""
    node = PlainNode()
    async with calling(node, basic) as caller:
        await caller.says("coffee", takes_s=0.1)
        await caller.at(1.15)
        await caller.says("tea instead", takes_s=0.1)
        await caller.quiet()
        roles = [entry["role"] for entry in node.context.as_chat()]
        assert roles == ["user", "assistant", "user", "assistant"]


async def test_a_handoff_cancels_the_agent_that_transfers(autojump_clock):
    """Multi-Agent Handoffs: a hand-over by another party cuts, and the new agent is heard."""
    await _hand_over(published_by_the_run=False)


async def test_a_run_that_hands_over_may_cut_itself(autojump_clock):
    """Its own AgentHandoff interrupts it, as its route says; the new agent is heard."""
    await _hand_over(published_by_the_run=True)


async def _hand_over(*, published_by_the_run: bool) -> None:
    class Transferring(PlainNode):
        async def process_context(self, context: ConversationContext) -> AsyncIterator[Any]:
            yield AgentResponse(content="Let me transfer you to my colleague.")
            await trio.sleep(1.05)
            if published_by_the_run:
                yield AgentHandoff(target="colleague")
            await trio.sleep(5)
            yield AgentResponse(content="never")

    greeting = PlainNode()
    greeting.llm_client.text = "Colleague here"

    async def answer(call: Call) -> None:
        node = Transferring()
        multiple(call.bridge(node, name="agent"), node)
        second = call.bridge(greeting, name="colleague")
        second.on(AgentHandoff, target="colleague").stream(greeting.generate).broadcast()

    async with open_call(answer, chars_per_s=10) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(1.05)
        if not published_by_the_run:
            caller.publish(AgentHandoff(target="colleague"))
        await caller.quiet()
        await caller.at(9)
        assert caller.heard == "Let me\nColleague here "
        assert [e.target for e in caller.events(AgentHandoff)] == ["colleague"]
        assert [b.name for b in caller.call.bridges if b.has_floor] == ["colleague"]


# --- troubleshooting ----------------------------------------------------------------------------


async def test_why_generation_does_not_stop_can_be_asked(autojump_clock):
    """Generation Doesn't Stop: a route says why an event did not cut it."""

    def declare(bridge: Bridge, node: Any) -> None:
        chain = bridge.on(UserStoppedSpeaking)
        chain = chain.interrupt_on(UserStartedSpeaking, condition=lambda message: False)
        chain.stream(node.generate).broadcast()

    async with calling(PlainNode(), declare) as caller:
        caller.publish(UserStartedSpeaking())
        caller.publish(UserStoppedSpeaking())
        await caller.at(0.45)
        caller.publish(UserStartedSpeaking())
        (route,) = [r for r in caller.call.router.routes if "stream(PlainNode" in str(r.route)]
        assert [d.verdict for d in route.decisions] == ["idle", "matched", "gated"]
        assert "condition was False" in route.decisions[-1].why


async def test_a_node_that_eats_its_cancellation_is_cut_all_the_same(autojump_clock):
    """Check that the node handles cancellation: even if it does not, nothing of it is heard."""

    class Stubborn(PlainNode):
        async def process_context(self, context: ConversationContext) -> AsyncIterator[Any]:
            yield AgentResponse(content="One two ")
            with contextlib.suppress(BaseException):  # the mistake that is shown
                await trio.sleep(10)
            yield AgentResponse(content="three four")

    async with calling(Stubborn(), basic) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(0.75)
        caller.publish(UserStartedSpeaking())
        await caller.at(5)
        assert caller.heard == "One two"
        assert [e.content for e in caller.events(AgentResponse)] == ["One two "]
        caller.publish(UserStoppedSpeaking())
        await caller.at(6)
        assert len(caller.events(AgentResponse)) == 2


async def test_async_with_is_left_in_order(autojump_clock):
    """Use async with for resources: its exit may take its time, within a bound."""
    closed: list[float] = []

    class Connection:
        async def __aenter__(self) -> Connection:
            return self

        async def __aexit__(self, *_: object) -> None:
            with trio.move_on_after(1, shield=True):
                await trio.sleep(0.3)
            closed.append(round(trio.current_time(), 2))

    class Connected(PlainNode):
        async def process_context(self, context: ConversationContext) -> AsyncIterator[Any]:
            stack = contextlib.AsyncExitStack()
            try:
                await stack.enter_async_context(Connection())
                yield AgentResponse(content="One two ")
                await trio.sleep(10)
            finally:
                with trio.move_on_after(1, shield=True):
                    await stack.aclose()

    async with calling(Connected(), basic) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(0.75)
        caller.publish(UserStartedSpeaking())
        await caller.at(3)
        assert closed == [1.05]


async def test_state_stays_consistent(autojump_clock):
    """State Corruption: history and node agree after every one of many interrupts."""
    node = PlainNode()
    async with calling(node, basic) as caller:
        for n in range(10):
            await caller.says(f"words {n}", takes_s=0.05)
            await trio.sleep(0.1 * n)
        await caller.quiet()
        for entry in caller.call.history:
            if entry.role == "agent":
                assert entry.generated.startswith(entry.heard)
        said = [entry.content for entry in caller.call.history if entry.role == "user"]
        assert said == [f"words {n}" for n in range(10)]
        numbers = [e.answer for e in caller.events(AgentGenerationComplete)]
        assert numbers == list(range(1, 11))
