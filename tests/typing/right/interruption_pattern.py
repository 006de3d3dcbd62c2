"""The pattern as users have written it from the first day, without annotations."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

import time
from typing import Literal

from bargein import Call, ConversationContext, Event, ReasoningNode
from bargein.events import (
    AgentHandoff,
    AgentResponse,
    EmergencyStop,
    UserStartedSpeaking,
    UserStoppedSpeaking,
)

MIN_SPEAK_TIME = 1.0
generation_start_time = time.time()


class Pressed(Event):
    type: Literal["pressed"] = "pressed"


async def handle_interrupt(message):
    print("User interrupted, stopping generation")


def can_interrupt(message):
    return time.time() - generation_start_time > MIN_SPEAK_TIME


class StatefulInterruptNode(ReasoningNode):
    def __init__(self):
        super().__init__()
        self.generation_state = None

    def on_interrupt_generate(self, message):
        self.generation_state = {
            "interrupted_at": time.time(),
            "partial_response": self.current_response,
            "context_snapshot": self.context.copy(),
        }

    async def process_context(self, context: ConversationContext):
        if self.generation_state:
            self.generation_state = None
        for word in ("One ", "moment."):
            yield AgentResponse(content=word)


async def answer(call: Call):
    node = StatefulInterruptNode()
    bridge = call.bridge(node)
    (
        bridge.on(UserStoppedSpeaking)
        .interrupt_on(UserStartedSpeaking)
        .stream(node.generate)
        .broadcast()
    )
    (
        bridge.on(UserStoppedSpeaking)
        .interrupt_on(UserStartedSpeaking, handler=handle_interrupt)
        .stream(node.generate)
        .broadcast()
    )
    (
        bridge.on(UserStoppedSpeaking)
        .interrupt_on(UserStartedSpeaking, node.on_interrupt_generate)
        .stream(node.generate)
        .broadcast()
    )
    (
        bridge.on(UserStoppedSpeaking)
        .interrupt_on(UserStartedSpeaking, condition=can_interrupt)
        .stream(node.generate)
        .broadcast()
    )
    (
        bridge.on(UserStoppedSpeaking)
        .interrupt_on([UserStartedSpeaking, EmergencyStop, AgentHandoff])
        .stream(node.generate)
        .broadcast()
    )
