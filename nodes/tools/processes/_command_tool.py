"""Tools that run commands."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from bargein.bridge.validation.arguments import check_strings
from bargein.nodes.processes import SignalLadder
from bargein.nodes.processes._termination import DEFAULT_LADDER, SPARE_S

from .._errors import ToolDefinitionError
from .._schema import ToolSchema, read_signature
from .._tool import Tool
from .._tool_context import ToolContext
from ._command_template import CommandLine, CommandTemplate, is_harmless
from ._run_command import DEFAULT_LIMITS, CommandResult, OutputLimits, run_command


class CommandTool(Tool):
    """A tool that runs a command.

    What the model chooses becomes arguments of the program and never part of a shell's line: with
    ``shell=True`` it reaches the shell in environment variables.
    Cancelling stops the command and everything it started, with SIGINT, then SIGTERM, then SIGKILL.
    Processes that it leaves behind when it ends are stopped as well; a program that should survive
    needs a session of its own (``setsid``).
    """

    def __init__(
        self,
        command: CommandLine | Callable[..., CommandLine],
        name: str | None = None,
        *,
        description: str | None = None,
        parameters: Mapping[str, Any] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
        inherit: Sequence[str] = (),
        tty: bool = False,
        shell: bool = False,
        ladder: SignalLadder = DEFAULT_LADDER,
        limits: OutputLimits = DEFAULT_LIMITS,
        **options: Any,
    ) -> None:
        """Make a tool.

        Args:
            command: A template such as ``["git", "log", "-n", "{count}"]``, or a function that
                builds the command from the model's arguments, which are its annotated parameters;
                it runs on the event loop.  In a template, a part that is a single name, such as
                ``"{files}"``, expands to one argument per item of a list, and to none for ``None``.
                The model cannot inject options: a value that begins with ``-`` is refused unless
                the template has ``"--"`` before it, or its type in `parameters` is a ``Literal`` or
                an ``Enum``.  With ``shell=True`` the template is one string; a value in it is one
                word, or part of one, in quotes or not, whatever characters it has.  A template is
                refused if a value would be code: the program, a variable, the code of a nested
                shell or of another interpreter.
            name: The tool's name for the model; ``None`` uses the function's name.
            description: The description for the model; ``None`` uses the function's docstring.
            parameters: The types of a template's names; the default is ``str``.
            cwd: The working directory; ``None`` keeps the process's.
            env: Environment variables, added to the few that every command gets (PATH, HOME, LANG
                and the like).  No other variable of this process reaches the command, so no secret
                does.
            inherit: Names of further variables of this process to pass on, such as
                ``["GH_TOKEN"]``.
            tty: Whether the command gets a terminal of its own, for programs that write only to a
                terminal or to ``/dev/tty``.  It cannot read from it.
            shell: Whether the command is a ``/bin/sh`` line.
            ladder: How long to wait after each signal.
            limits: How much of the output to keep.
            options: As for `Tool`: ``policy``, ``timeout_s``, ``permission`` and the others.

        Raises:
            ToolDefinitionError: It cannot be a tool.
            TypeError: `inherit` is not a list of strings.
        """
        check_strings("command_tool(inherit=)", inherit)
        self._template: CommandTemplate | None = None
        if callable(command):
            if parameters is not None:
                raise ToolDefinitionError("parameters= is for templates; annotate the function")
            if inspect.iscoroutinefunction(command):
                raise ToolDefinitionError(
                    f"{command!r} only builds a command: write def, not async"
                )
            build: Callable[..., CommandLine] = command
        else:
            self._template = CommandTemplate(command, shell, parameters or {})
            build = self._template.as_function()
        self._build = build
        self._signature = read_signature(build, ToolContext)
        if self._template is None and shell:
            _refuse_text_in_line(self._signature)
        self._env = env
        self._run: Callable[..., Any] = partial(
            run_command,
            cwd=cwd,
            inherit=tuple(inherit),
            tty=tty,
            shell=shell,
            ladder=ladder,
            limits=limits,
        )
        # A second more than the ladder's own bound, so that the process is never abandoned before
        # that.
        options.setdefault("unwind_s", ladder.bound_s + SPARE_S)
        options.setdefault("result_chars", None)  # `limits` bounds it
        super().__init__(
            getattr(build, "__name__", "") if name is None else name,
            self._signature.description if description is None else description,
            self._signature.parameters,
            **options,
        )

    def parse(self, arguments: Mapping[str, Any] | None, raw: str = "") -> dict[str, Any]:
        """Return the arguments in the types of the function or the template.

        Raises:
            BadArgumentsError: They are wrong, or one would become an option of the program.
        """
        parsed = self._signature.parse(self.name, super().parse(arguments, raw))
        if self._template is not None:
            self._template.check(parsed)
        return parsed

    async def run(self, context: ToolContext, arguments: dict[str, Any]) -> str:
        """Run the command; cancelling stops it and everything it started.

        Returns:
            Its exit code and what it wrote.

        Raises:
            CommandError: It cannot be started.
        """
        if self._template is not None:
            command, variables = self._template.fill(arguments)
        else:
            if self._signature.context is not None:
                arguments = {**arguments, self._signature.context: context}
            command, variables = self._build(**arguments), {}
        ended: list[CommandResult] = []
        try:
            result = await self._run(
                command,
                env={**(self._env or {}), **variables},
                output=context.output,
                is_forced=lambda: context.token.is_forced,
                on_end=ended.append,
            )
        except BaseException as error:
            if not isinstance(error, Exception):  # Cancelled, in the group of a nursery
                _conclude(context, ended)
            raise
        return str(result)


def command_tool(
    *, name: str | None = None, **options: Any
) -> Callable[[Callable[..., CommandLine]], CommandTool]:
    """Make a tool from the decorated function, which returns a command.

    Args:
        name: The tool's name for the model; ``None`` uses the function's name.
        options: As for `CommandTool`.

    Raises:
        ToolDefinitionError: It cannot be a tool.
    """

    def make(build: Callable[..., CommandLine]) -> CommandTool:
        return CommandTool(build, name, **options)

    return make


def _conclude(context: ToolContext, ended: list[CommandResult]) -> None:
    """Set the result of a cancelled command."""
    if not ended:
        context.conclude("the command was not started", "cancelled_before_effect")
        return
    result = ended[0]
    stopped = result.stopped
    if stopped.ended_by == "itself":
        context.conclude(str(result), "completed_after_interrupt")
        return
    how = f"stopped by {stopped.ended_by}" if stopped.ended_by else "could not be stopped"
    context.conclude(f"the command was {how} after {result.ran_s:.1f} s\n{result}")


def _refuse_text_in_line(signature: ToolSchema) -> None:
    """Refuse a function that would write what the model chose into a line for a shell."""
    fields = signature.model.model_fields.values()
    for name, field in zip(signature.names, fields, strict=True):
        if not is_harmless(field.annotation):
            raise ToolDefinitionError(
                f"a function with shell=True would write {name!r}, which the model chooses, into "
                "a shell's line: use a template, or return ['sh', '-c', 'echo \"$1\"', 'sh', "
                f"{name}] without shell=True"
            )
