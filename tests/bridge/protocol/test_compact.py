"""Events as short JSON: what is shown, what is left out, and that nothing makes it fail."""

import json
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from bargein import Event, events
from bargein.bridge.protocol._event_json import MAX_LEFT, MAX_TEXT, compact, without_words

SECRET = "four one one one"

SAYS_NOTHING = {
    "message", "route", "stage", "reason", "target", "call_id", "which", "id", "name", "unit",
    "decision", "rule", "values", "agent", "capped", "error", "call", "finish_reason",
}  # fmt: skip
"""Fields of our events that may be shown though they are texts."""


class Order(Event):
    """An event of a user's own."""

    type: Literal["compact.order"] = "compact.order"
    drink: str = SECRET
    cups: int = 2
    size: Literal["small", "large"] = "large"
    extras: dict[str, Any] = {"syrup": SECRET}


class Plain(BaseModel):
    """Routed, but no Event."""

    drink: str = SECRET
    price: float = 2.5


@dataclass
class Level:
    """A dataclass with what JSON cannot say."""

    db: float = float("nan")
    raw: bytes = b"12345"
    what: object = field(default_factory=object)
    nested: Plain = field(default_factory=Plain)


def test_words_are_shown_if_asked() -> None:
    """All fields of an event are shown, and not its tag."""
    shown = compact(Order())
    assert shown == {"drink": SECRET, "cups": 2, "size": "large", "extras": {"syrup": SECRET}}


def test_without_words_numbers_and_fixed_words_remain() -> None:
    """Of an event of a user's own, no text is shown but that of a fixed set."""
    assert without_words(Order()) == ({"cups": 2, "size": "large"}, ("drink", "extras"))
    assert without_words(Plain()) == ({"price": 2.5}, ("drink",))


def test_empty_texts_are_not_told_as_hidden() -> None:
    """A field that holds nothing hides nothing."""
    assert without_words(Order(drink="", extras={})) == ({"cups": 2, "size": "large"}, ())


def every_event() -> list[type[Event]]:
    """The events of the call that have a field for text."""
    classes = [each for each in vars(events).values() if isinstance(each, type)]
    return [cls for cls in classes if issubclass(cls, Event) and cls is not Event]


@pytest.mark.parametrize("cls", every_event(), ids=lambda cls: cls.__name__)
def test_no_event_of_ours_tells_what_was_said(cls: type[Event]) -> None:
    """Whatever text stands in an event, only the fields that name things are shown."""
    texts = {
        name: {SECRET: SECRET} if str(each.annotation).startswith("dict") else SECRET
        for name, each in cls.model_fields.items()
        if (each.annotation is str or str(each.annotation).startswith("dict")) and not each.exclude
    }
    shown, hidden = without_words(cls.model_construct(**texts))
    told = {name for name, value in shown.items() if SECRET in json.dumps(value)}
    assert told <= SAYS_NOTHING
    assert told | set(hidden) == set(texts)


def test_keys_of_the_telephone_are_words() -> None:
    """Which key was pressed is hidden: keys spell card numbers."""
    assert without_words(events.DTMFInput(button="4")) == ({}, ("button",))


def test_fields_that_only_name_things() -> None:
    """What decides a turn, and which tool runs, is shown without any words."""
    decided = events.TurnDecided(
        about="barge_in", decision="noise", rule="min_duration_s", values={"voiced_s": 0.2}
    )
    assert without_words(decided) == (
        {
            "about": "barge_in",
            "decision": "noise",
            "rule": "min_duration_s",
            "values": {"voiced_s": 0.2},
        },
        (),
    )
    call = events.ToolCall(name="pay", id="t1", arguments={"card": SECRET})
    assert without_words(call) == ({"name": "pay", "id": "t1"}, ("arguments",))


def test_long_values_are_shortened() -> None:
    """Long texts, lists and trees end where they are long enough, and say how long they are."""
    text = compact(Order(drink="x" * 5000))["drink"]
    assert text == "x" * MAX_TEXT + "… 5000 characters in all"
    items = compact(Order(extras={"all": list(range(100))}))["extras"]["all"]
    assert len(items) == 41
    assert items[-1] == "… 100 in all"
    many = compact(Order(extras={str(n): n for n in range(100)}))["extras"]
    assert many["…"] == "100 in all"
    deep: dict[str, Any] = {}
    for _ in range(50):
        deep = {"in": deep}
    assert len(json.dumps(compact(Order(extras=deep)))) < 200


def test_one_event_is_bounded() -> None:
    """An event of many long texts is not much longer than its bound."""
    huge = {str(n): ["x" * 900 for _ in range(30)] for n in range(30)}
    assert len(json.dumps(compact(Order(extras=huge)))) < 3 * MAX_LEFT


def test_what_json_cannot_say() -> None:
    """Bytes become their number, other objects their class, and no number is lost."""
    assert compact(Level()) == {
        "db": "nan",
        "raw": "<5 bytes>",
        "what": "<object>",
        "nested": {"drink": SECRET, "price": 2.5},
    }
    assert compact(object()) == {}
    assert json.dumps(compact(Order(drink="\ud83d")))
