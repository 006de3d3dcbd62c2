"""A form that is filled by talking, checked as it is typed, and sent once it was confirmed.

The fields are a pydantic model: its errors are what the agent says.  Anything said may fill or
change any field.  The form is read back, and a "yes" counts only if the caller has heard all of it:
who interrupts the reading hears it again.  Try it: `python -m bridge talk examples/form.py:app`.
"""

import re
from collections.abc import AsyncIterator
from typing import Any, Literal

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from bridge import AgentEntry, App, Call
from bridge.events import AgentResponse, EndCall
from nodes import ConversationContext, ReasoningNode

NUMBERS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
DAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"


class Booking(BaseModel):
    """A table at a restaurant."""

    name: str = Field(min_length=2)
    guests: int = Field(ge=1, le=8)
    day: Literal["friday", "saturday", "sunday"]


QUESTIONS = {
    "name": "Under what name, please?",
    "guests": "For how many people?",
    "day": "On Friday, Saturday or Sunday?",
}


PATTERNS = {
    "name": rf"(?i:my name is|name's|i am|i'm|under|for) (?!(?i:{DAY}))([A-Z][a-z]+)",
    "guests": rf"(?i)\b(\d+|{'|'.join(NUMBERS)})\b",
    "day": rf"(?i)\b({DAY})\b",
}


class Waiter(ReasoningNode):
    """Asks for what is missing, and reads back what it has."""

    name = "waiter"

    def __init__(self) -> None:
        super().__init__()
        self.fields: dict[str, Any] = {}
        self.sent: list[Booking] = []
        self.asked = ""
        self._read = 0

    def fill(self, text: str) -> list[str]:
        """Take what was said into the form; returns what is wrong with it."""
        problems = []
        for name, pattern in PATTERNS.items():
            found = re.search(pattern, text)
            if found is None and name == self.asked == "name":
                found = re.search(r"\b([A-Z]\w+)\W*$", text)
            if found is None:
                continue
            word = found[1] if name == "name" else found[1].lower()
            value = NUMBERS.index(word) if word in NUMBERS else word
            typed: TypeAdapter[Any] = TypeAdapter(Booking.model_fields[name].rebuild_annotation())
            try:
                self.fields[name] = typed.validate_python(value)
            except ValidationError as error:
                problems.append(f"The {name}: {error.errors()[0]['msg'].lower()}. ")
        return problems

    async def process_context(self, context: ConversationContext) -> AsyncIterator[Any]:
        said = context.last_user_text
        confirmed = self.was_read() and re.search(r"\b(yes|right|correct)\b", said, re.I)
        before = dict(self.fields)
        for problem in self.fill(said):
            yield AgentResponse(content=problem)
        missing = [name for name in Booking.model_fields if name not in self.fields]
        if missing:
            self.asked = missing[0]
            yield AgentResponse(content=QUESTIONS[missing[0]])
        elif confirmed and before == self.fields:
            self.sent.append(Booking(**self.fields))
            yield AgentResponse(content="It is booked. See you then!")
            yield EndCall()
        else:
            yield AgentResponse(content=self.read_back())

    def read_back(self) -> str:
        form = Booking(**self.fields)
        day = form.day.capitalize()
        return f"A table for {form.guests} on {day}, under {form.name}. Is that right?"

    def was_read(self) -> bool:
        """Whether the caller has heard the form, as it is now, to its end."""
        entries = self.bridge.call.history.entries if self.bridge else ()
        last = next((entry for entry in reversed(entries) if isinstance(entry, AgentEntry)), None)
        return len(self.fields) == 3 and last is not None and last.heard.endswith(self.read_back())


async def answer(call: Call) -> None:
    """Answer a call."""
    waiter = Waiter()
    call.converse(waiter)
    call.say("Hello! For how many people is the table, and when?")


app = App(answer, name="the restaurant")
