"""Tools that run commands."""

from __future__ import annotations

import inspect
import os
import re
import shlex
import string
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import partial
from typing import Any, Literal, get_args, get_origin

from bargein.bridge.validation.arguments import check_strings
from bargein.nodes.processes import SignalLadder
from bargein.nodes.processes._termination import DEFAULT_LADDER, SPARE_S

from .._errors import BadArgumentsError, ToolDefinitionError
from .._schema import read_signature
from .._tool import Tool
from .._tool_context import ToolContext
from ._run_command import DEFAULT_LIMITS, CommandResult, OutputLimits, run_command

CommandLine = Sequence[str] | str
"""A program and its arguments, or a line for a shell."""

_SHELL_BREAK = re.compile(r"[|;&\n(`]")
"""The characters that start another command in a line for a shell."""
_WORD_BEGINS = re.compile(r"""\s["']?$""")


class CommandTool(Tool):
    """A tool that runs a command.

    Its arguments become arguments of the program, never a shell line unless ``shell=True``.
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
                an ``Enum``.  With ``shell=True`` the template is one string, and values are quoted.
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
        if callable(command):
            build: Callable[..., CommandLine] = command
            if parameters is not None:
                raise ToolDefinitionError("parameters= is for templates; annotate the function")
            if inspect.iscoroutinefunction(command):
                raise ToolDefinitionError(
                    f"{command!r} only builds a command: write def, not async"
                )
        else:
            build = _from_template(command, shell, parameters or {})
        self._build = build
        self._is_template = not callable(command)
        self._signature = read_signature(build, ToolContext)
        self._run: Callable[..., Any] = partial(
            run_command,
            cwd=cwd,
            env=env,
            inherit=tuple(inherit),
            tty=tty,
            shell=shell,
            ladder=ladder,
            limits=limits,
        )
        # A second more than the ladder's own bound, so that the process is never abandoned before
        # that.
        options.setdefault("unwind_s", ladder.bound_s + SPARE_S)
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
        if self._is_template:
            self._build(**parsed)  # raises if a value would become an option
        return parsed

    async def run(self, context: ToolContext, arguments: dict[str, Any]) -> str:
        """Run the command; cancelling stops it and everything it started.

        Returns:
            Its exit code and what it wrote.

        Raises:
            CommandError: It cannot be started.
        """
        if self._signature.context is not None:
            arguments = {**arguments, self._signature.context: context}
        ended: list[CommandResult] = []
        try:
            result = await self._run(
                self._build(**arguments),
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


def _from_template(
    template: CommandLine, shell: bool, types: Mapping[str, Any]
) -> Callable[..., CommandLine]:
    """Make a function from a template; the template's names are its parameters, in order."""
    if shell != isinstance(template, str):
        wants = "one string" if shell else "a list of program and arguments"
        raise ToolDefinitionError(f"with shell={shell} a command is {wants}, not {template!r}")
    parts = [template] if isinstance(template, str) else list(template)
    names = list(dict.fromkeys(name for part in parts for name in _names(part)))
    unknown = sorted(types.keys() - set(names))
    if unknown:
        raise ToolDefinitionError(
            f"parameters= names {unknown[0]!r}, which the template {template!r} does not have"
        )

    chosen = {name for name in names if not _is_authors(types.get(name, str))}
    exposed = _exposed(parts, shell) & chosen

    def build(**values: Any) -> CommandLine:
        for name in exposed:
            _refuse_option(name, values.get(name))
        if shell:
            return parts[0].format_map({name: _quoted(value) for name, value in values.items()})
        return [argument for part in parts for argument in _fill(part, values)]

    annotations = {name: types.get(name, str) for name in names}
    build.__annotations__ = annotations
    build.__name__, build.__qualname__ = "", "template"
    build.__doc__ = None
    build.__signature__ = inspect.Signature(  # type: ignore[attr-defined]  # inspect reads it
        [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation)
            for name, annotation in annotations.items()
        ]
    )
    return build


def _exposed(parts: Sequence[str], shell: bool) -> set[str]:
    """Return the names whose values start a word, which a program could read as an option."""
    exposed: set[str] = set()
    ends_options = False
    for number, part in enumerate(parts):
        before = ""
        for literal, name, _, _ in string.Formatter().parse(part):
            before += literal
            if shell:
                before = _SHELL_BREAK.split(before)[-1]
                ends_options = " -- " in before
            begins_word = bool(_WORD_BEGINS.search(before)) if shell else not before
            if name and begins_word and not ends_options and (shell or number):
                exposed.add(name)
        ends_options = ends_options or (part == "--" and not shell)
    return exposed


def _is_authors(annotation: Any) -> bool:
    """Whether the author of the template chose all values of a type."""
    if annotation is None or annotation is type(None) or get_origin(annotation) is Literal:
        return True
    if isinstance(annotation, type) and issubclass(annotation, (Enum, bool)):
        return True
    inner = [one for one in get_args(annotation) if one is not Ellipsis]
    return bool(inner) and all(_is_authors(one) for one in inner)


def _refuse_option(name: str, value: Any) -> None:
    for one in value if isinstance(value, (list, tuple)) else (value,):
        if one is not None and str(one).startswith("-"):
            raise BadArgumentsError(
                f"bad arguments: {name}: it must not begin with '-', as {one!r:.80}"
            )


def _names(part: str) -> list[str]:
    try:
        names = [name for _, name, _, _ in string.Formatter().parse(part) if name is not None]
    except ValueError as error:
        raise ToolDefinitionError(
            f"{part!r} is not a template: {error}; write {{{{ for a brace"
        ) from None
    for name in names:
        if not name.isidentifier():
            raise ToolDefinitionError(f"{part!r}: {name!r} is no name; write {{{{ for a brace")
    return names


def _fill(part: str, values: Mapping[str, Any]) -> list[str]:
    """Return the arguments that one part of a template becomes."""
    name = part[1:-1]
    if part == f"{{{name}}}" and name in values:
        value = values[name]
        if value is None:
            return []
        if isinstance(value, (list, tuple)):
            return [str(item) for item in value]
    return [part.format_map(values)]


def _quoted(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, (list, tuple)):
        return shlex.join(map(str, value))
    return shlex.quote(str(value))
