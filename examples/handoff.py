"""A front desk that passes callers on to billing or technical support, and takes them back.

All three hear the whole call, and only one of them has the floor.  Billing and support set to work
when they hear their subject, while the desk still speaks.  Whoever talks over "I'll put you
through" stays where they are.  Try it: `python -m bridge talk examples/handoff.py:app`.
"""

import re
from collections.abc import AsyncIterator
from typing import Any

import trio

from bridge import App, Call, Message
from bridge.events import (
    AgentHandoff,
    AgentResponse,
    EndCall,
    UserStartedSpeaking,
    UserStoppedSpeaking,
    UserTranscriptionReceived,
)
from nodes import ConversationContext, ReasoningNode


class Colleague(ReasoningNode):
    """Somebody who knows one subject, and looks things up as soon as they hear of it."""

    name, subject, looks_up_s = "", "", 0.0

    def __init__(self, call: Call) -> None:
        super().__init__()
        self.call = call
        self.looks_up = False
        self.known = trio.Event()  # set once it has looked up what it could
        place = call.bridge(self)
        speaks = place.on(UserStoppedSpeaking, where=lambda message: place.has_floor)
        arrives = place.on(AgentHandoff, target=self.name)
        for trigger in (speaks, arrives):
            trigger.interrupt_on(UserStartedSpeaking).stream(self.generate).broadcast()
        place.on(UserTranscriptionReceived, where=self.is_meant, overlap="drop").map(self.look_up)

    def is_meant(self, message: Message) -> bool:
        return (
            bool(self.subject) and re.search(self.subject, message.event.content, re.I) is not None
        )

    async def look_up(self, message: Message) -> None:
        """Work in the background, whoever has the floor."""
        self.looks_up = True
        try:
            await trio.sleep(self.looks_up_s)
        finally:
            self.known.set()  # cancelled, too: nobody is to wait for ever

    async def pass_on(self, name: str, words: str) -> AsyncIterator[Any]:
        """Hand the caller over, unless they object to it in time."""
        if await self.call.say(words) == "completed":
            yield AgentHandoff(target=name)

    async def process_context(self, context: ConversationContext) -> AsyncIterator[Any]:
        if re.search(r"that's all|thank|desk", context.last_user_text, re.I):
            async for event in self.pass_on("desk", "Back to the desk, then."):
                yield event
            return
        if self.looks_up and not self.known.is_set():
            yield AgentResponse(content="One moment, I look it up. ")
            await self.known.wait()
        yield AgentResponse(content=self.answer())

    def answer(self) -> str:
        return ""


class Desk(Colleague):
    """Finds out who can help."""

    name = "desk"

    async def process_context(self, context: ConversationContext) -> AsyncIterator[Any]:
        said = context.last_user_text
        for name, colleague in COLLEAGUES.items():
            if re.search(colleague.subject, said, re.I):
                async for event in self.pass_on(name, f"I'll put you through to {name}."):
                    yield event
                return
        if re.search(r"\bno\b|bye|nothing", said, re.I):
            yield AgentResponse(content="Thank you for calling. Goodbye!")
            yield EndCall()
        else:
            ask = "Is it about a bill, or does something not work?"
            yield AgentResponse(content=ask if said else "Anything else I can do?")


class Billing(Colleague):
    name, subject, looks_up_s = "billing", r"bill|invoice|charge|pay", 1.0

    def answer(self) -> str:
        return (
            "Billing here. Your last bill was 42 dollars, and it is paid. Anything else about it?"
        )


class Support(Colleague):
    name, subject, looks_up_s = "support", r"internet|router|line|work|broken|slow", 3.0

    def answer(self) -> str:
        return "Technical support. I have tested your line: the router needs a restart. Shall I?"


COLLEAGUES: dict[str, type[Colleague]] = {"billing": Billing, "support": Support}


async def answer(call: Call) -> None:
    """Answer a call; the first to take a place has the floor."""
    for colleague in (Desk, Billing, Support):
        colleague(call)
    call.say("Front desk, what can I do for you?")


app = App(answer, name="the front desk")
