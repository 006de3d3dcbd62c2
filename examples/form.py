"""A form that callers fill in by talking; pydantic checks it, and a "yes" sends it.

The fields are a pydantic model, and the agent says its errors.  Whatever callers say may fill or
change any field.  The agent reads the form back, and a "yes" counts only if the caller has heard
all of it; callers who interrupt the reading hear it again.  To try it, run
`python -m bargein talk examples/form.py:app`, and say "four people", "tomorrow at eight", "under
Miller".
"""

import re
import sys
from collections.abc import AsyncIterator, Callable
from datetime import date, time
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

sys.path.insert(0, str(Path(__file__).parent))  # the package `spoken` is beside this file

from spoken import day_in, last_said, means_no, means_yes, name_in, people_in, time_in

from bargein import AgentEntry, App, Call, ConversationContext, ReasoningNode
from bargein.events import AgentResponse, EndCall


class Booking(BaseModel):
    """A table at a restaurant."""

    name: str = Field(min_length=2)
    guests: int = Field(ge=1, le=8)
    day: date
    time_of_day: time | None = Field(default=None, ge=time(17), le=time(22))  # None: any


QUESTIONS = {
    "name": "Under what name, please?",
    "guests": "For how many people?",
    "day": "For what day, and at what time?",
}
CALLED = {
    "name": r"\bname\b",
    "guests": r"people|guests|number|how many",
    "day": r"\bday|date|time",
}


class Waiter(ReasoningNode):
    """Asks for what is missing, and reads back what it has."""

    name = "waiter"

    def __init__(self, today: Callable[[], date] = date.today) -> None:
        super().__init__()
        self.today = today
        self.fields: dict[str, Any] = {}
        self.sent: list[Booking] = []
        self.asked = ""
        self.said_tomorrow = False

    def found_in(self, text: str) -> dict[str, Any]:
        """Return the values for the fields in a text; None for a missing one."""
        told = {
            "name": name_in(text, asked=self.asked == "name"),
            "guests": last_said(text, people_in),
            "day": last_said(text, lambda part: day_in(part, self.today())),
            "time_of_day": last_said(text, time_in),
        }
        if told["guests"] and "guests" in self.fields and re.search(r"\b(?:more|extra)\b", text):
            told["guests"] += self.fields["guests"]
        if self.asked == "day" and "guests" in self.fields and not re.search("people|of us", text):
            told["time_of_day"] = told["time_of_day"] or time_in(f"at {told.pop('guests')}")
        return told

    def fill(self, text: str) -> list[str]:
        """Fill what was said into the form; return what is wrong with it."""
        problems = []
        for name, value in self.found_in(text).items():
            if value is None:
                continue
            typed: TypeAdapter[Any] = TypeAdapter(Booking.model_fields[name].rebuild_annotation())
            try:
                self.fields[name] = typed.validate_python(value)
            except ValidationError as error:
                label = name.replace("_", " ")
                problems.append(f"The {label}: {error.errors()[0]['msg'].lower()}. ")
            else:
                if name == "day":
                    ahead = (value - self.today()).days
                    self.said_tomorrow = ahead == 1 and "tomorrow" in text.lower()
        return problems

    async def process_context(self, context: ConversationContext) -> AsyncIterator[Any]:
        said = context.last_user_text
        was_read, before = self.was_read(), dict(self.fields)
        for problem in self.fill(said):
            yield AgentResponse(content=problem)
        missing = [name for name in QUESTIONS if name not in self.fields]
        if missing:
            self.asked = missing[0]
            yield AgentResponse(content=QUESTIONS[missing[0]])
        elif was_read and means_yes(said) and before == self.fields:
            self.sent.append(Booking(**self.fields))
            yield AgentResponse(content="It is booked. See you then!")
            yield EndCall()
        elif was_read and means_no(said) and before == self.fields:
            self.asked = "change"
            yield AgentResponse(content="What shall I change?")
        elif self.asked == "change" and before == self.fields and (field := field_called(said)):
            self.asked = field
            yield AgentResponse(content=QUESTIONS[field])
        else:
            self.asked = ""
            yield AgentResponse(content=self.read_back())

    def read_back(self) -> str:
        form = Booking(**self.fields)
        day, at = f"on {form.day:%A}", form.time_of_day
        if self.said_tomorrow:
            day = f"tomorrow, {form.day:%A},"
        elif form.day == self.today():
            day = "today"
        elif (form.day - self.today()).days > 7:
            day = f"on {form.day:%A, %d %B}"
        when = f"{day} at {at:%I:%M} pm" if at else day.rstrip(",")
        when = re.sub(r"\b0(?=\d)|:00\b", "", when)
        return f"A table for {form.guests} {when}, under {form.name}. Is that right?"

    def was_read(self) -> bool:
        """Whether the caller has heard the current form to its end."""
        entries = self.bridge.call.history.entries if self.bridge else ()
        last = next((entry for entry in reversed(entries) if isinstance(entry, AgentEntry)), None)
        complete = all(name in self.fields for name in QUESTIONS)
        return complete and last is not None and last.heard.endswith(self.read_back())


def field_called(text: str) -> str:
    """Return the field that a text mentions; empty for none."""
    called = (name for name, words in CALLED.items() if re.search(words, text, re.I))
    return next(called, "")


async def answer(call: Call, today: Callable[[], date] = date.today) -> None:
    """Answer a call."""
    call.converse(Waiter(today))
    call.say("Hello! For how many people is the table, and when?")


app = App(answer, name="the restaurant")
