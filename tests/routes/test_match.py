"""Which messages are meant."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import pytest
from pydantic import BaseModel

from bargein import Event, Message, RouteDefinitionError
from bargein.routes._match import matcher, written_options

if TYPE_CHECKING:
    from decimal import Decimal


class Key(Event):
    type: Literal["mt.key"] = "mt.key"
    button: str


class LongKey(Key):
    held_s: float = 1.0


class Word(Event):
    type: Literal["mt.word"] = "mt.word"
    content: str = ""


class Mine(BaseModel):
    weight: int = 0


@dataclass
class Sound:
    level: float = 0.0


@dataclass
class Priced:
    price: Decimal


class Bare:
    size: int


class Odd:
    class Unknown:
        pass

    thing: Unknown


def meant(built, event, source="caller"):
    checks = built.for_class(type(event))
    message = Message(event, source)
    return checks is not None and all(check(message) for check in checks)


def test_a_class_covers_its_subclasses():
    """A class matches its own events and those of subclasses, and no others."""
    built = matcher(Key, "on()")
    assert meant(built, Key(button="1"))
    assert meant(built, LongKey(button="1"))
    assert not meant(built, Word())


@pytest.mark.parametrize("specs", [[Key, Word], (Key, Word), {Key, Word}, frozenset((Key, Word))])
def test_several_classes_match_any(specs):
    """A list, tuple or set matches any of its members."""
    built = matcher(specs, "on()")
    assert meant(built, Key(button="1"))
    assert meant(built, Word())
    assert not meant(built, Mine())


def test_an_alias_or_pattern_matches_by_name():
    """An alias matches its class and subclasses, a pattern all that it covers."""
    assert meant(matcher("mt.key", "on()"), LongKey(button="1"))
    assert not meant(matcher("mt.key", "on()"), Word())
    assert meant(matcher("mt.*", "on()"), Word())
    assert not meant(matcher("mt.*", "on()"), Mine())


def test_a_predicate_is_asked_per_message():
    """A function of the message decides, alone or beside a class."""
    built = matcher(lambda message: message.source == "caller", "on()")
    assert meant(built, Mine())
    assert not meant(built, Mine(), "agent")
    mixed = matcher([Key, lambda m: m.source == "x", lambda m: m.source == "y"], "on()")
    assert meant(mixed, Key(button="1"), "z")
    assert meant(mixed, Word(), "y")
    assert not meant(mixed, Word(), "z")
    assert meant(matcher(lambda: True, "on()"), Word())


def test_classes_of_the_user_can_be_matched():
    """Pydantic models, dataclasses and plain classes of the user are matched and filtered."""
    assert meant(matcher(Mine, "on()", filters={"weight": 3}), Mine(weight=3))
    assert not meant(matcher(Mine, "on()", filters={"weight": 3}), Mine(weight=4))
    assert meant(matcher(Sound, "on()", filters={"level": lambda v: v > 0.5}), Sound(0.9))
    bare = Bare()
    bare.size = 2
    assert meant(matcher(Bare, "on()", filters={"size": 2}), bare)


@pytest.mark.parametrize("spec", [Key, "mt.*", lambda message: True])
def test_what_is_left_out_is_never_meant(spec):
    """A class under `unless` does not match, nor do its subclasses, whatever names them."""
    built = replace(matcher(spec, "on()"), unless=(LongKey, Sound))
    assert meant(built, Key(button="1"))
    assert not meant(built, LongKey(button="1"))
    assert not meant(built, Sound())
    without_keys = replace(built, unless=(Key,))
    assert not meant(without_keys, LongKey(button="1"))


def test_sources_restrict():
    """`source=` takes a name or several."""
    assert meant(matcher(Word, "on()", source="caller"), Word())
    assert not meant(matcher(Word, "on()", source="agent"), Word())
    assert meant(matcher(Word, "on()", source=["agent", "caller"]), Word())
    assert not meant(matcher(Word, "on()", source=["a", "b"]), Word())


def test_where_restricts():
    """`where=` is a further function of the message, or of nothing."""
    assert meant(matcher(Word, "on()", where=lambda m: m.event.content == "x"), Word(content="x"))
    assert not meant(matcher(Word, "on()", where=lambda m: m.event.content == "x"), Word())
    assert not meant(matcher(Word, "on()", where=lambda: False), Word())


def test_fields_restrict():
    """A field filter takes a value or a function of the value, over every class that is named."""
    assert meant(matcher(Key, "on()", filters={"button": "5"}), Key(button="5"))
    assert not meant(matcher(Key, "on()", filters={"button": "5"}), Key(button="6"))
    assert meant(matcher(Key, "on()", filters={"button": str.isdigit}), Key(button="6"))
    assert meant(matcher("mt.key", "on()", filters={"button": "5"}), LongKey(button="5"))


def test_a_field_whose_type_is_unknown_here_can_be_filtered():
    """Names that only type checkers import, and types without a schema, are no hindrance."""
    assert meant(matcher(Priced, "on()", filters={"price": 5}), Priced(5))
    matcher(Odd, "on()", filters={"thing": 5})


@pytest.mark.parametrize(
    ("spec", "options", "message"),
    [
        ([], {}, r"on\(\) got an empty list; name at least one event"),
        (object, {}, "needs an event class, not object"),
        (int, {}, "needs an event class, not int"),
        (5, {}, "needs an event class, an alias such as 'user.*', or a function"),
        (None, {}, "not None"),
        (Key(button="1"), {}, "got an event, .*pass its class, Key"),
        (Sound(), {}, "got an event, .*pass its class, Sound"),
        ("mt.kee", {}, "no event has the alias 'mt.kee'; did you mean 'mt.key'"),
        ("zzzzzzzzzz", {}, "no event has the alias 'zzzzzzzzzz'; known: "),
        ([Key, Word, Key], {}, "names Key twice; name it once"),
        (["mt.key", "mt.key"], {}, "names 'mt.key' twice"),
        (Key, {"filters": {"buton": "5"}}, "Key has no field 'buton'; did you mean 'button'"),
        (Key, {"filters": {"zzz": "5"}}, r"Key has no field 'zzz'; it has \['button', 'type'\]"),
        (Key, {"filters": {"button": 5}}, "button=5 can never equal Key.button: .*string"),
        (lambda m: True, {"filters": {"button": "5"}}, "button= needs an event class beside it"),
        (Key, {"source": ""}, "source= needs names of publishers"),
        (Key, {"source": []}, "source= needs names of publishers"),
        (Key, {"source": 5}, "source= needs names of publishers, such as 'caller', not 5"),
        (Key, {"where": 5}, "where= needs a function, not 5"),
        (Key, {"where": lambda a, b: 0}, "it may take the message, or nothing"),
        (Key, {"filters": {"button": lambda a, b: 0}}, "it may take the field's value"),
    ],
)
def test_mistakes_are_told_when_written(spec, options, message):
    """A declaration that can never be right is refused at once, with the fix."""
    with pytest.raises(RouteDefinitionError, match=message):
        matcher(spec, "on()", **options)


def test_async_functions_cannot_match():
    """Predicates, `where=` and field functions decide in the same step, so they are plain."""

    async def later(message): ...

    for arguments in ({"spec": later}, {"spec": Key, "where": later}):
        with pytest.raises(RouteDefinitionError, match="later is async"):
            matcher(arguments.pop("spec"), "on()", **arguments)
    with pytest.raises(RouteDefinitionError, match="button= must be a plain function"):
        matcher(Key, "on()", filters={"button": later})


def test_a_matcher_prints_as_written():
    """`str` of a matcher is what stood between the brackets."""

    def mine(message): ...

    assert str(matcher(Key, "on()")) == "Key"
    assert str(matcher(["mt.*", Key, mine], "on()")) == "['mt.*', Key, mine]"
    assert written_options({"a": 1, "b": mine}, ["x"], mine) == [
        "a=1",
        "b=mine",
        "source=['x']",
        "where=mine",
    ]
