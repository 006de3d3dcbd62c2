"""Commands as tools of a call, with real processes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Literal

import pytest
from pydantic import Field

from bargein.events import ToolOutput
from bargein.tools import (
    BadArgumentsError,
    CommandError,
    CommandTool,
    SignalLadder,
    ToolContext,
    ToolDefinitionError,
    command_tool,
)

FAST = SignalLadder(int_s=0.3, term_s=0.3, kill_s=5.0)
SLOW = SignalLadder(int_s=20)


@pytest.fixture
def printed(open_bench) -> Callable[..., Awaitable[str]]:
    """Call a tool whose program prints its arguments in brackets, and return what it prints."""

    async def run(tool: CommandTool, **arguments: object) -> str:
        async with open_bench(tool) as bench:
            result = await bench.start(tool.name, **arguments).result()
        return result.content.rpartition("stdout:\n")[2]

    return run


class TestTemplates:
    """Commands with names in braces."""

    async def test_a_name_is_a_parameter_of_the_model(self, printed):
        """Names are strings unless parameters= says otherwise, and are all required."""
        tool = CommandTool(
            ["printf", "[%s]", "-n{count}", "{branch}"],
            "git_log",
            description="Show commits.",
            parameters={"count": Annotated[int, Field(ge=1)]},
        )
        assert tool.as_function()["function"] == {
            "name": "git_log",
            "description": "Show commits.",
            "parameters": {
                "type": "object",
                "additionalProperties": False,
                "properties": {
                    "count": {"type": "integer", "minimum": 1},
                    "branch": {"type": "string"},
                },
                "required": ["count", "branch"],
            },
        }
        assert await printed(tool, count=3, branch="main") == "[-n3][main]"

    async def test_a_value_is_one_argument_whatever_it_holds(self, printed):
        """Spaces and what a shell would read stay inside; a brace is written twice."""
        tool = CommandTool(["printf", "[%s]", "{text}", "{{}}"], "say")
        assert await printed(tool, text="a b; rm -rf $HOME") == "[a b; rm -rf $HOME][{}]"

    async def test_a_list_is_as_many_arguments_and_none_is_no_argument(self, printed):
        """Only where the name stands alone."""
        parameters = {"files": list[str], "flag": Literal["-l"] | None}
        command = ["printf", "[%s]", "{flag}", "--", "{files}"]
        tool = CommandTool(command, "ls", parameters=parameters)
        assert await printed(tool, files=["a", "b c"], flag=None) == "[--][a][b c]"
        assert await printed(tool, files=[], flag="-l") == "[-l][--]"

    @pytest.mark.parametrize(
        ("template", "options", "values", "refused"),
        [
            (["git", "log", "{branch}"], {}, {"branch": "--output=/etc/passwd"}, True),
            (["git", "log", "{branch}"], {}, {"branch": "main"}, False),
            (["git", "log", "--", "{branch}"], {}, {"branch": "--output=x"}, False),
            (["git", "log", "-n{count}"], {}, {"count": "-3"}, False),
            (["git", "log", "--since={day}"], {}, {"day": "-3"}, False),
            (["tar", "{x}{y}"], {}, {"x": "-", "y": "a"}, True),
            (["tar", "{x}{y}"], {}, {"x": "", "y": "-rf"}, True),
            (["rm", "{files}"], {"files": list[str]}, {"files": ["a", "-rf"]}, True),
            (["head", "{n}"], {"n": int}, {"n": -3}, True),
            (["ls", "{flag}"], {"flag": Literal["-l", "-a"]}, {"flag": "-a"}, False),
            ("grep {word} f", {}, {"word": "-f"}, True),
            ("grep -- {word} f", {}, {"word": "-f"}, False),
            ("grep -- {word} | head {n}", {}, {"word": "-f", "n": "-c9"}, True),
            ("grep -e{word} f", {}, {"word": "-f"}, False),
        ],
    )
    def test_a_value_cannot_become_an_option(self, template, options, values, refused):
        """One that begins a word with '-' is refused, unless it comes after '--' or is ours."""
        shell = isinstance(template, str)
        tool = CommandTool(template, "t", parameters=options, shell=shell)
        if not refused:
            assert tool.parse(values) == values
            return
        with pytest.raises(BadArgumentsError, match="must not begin with '-'"):
            tool.parse(values)

    async def test_a_line_for_a_shell_has_its_values_quoted(self, printed):
        """With shell=True a value is still one word of the line."""
        parameters = {"names": list[str], "none": str | None}
        command = "printf '[%s]' {word} {names} {none}"
        tool = CommandTool(command, "say", parameters=parameters, shell=True)
        assert await printed(tool, word="a; b", names=["x", "y z"], none=None) == "[a; b][x][y z]"

    def test_arguments_that_do_not_fit_are_told_to_the_model(self):
        """The message names what is wrong, and what the tool takes."""
        tool = CommandTool(["head", "-n{count}"], "head", parameters={"count": int})
        with pytest.raises(BadArgumentsError, match=r"count: .*not 'many'.*It takes: count"):
            tool.parse({"count": "many"})
        with pytest.raises(BadArgumentsError, match="one JSON object"):
            tool.parse(None, "[1]")


class TestFunctions:
    """Commands that a function builds."""

    async def test_the_function_is_the_schema(self, printed):
        """Name, description, parameters and defaults come from it."""

        @command_tool(policy="detach", timeout_s=60)
        def word_count(path: str, lines: bool = False) -> list[str]:
            """Count the words of a file.

            Args:
                path: The file.
                lines: Count lines instead.
            """
            return ["printf", "[%s]", "-l" if lines else "-w", "--", path]

        assert (word_count.name, word_count.description) == (
            "word_count",
            "Count the words of a file.",
        )
        assert word_count.parameters["properties"]["path"]["description"] == "The file."
        assert word_count.parameters["required"] == ["path"]
        assert (word_count.policy.kind, word_count.timeout_s) == ("detach", 60)
        assert await printed(word_count, path="-x") == "[-w][--][-x]"

    def test_the_time_to_unwind_is_more_than_that_of_the_ladder(self):
        """A tool is not given up while its process is being stopped."""
        assert CommandTool(["true"], "t", ladder=SignalLadder(5, 4, 3)).unwind_s == 5 + 4 + 3 + 2
        assert CommandTool(["true"], "t", unwind_s=1).unwind_s == 1


@pytest.mark.parametrize(
    ("command", "options", "problem"),
    [
        ("ls", {"name": "ls"}, "a list of program and arguments"),
        (["ls"], {"name": "ls", "shell": True}, "one string"),
        (["ls"], {}, "give name="),
        (["ls", "{"], {"name": "ls"}, "write {{ for a brace"),
        (["ls", "{}"], {"name": "ls"}, "'' is no name"),
        (["ls", "{a.b}"], {"name": "ls"}, "'a.b' is no name"),
        (["ls", "{a}"], {"name": "ls", "parameters": {"b": str}}, "parameters= names 'b'"),
        (lambda: ["ls"], {"name": "ls", "parameters": {}}, "annotate the function"),
    ],
)
def test_a_tool_that_is_declared_wrong_is_an_error_at_once(command, options, problem):
    """The error says what to write."""
    with pytest.raises(ToolDefinitionError, match=problem):
        CommandTool(command, **options)


def test_an_async_function_is_refused():
    """It only builds the command."""

    async def build() -> list[str]:
        return ["ls"]

    with pytest.raises(ToolDefinitionError, match="write def, not async"):
        CommandTool(build)


class TestRuns:
    """Commands called in an answer."""

    async def test_the_model_is_told_exit_code_and_output(self, open_bench):
        """A failure of the command is a result; its lines are published as they come."""
        tool = CommandTool(["sh", "-c", "echo out; echo err >&2; exit 2"], "fails")
        async with open_bench(tool) as bench:
            result = await bench.start("fails").result()
            assert result.content == "exit code 2\nstdout:\nout\nstderr:\nerr"
            assert (result.outcome, result.error) == ("completed", False)
            said = {(event.stream, event.text) for event in bench.caller.events(ToolOutput)}
            assert said == {("stdout", "out\n"), ("stderr", "err\n")}
            assert {event.id for event in bench.caller.events(ToolOutput)} == {"c1"}

    async def test_one_that_cannot_start_is_an_error(self, open_bench):
        """The model gets an error that names what is missing."""
        async with open_bench(
            CommandTool(["no-such-program"], "t"), expect_errors=CommandError
        ) as bench:
            result = await bench.start("t").result()
            assert result.error
            assert result.content == "CommandError"

    async def test_the_function_can_have_the_context(self, open_bench):
        """A parameter of that type is not the model's business."""

        @command_tool()
        def whoami(context: ToolContext) -> list[str]:
            return ["echo", context.id]

        assert whoami.parameters["properties"] == {}
        async with open_bench(whoami) as bench:
            assert "c1" in (await bench.start("whoami").result()).content

    @pytest.mark.parametrize(
        ("read_only", "outcome"), [(False, "effect_unknown"), (True, "cancelled_before_effect")]
    )
    async def test_a_cut_command_is_stopped_and_says_what_it_had_written(
        self, open_bench, wait_until, read_only, outcome
    ):
        """cancel stops it by SIGINT; its words hold how it was stopped and its output so far."""
        line = "echo half; exec sleep 60"
        tool = CommandTool(line, "t", shell=True, ladder=SLOW, read_only=read_only)
        async with open_bench(tool) as bench:
            running = bench.start("t")
            await wait_until(lambda: bench.caller.events(ToolOutput))
            assert running.interrupt("cancel") is None
            await running.done.wait()
            assert running.final is not None
            assert running.final.outcome == outcome
            assert "stopped by SIGINT after" in running.final.content
            assert "ended by SIGINT\nstdout:\nhalf" in running.final.content

    async def test_an_emergency_stop_leaves_no_time(self, open_bench, wait_until):
        """A command that is deaf to all is killed at once, also in the middle of its ladder."""
        line = "trap '' INT TERM; echo up; while :; do sleep 0.1; done"
        tool = CommandTool(line, "t", shell=True, ladder=SignalLadder(int_s=600, term_s=600))
        async with open_bench(tool) as bench:
            running = bench.start("t")
            await wait_until(lambda: bench.caller.events(ToolOutput))
            running.interrupt("cancel")
            running.interrupt("emergency_stop")
            await running.done.wait()
            assert running.final is not None
            assert "stopped by SIGKILL" in running.final.content

    async def test_cut_before_its_process_it_had_no_effect(self, open_bench):
        """A command that was cut in the step in which it began was never started."""
        async with open_bench(CommandTool(["sleep", "60"], "t")) as bench:
            running = bench.start("t")
            running.interrupt("cancel")
            await running.done.wait()
            assert running.outcome == "not_started"


async def test_a_command_gets_no_secret_of_ours(monkeypatch, open_bench):
    """Only the variables that every program needs, those that are named, and those given."""
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    monkeypatch.setenv("GH_TOKEN", "named")
    tool = CommandTool(["env"], "t", inherit=["GH_TOKEN"], env={"COLOR": "never"})
    async with open_bench(tool) as bench:
        content = (await bench.start("t").result()).content
    assert "PATH=" in content
    assert "GH_TOKEN=named" in content
    assert "COLOR=never" in content
    assert "OPENAI_API_KEY" not in content
