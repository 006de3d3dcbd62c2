"""What a tool is."""

import math

import pytest

from bargein.tools import BadArgumentsError, Tool, ToolDefinitionError, finish


class Echo(Tool):
    """Says what it was given."""

    async def run(self, context, arguments):
        return str(arguments)


def test_what_is_not_said():
    """A tool is cancelled, runs at once, and takes nothing, unless it says otherwise."""
    echo = Echo("echo")
    assert echo.policy.kind == "cancel"
    assert (echo.timeout_s, echo.permission, echo.on_duplicate) == (None, "auto", "run")
    assert not echo.read_only
    assert not echo.commits
    assert echo.parameters == {"type": "object", "properties": {}}
    assert repr(echo) == "<Echo 'echo' cancel>"


def test_as_a_function():
    """The tool's schema for a model."""
    echo = Echo("echo", "Says it.", {"type": "object", "properties": {"a": {}}}, policy=finish(1))
    assert echo.as_function() == {
        "type": "function",
        "function": {
            "name": "echo",
            "description": "Says it.",
            "parameters": {"type": "object", "properties": {"a": {}}},
        },
    }


def test_arguments_are_one_object():
    """Anything else raises BadArgumentsError with a message for the model."""
    assert Echo("echo").parse({"a": 1}) == {"a": 1}
    with pytest.raises(BadArgumentsError, match=r"must be one JSON object, not '\[1'"):
        Echo("echo").parse(None, "[1")


@pytest.mark.parametrize("name", ["", "two words", "ä", "x" * 65, None, "a.b"])
def test_names_that_no_model_may_use(name):
    """A name is what the model servers accept."""
    with pytest.raises(ToolDefinitionError, match="a tool's name is 1 to 64 letters"):
        Echo(name)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"timeout_s": 0}, "timeout_s= of the tool 'echo'"),
        ({"timeout_s": math.inf}, "timeout_s= of the tool 'echo'"),
        ({"timeout_s": "1"}, "timeout_s= of the tool 'echo'"),
        ({"unwind_s": -1}, "unwind_s= of the tool 'echo'"),
        (
            {"permission": "yes"},
            "permission= of the tool 'echo' is one of 'auto', 'ask', 'operator', 'never'",
        ),
        ({"on_duplicate": "no"}, "on_duplicate= of the tool 'echo' is one of 'run', 'join'"),
        ({"policy": "finish"}, "needs its seconds"),
    ],
)
def test_impossible_options(options, message):
    """An impossible option is an error where the tool is made."""
    with pytest.raises(ToolDefinitionError, match=message):
        Echo("echo", **options)
