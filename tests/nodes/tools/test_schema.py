"""From signatures to schemas, from arguments to values, from values to text."""

import time
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Literal

import pytest
import trio
from pydantic import BaseModel, Field

from bargein.tools import BadArgumentsError, ToolContext, ToolDefinitionError, tool


class Drink(BaseModel):
    """Something to drink."""

    name: str
    cups: int = 1


@dataclass
class Point:
    x: int
    y: int


class Opaque:
    """No JSON can hold this."""


def test_the_schema_of_a_signature():
    """Types, defaults, choices and nested models become JSON schema; the context does not."""

    def order(
        drink: Drink,
        size: Literal["small", "large"],
        context: ToolContext,
        day: date | None = None,
        tips: Annotated[list[float], Field(max_length=3, description="In euro.")] = [],  # noqa: B006
    ):
        """Order a drink.

        It is made at once.

        Args:
            drink: What to drink.
            size: How large; the large
                one costs more.
            context: Not for the model.
            tips: Not looked at, because the annotation says it.

        Returns:
            The number of the order.
        """

    made = tool(order)
    assert made.description == "Order a drink.\n\nIt is made at once."
    schema = made.parameters
    assert list(schema["properties"]) == ["drink", "size", "day", "tips"]
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    assert schema["required"] == ["drink", "size"]
    assert schema["properties"] == {
        "drink": {"$ref": "#/$defs/Drink", "description": "What to drink."},
        "size": {
            "enum": ["small", "large"],
            "type": "string",
            "description": "How large; the large one costs more.",
        },
        "day": {
            "anyOf": [{"format": "date", "type": "string"}, {"type": "null"}],
            "default": None,
        },
        "tips": {
            "items": {"type": "number"},
            "maxItems": 3,
            "type": "array",
            "default": [],
            "description": "In euro.",
        },
    }
    assert schema["$defs"]["Drink"]["properties"]["cups"] == {"default": 1, "type": "integer"}


def test_a_function_without_arguments():
    """An object without properties."""

    def ping():
        pass

    assert tool(ping).parameters == {
        "type": "object",
        "properties": {},
        "additionalProperties": False,
    }
    assert tool(ping).parse({}) == {}


def test_names_that_pydantic_keeps_for_itself():
    """A parameter may have any name that Python allows."""

    def odd(model_config: int, schema: int, json: int, _private: int, copy: int = 5):
        pass

    values = {"model_config": 1, "schema": 2, "json": 3, "_private": 4}
    assert tool(odd).parse(values) == {**values, "copy": 5}
    assert list(tool(odd).parameters["properties"]) == [*values, "copy"]


def test_arguments_become_values():
    """Models, dates and the like come as Python has them, defaults are filled in."""

    def order(drink: Drink, day: date, cups: int = 2):
        pass

    given = {"drink": {"name": "tea"}, "day": "2026-03-01"}
    assert tool(order).parse(given) == {
        "drink": Drink(name="tea"),
        "day": date(2026, 3, 1),
        "cups": 2,
    }


def test_a_default_is_not_shared():
    """What one call does to a default does not reach the next."""

    def note(lines: list[str] = []):  # noqa: B006
        pass

    made = tool(note)
    made.parse({})["lines"].append("x")
    assert made.parse({}) == {"lines": []}


def test_bad_arguments_are_told_so_that_they_can_be_mended():
    """What is missing, wrong and unknown is named, with what there is."""

    def order(drink: Drink, cups: int):
        pass

    with pytest.raises(BadArgumentsError) as caught:
        tool(order).parse({"drink": {"cups": "many"}, "sugar": 1})
    assert str(caught.value) == (
        "bad arguments for 'order': drink.name: is missing; drink.cups: Input should be a valid "
        "integer, unable to parse string as an integer, not 'many'; cups: is missing; "
        "sugar: there is no such argument. It takes: drink, cups."
    )


def test_an_enum_made_at_run_time_is_checked():
    """What the schema of an argument, or of its items, names as its values is all that it takes."""
    cups, milks = ["S", "M"], ["oat", "soy"]

    def order(
        size: Annotated[str, Field(json_schema_extra={"enum": cups, "examples": ["S"]})],
        milk: Annotated[
            list[str], Field(json_schema_extra={"items": {"type": "string", "enum": milks}})
        ] = [],  # noqa: B006
        to: Annotated[str | None, Field(json_schema_extra={"enum": ["bar"]})] = None,
    ):
        pass

    made = tool(order)
    assert made.parameters["properties"]["size"]["enum"] == cups
    assert made.parse({"size": "S", "milk": ["oat"], "to": None})["milk"] == ["oat"]
    assert made.parse({"size": "M"})["to"] is None
    with pytest.raises(BadArgumentsError) as caught:
        made.parse({"size": "XL", "milk": ["soy", "cow"], "to": "table"})
    assert str(caught.value) == (
        "bad arguments for 'order': size: is one of ['S', 'M'], not 'XL'; "
        "milk: is one of ['oat', 'soy'], not 'cow'; to: is one of ['bar'], not 'table'. "
        "It takes: size, milk, to."
    )


class Topping(BaseModel):
    """A part of a drink."""

    name: Annotated[str, Field(json_schema_extra={"enum": ["foam", "cream"]})]


class Cup(BaseModel):
    """A drink with its parts."""

    main: Topping
    others: list[Topping] = []


