"""Event classes and their aliases."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import pytest
from pydantic import BaseModel, ValidationError

from bargein.routes import Event, RouteDefinitionError, alias_of, class_of, open_router, register


class Placed(Event):
    type: Literal["evt.placed"] = "evt.placed"
    drink: str


class PlacedTwice(Placed):
    pass


class Untagged(BaseModel):
    size: int = 1


def test_an_event_is_frozen_and_refuses_unknown_fields():
    """An event cannot be changed, and takes only its own fields."""
    event = Placed(drink="tea")
    with pytest.raises(ValidationError):
        event.drink = "coffee"
    with pytest.raises(ValidationError):
        Placed(drink="tea", size=3)


def test_the_tag_is_the_alias():
    """An event class is found by the alias that its Literal tag names."""
    assert alias_of(Placed) == "evt.placed"
    assert class_of("evt.placed") is Placed


def test_a_subclass_without_a_tag_is_named_after_itself():
    """A subclass that sets no tag does not take its parent's alias."""
    assert alias_of(PlacedTwice) == "placed_twice"
    assert class_of("evt.placed") is Placed


def test_a_class_of_the_user_is_named_in_snake_case():
    """A pydantic model without tag has its class name, in snake case, as its alias."""
    assert alias_of(Untagged) == "untagged"

    class HTTPRequestDone:
        pass

    assert alias_of(HTTPRequestDone) == "http_request_done"


def test_a_dataclass_takes_its_type_as_alias():
    """A dataclass is named by its ``type``, as class variable or as field, slotted or not."""

    @dataclass(frozen=True, slots=True)
    class Frame:
        type: ClassVar[str] = "evt.frame"

    @dataclass(frozen=True, slots=True)
    class Slotted:
        type: Literal["evt.slotted"] = "evt.slotted"

    @dataclass
    class Plain:
        type: str = "evt.plain"

    @dataclass(slots=True)
    class WithoutDefault:
        type: str

    assert alias_of(Frame) == "evt.frame"
    assert alias_of(Slotted) == "evt.slotted"
    assert alias_of(Plain) == "evt.plain"
    assert alias_of(WithoutDefault) == "without_default"


def test_registering_makes_any_class_findable():
    """`register` works as a decorator, and twice."""

    @register
    class Knock:
        type = "evt.knock"

    assert class_of("evt.knock") is Knock
    assert register(Knock) is Knock


def test_an_alias_belongs_to_one_class():
    """A second class with the same alias is refused, naming both."""
    with pytest.raises(RouteDefinitionError, match=r"'evt.placed' of .*Thief belongs to Placed"):

        class Thief(Event):
            type: Literal["evt.placed"] = "evt.placed"


def test_an_unknown_alias_has_no_class():
    """`class_of` gives None for an alias that nobody has."""
    assert class_of("evt.nobody") is None


async def test_patterns_find_registered_classes():
    """A shell-style pattern covers the classes whose aliases it matches, and no others."""
    got = []
    async with open_router() as router:
        router.on("evt.*").map(lambda message: got.append(message.event))
        router.publish(Placed(drink="tea"), "caller")
        router.publish(Untagged(), "caller")
    assert got == [Placed(drink="tea")]
