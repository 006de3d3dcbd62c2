"""A front desk that passes callers on to billing or technical support, and takes them back.

All three hear the whole call, and one of them has the floor.  Billing and support start to work
when they hear their subject, while the desk still speaks.  Callers who talk over "I'll put you
through" stay where they are; to get somebody else, they say so at any time: "put me through to
technical support".  To try it, run `python -m bargein talk examples/handoff.py:app`.
"""

import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import trio

sys.path.insert(0, str(Path(__file__).parent))  # the package `spoken` is beside this file

from spoken import last_said, means_no, means_yes, without_denied

from bargein import App, Call, ConversationContext, Message, ReasoningNode
from bargein.events import (
    AgentHandoff,
    AgentResponse,
    EndCall,
    UserTranscriptionReceived,
)

SUBJECTS = {
    "billing": r"\bbill|invoice|charge|\bpay|\bpaid|refund|price|cost|money|account|subscription",
    "support": r"technic|\btech\b|support|internet|wi-?fi|router|modem|\bline\b|\bwork|broken|slow"
    r"|connection|outage|offline|signal",
    "desk": r"\bdesk|reception|operator|some(?:one|body) else|\b(?:go|take me) back\b",
}
TRANSFER = (
    r"\b(?:put|pass|transfer|connect|switch|send|get) (?:me|us)\b|\b(?:speak|talk|go) (?:to|with)\b"
)
LEAVING = r"\b(?:good)?bye\b|hang up"
THAT_IS_ALL = r"that(?:'s| is| was) (?:all|it|everything)|\bthank|nothing|\bdone\b"


def wishes(said: str) -> list[str]:
    """Return the colleague that a caller asks for, otherwise all whose subjects they mention."""
    _, *asked_for = re.split(TRANSFER, without_denied(said), flags=re.I)
    wish = last_said(asked_for[-1], lambda part: named_in(part)[:1] or None) if asked_for else None
    return wish or named_in(without_denied(said))


def named_in(text: str) -> list[str]:
    """Return the colleagues whose subjects a text mentions, in order."""
    found = [(re.search(pattern, text, re.I), name) for name, pattern in SUBJECTS.items()]
    return [name for _, name in sorted((match.start(), name) for match, name in found if match)]


class Colleague(ReasoningNode):
    """An agent for one subject, which looks things up as soon as it hears of it."""

    name, looks_up_s = "", 0.0

    def __init__(self, call: Call) -> None:
        super().__init__()
        self.call = call
        self.looks_up = False
        self.known = trio.Event()  # set when the lookup has ended
        place = call.join(self)
        place.on(UserTranscriptionReceived, where=self.is_meant, overlap="drop").map(self.look_up)

    def is_meant(self, message: Message) -> bool:
        return self.name != "desk" and self.name in wishes(message.event.content)

    async def look_up(self, message: Message) -> None:
        """Work in the background, whoever has the floor."""
        self.looks_up = True
        try:
            await trio.sleep(self.looks_up_s)
        finally:
            self.known.set()  # even if cancelled, so that nobody waits for ever

    async def process_context(self, context: ConversationContext) -> AsyncIterator[Any]:
        """Pass the caller on, or answer."""
        said = context.last_user_text
        named = wishes(said)
        if self.is_left(said, named):
            yield AgentResponse(content="Thank you for calling. Goodbye!")
            yield EndCall()
        elif to := self.whom_else(said, named):
            words = "Back to the desk, then." if to == "desk" else f"I'll put you through to {to}."
            if await self.call.say(words) == "completed":  # unless they object in time
                yield AgentHandoff(target=to)
        else:
            if self.looks_up and not self.known.is_set():
                yield AgentResponse(content="One moment, I look it up. ")
                await self.known.wait()
            yield AgentResponse(content=self.answer(said, named))

    def is_left(self, said: str, named: list[str]) -> bool:
        """Return whether the caller says goodbye."""
        return re.search(LEAVING, said, re.I) is not None

    def whom_else(self, said: str, named: list[str]) -> str:
        """Return the colleague to pass the caller on to; empty to stay."""
        if len(named) == 1 and named != [self.name]:
            return named[0]
        is_all = not named and (re.search(THAT_IS_ALL, said, re.I) or self.is_refused(said))
        return "desk" if is_all and self.name != "desk" else ""

    def is_refused(self, said: str) -> bool:
        """Return whether a "no" means that the caller wants nothing else here."""
        return means_no(said)

    def answer(self, said: str, named: list[str]) -> str:
        """Return the answer to a caller; `said` is empty for one who has just arrived."""
        raise NotImplementedError


class Desk(Colleague):
    """Finds out who can help."""

    name = "desk"

    def __init__(self, call: Call) -> None:
        super().__init__(call)
        self.asked_for_more = False  # "anything else?" to a caller who has come back

    def is_left(self, said: str, named: list[str]) -> bool:
        is_all = means_no(said) or re.search(THAT_IS_ALL, said, re.I)
        done = self.asked_for_more and not named and is_all
        return bool(done) or super().is_left(said, named)

    def answer(self, said: str, named: list[str]) -> str:
        self.asked_for_more |= not said
        if named:
            return "Whom first: billing, or support?"
        return (
            "Is it about a bill, or does something not work?" if said else "Anything else I can do?"
        )


class Billing(Colleague):
    name, looks_up_s = "billing", 1.0

    def answer(self, said: str, named: list[str]) -> str:
        if said and not named:
            return "What is it about the bill? Or shall I put you through to support, or the desk?"
        return (
            "Billing here. Your last bill was 42 dollars, and it is paid. Anything else about it?"
        )


class Support(Colleague):
    name, looks_up_s = "support", 3.0

    def __init__(self, call: Call) -> None:
        super().__init__(call)
        self.offered = False  # to restart the router

    def is_refused(self, said: str) -> bool:
        return means_no(said) and not self.offered

    def answer(self, said: str, named: list[str]) -> str:
        offered, self.offered = self.offered, bool(named or not said)
        if offered and means_no(said):
            return "Then I leave it as it is. Anything else about the line?"
        if offered and means_yes(said):
            return "It restarts now, which takes two minutes. Anything else about the line?"
        if said and not named:
            return "What is it about the line? Or shall I put you through to billing, or the desk?"
        return "Technical support. I have tested your line: the router needs a restart. Shall I?"


async def answer(call: Call) -> None:
    """Answer a call; the first colleague to join has the floor."""
    for colleague in (Desk, Billing, Support):
        colleague(call)
    call.say("Front desk, what can I do for you?")


app = App(answer, name="the front desk")