def test_an_enum_within_a_model_is_checked():
    """The fields of models are checked as arguments are, in lists too, and named with their way."""

    def fill(cup: Cup, spare: Topping | None = None):
        pass

    made = tool(fill)
    foam, milk = {"name": "foam"}, {"name": "milk"}
    assert made.parse({"cup": {"main": foam, "others": [foam]}, "spare": foam})["spare"]
    with pytest.raises(BadArgumentsError) as caught:
        made.parse({"cup": {"main": milk, "others": [foam, milk]}, "spare": milk})
    assert str(caught.value) == (
        "bad arguments for 'fill': cup.main.name: is one of ['foam', 'cream'], not 'milk'; "
        "cup.others.name: is one of ['foam', 'cream'], not 'milk'; "
        "spare.name: is one of ['foam', 'cream'], not 'milk'. It takes: cup, spare."
    )


class Order(BaseModel):
    """A drink that the model names in another way than Python."""

    topping: Annotated[Topping, Field(validation_alias="with")]


@pytest.mark.parametrize(
    ("argument", "field"),
    [
        ({"named": {"mine": {"name": "milk"}}}, "named.name"),
        ({"rows": [[{"name": "foam"}, {"name": "milk"}]]}, "rows.name"),
        ({"order": {"with": {"name": "milk"}}}, "order.with.name"),
    ],
)
def test_an_enum_is_checked_wherever_its_model_is(argument, field):
    """In the values of a dict, in lists of lists, and in a field that has another name as JSON."""

    def fill(
        named: dict[str, Topping] | None = None,
        rows: list[list[Topping]] | None = None,
        order: Order | None = None,
    ):
        pass

    with pytest.raises(BadArgumentsError, match=f"{field}: is one of .*, not 'milk'"):
        tool(fill).parse(argument)


def test_methods_take_their_instance():
    """The first parameter of a method is not the model's business."""

    class Shop:
        @tool
        def sell(self, cups: int):
            return cups

    assert list(Shop().sell.parameters["properties"]) == ["cups"]
    assert Shop().sell(2) == 2


def bare(cups):
    pass


def many(*cups: int):
    pass


def anything(**cups: int):
    pass


def without_type(context):
    pass


def position(cups: int, /):
    pass


def unknown(cups: "Cups"):  # noqa: F821
    pass


def field(cups: int = Field(1)):
    pass


def opaque(cups: Opaque):
    pass


def twice(a: ToolContext, b: ToolContext):
    pass


def wrongly_documented(cups: int):
    """Brew.

    Args:
        cup: How many.
    """


@pytest.mark.parametrize(
    ("fn", "message"),
    [
        (bare, "annotate 'cups' of bare"),
        (without_type, r"annotate 'context' of without_type\(\), `context: ToolContext` gets"),
        (many, "each parameter of a tool needs a name"),
        (anything, "each parameter of a tool needs a name"),
        (position, "each parameter of a tool needs a name"),
        (unknown, "name 'Cups', which its module does not know"),
        (field, "write 'cups' of field"),
        (opaque, "'cups' of opaque.. has the type <class '.*Opaque'>, which JSON cannot hold"),
        (twice, "takes the ToolContext twice"),
        (wrongly_documented, "describes 'cup', which it does not take; it takes cups"),
    ],
)
def test_functions_that_cannot_be_tools(fn, message):
    """A faulty function raises when it is declared."""
    with pytest.raises(ToolDefinitionError, match=message):
        tool(fn)


def described(text, *names):
    """Return what a tool with this docstring says of itself, and of its arguments."""

    def work(a: int = 0, b: int = 0):
        pass

    work.__doc__ = text
    made = tool(work)
    fields = made.parameters["properties"]
    return made.description, {name: fields[name]["description"] for name in names}


def test_docstrings():
    """The text before the first section, and the arguments in either style of writing."""
    assert described("") == ("", {})
    assert described("One line.") == ("One line.", {})
    text = "First.\n\nMore: of it.\n\nArgs:\n    a (int): One,\n        or more.\n\n    *b: Two.\n"
    assert described(text + "\nRaises:\n    ValueError: Never.", "a", "b") == (
        "First.\n\nMore: of it.",
        {"a": "One, or more.", "b": "Two."},
    )
    assert described("Does.\n\nReturns:\n    x: y") == ("Does.", {})


async def result_of(value):
    """Return the text for the model of a tool that returns this."""

    async def work():
        return value

    return await tool(work).run(None, {})


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("as it is", "as it is"),
        (None, "done"),
        ({"a": [1, None]}, '{"a":[1,null]}'),
        ([1, 2], "[1,2]"),
        (3, "3"),
        (True, "true"),
        (Drink(name="tea"), '{"name":"tea","cups":1}'),
        ([Drink(name="tea")], '[{"name":"tea","cups":1}]'),
        (Point(1, 2), '{"x":1,"y":2}'),
        (date(2026, 3, 1), '"2026-03-01"'),
        ("Grüße", "Grüße"),
        ({"ß": 1}, '{"ß":1}'),
    ],
)
async def test_results_as_text(value, text):
    """Text stays as it is, None becomes "done", and anything else becomes JSON."""
    assert await result_of(value) == text


async def test_a_result_that_json_cannot_hold():
    """The error says which class, and what to return instead."""
    with pytest.raises(TypeError, match="returned Opaque, which JSON cannot hold"):
        await result_of(Opaque())


async def test_a_result_that_nobody_awaited():
    """A forgotten ``await`` is told as such, and not as what JSON cannot hold."""

    async def look_up() -> str:
        await trio.sleep(1)
        return "found"

    forgotten = look_up()
    with pytest.raises(TypeError, match=r"returned <coroutine object .*look_up.* return await"):
        await result_of(forgotten)
    forgotten.close()


def test_a_pattern_in_a_text_is_matched_in_little_time():
    """Nested repetitions take no longer than others, whatever a model writes."""

    @tool
    def find(name: Annotated[str, Field(pattern="(a+)+$")]):
        """Find."""

    began = time.process_time()
    with pytest.raises(BadArgumentsError):
        find.parse({"name": "a" * 100_000 + "!"})
    assert time.process_time() - began < 0.2
