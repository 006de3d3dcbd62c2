"""Functions as tools: the decorator ``@tool``, and how they run, async or in threads."""

from __future__ import annotations

import contextlib
import copy
import inspect
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, Literal, ParamSpec, Self, TypeVar, get_args, overload

import trio
from trio.lowlevel import RunVar

from bargein.bridge.validation.arguments import check_strings
from bargein.routes.logs import get_logger

from ._errors import ToolDefinitionError
from ._interrupt_policy import PlainPolicy, Policy
from ._schema import as_text, read_signature
from ._tool import RESULT_CHARS, OnDuplicate, Permission, Tool
from ._tool_clock import real_time
from ._tool_context import ToolContext

log = get_logger()

NO_DOCSTRING = "the model learns from the docstring what a tool does, and when to use it: write one"

P = ParamSpec("P")
R = TypeVar("R")

Where = Literal["thread", "worker"]
"""Where a function that is not async runs: in a thread, or in a process of its own."""


class FunctionTool(Tool, Generic[P, R]):
    """A tool made from a function by ``@tool``; you can still call it as the function.

    In a class it becomes a tool of each instance, as functions become methods.

    Attributes:
        function: The function.
        where: Where it runs if it is not async: in a thread or a worker process.
        inherit: The environment variables of ours that a worker process gets.
        instance: The object whose method it is; ``None`` for a plain function.
    """

    def __init__(
        self,
        function: Callable[P, R],
        name: str | None,
        where: Where,
        inherit: Sequence[str] = (),
        **options: Any,
    ) -> None:
        """Make a tool from a function; use ``@tool``."""
        _check_function(function, where)
        _check_inherit(function, where, inherit)
        self.function = function
        self.where = where
        self.inherit = tuple(sorted({*inherit}))
        self._signature = read_signature(function, ToolContext)
        self.instance: object = None
        is_method = self._signature.is_method or inspect.ismethod(function)
        if where == "worker" and (self._signature.context or is_method):
            raise ToolDefinitionError(
                f"{function.__qualname__}() runs in a process of its own and can take neither a "
                'ToolContext nor self; leave out where="worker" or that parameter'
            )
        if where == "worker":
            # Only such a tool needs processes; they load when it is made, not in a call.
            from .processes._python_worker import UNWIND_S

            options["unwind_s"] = UNWIND_S
        if not self._signature.description:
            log.warning("tool_has_no_docstring", tool=function.__qualname__, hint=NO_DOCSTRING)
        super().__init__(
            name or function.__name__,
            self._signature.description,
            self._signature.parameters,
            **options,
        )

    def parse(self, arguments: Mapping[str, Any] | None, raw: str = "") -> dict[str, Any]:
        """Return the arguments in the types of the function; see ``Tool.parse``."""
        return self._signature.parse(self.name, super().parse(arguments, raw))

    async def run(self, context: ToolContext, arguments: dict[str, Any]) -> str:
        """Call the function: on the event loop if it is async, else in a thread or a process."""
        call: Callable[..., Any] = self.__call__
        if self._signature.context is not None:
            arguments = {**arguments, self._signature.context: context}
        if inspect.iscoroutinefunction(self.function):
            return as_text(await call(**arguments))
        with real_time():
            if self.where == "worker":
                from .processes._python_worker import run_in_worker

                return await run_in_worker(
                    context,
                    self.function,
                    arguments,
                    has_effects=not self.read_only,
                    inherit=self.inherit,
                )
            return await run_in_thread(context, call, arguments)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function itself."""
        function: Callable[..., R] = self.function
        if self.instance is not None:
            return function(self.instance, *args, **kwargs)
        return function(*args, **kwargs)

    def __get__(self, instance: object, owner: type | None = None) -> Self:
        if instance is None or not self._signature.is_method:
            return self
        bound = copy.copy(self)
        bound.instance = instance
        return bound


def _check_inherit(function: Callable[..., object], where: object, inherit: object) -> None:
    what = function.__qualname__
    try:
        check_strings(f"inherit= of {what}()", inherit)
    except TypeError as error:
        raise ToolDefinitionError(str(error)) from None
    if inherit and where != "worker":
        raise ToolDefinitionError(
            f'inherit= of {what}() names what a worker process gets: add where="worker", or leave '
            "it out; a thread reads all of the environment"
        )


def _check_function(function: object, where: object) -> None:
    if not inspect.isfunction(function) and not inspect.ismethod(function):
        raise ToolDefinitionError(f"@tool stands before a function, not {function!r}")
    what = function.__qualname__
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ToolDefinitionError(
            f"{what}() is a generator; a tool returns one result and reports its progress with "
            "ToolContext.progress()"
        )
    if where not in get_args(Where):
        raise ToolDefinitionError(f"where= of {what}() is 'thread' or 'worker', not {where!r}")
    if where == "worker" and "<" in what:
        raise ToolDefinitionError(
            f'{what}() has no name by which a process can import it; with where="worker" define '
            "it at the top of a module"
        )
    if where == "worker" and inspect.iscoroutinefunction(function):
        raise ToolDefinitionError(
            f'{what}() is async and runs on the event loop; where="worker" is for plain functions'
        )


@overload
def tool(function: Callable[P, R], /) -> FunctionTool[P, R]: ...
@overload
def tool(
    name: str | None = None,
    *,
    policy: Policy | PlainPolicy = "cancel",
    timeout_s: float | None = None,
    permission: Permission = "auto",
    on_duplicate: OnDuplicate = "run",
    read_only: bool = False,
    commits: bool = False,
    where: Where = "thread",
    inherit: Sequence[str] = (),
    result_chars: int | None = RESULT_CHARS,
) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...
def tool(
    name: Any = None,
    *,
    policy: Policy | PlainPolicy = "cancel",
    timeout_s: float | None = None,
    permission: Permission = "auto",
    on_duplicate: OnDuplicate = "run",
    read_only: bool = False,
    commits: bool = False,
    where: Where = "thread",
    inherit: Sequence[str] = (),
    result_chars: int | None = RESULT_CHARS,
) -> Any:
    """Make a tool from a function, or from the method of an object: ``tool(shop.sell)``.

    The annotations become the JSON schema of the arguments, the docstring becomes the description,
    and its section ``Args:`` describes the arguments. Without a docstring, the log warns. A
    parameter annotated ``ToolContext`` gets the context of the call, and the model does not see it.
    The model gets what the function returns: text as it is, other values as JSON, ``None`` as
    "done".

    An async function runs on the event loop, any other in a thread or a process.

    Args:
        name: The tool's name for the model; by default the function's name.
        policy: What an interrupt does to it: ``"cancel"``, ``"detach"``, ``finish(grace_s)`` or
            ``shield(cap_s)``.
        timeout_s: Seconds after which it is cancelled, above 0; ``None`` for no limit.
        permission: ``"auto"`` runs at once, ``"ask"`` asks the caller first, ``"operator"`` asks an
            operator first (``App(operator=...)``, or ``/watch``), ``"never"`` is always denied.
        on_duplicate: What to do with a call while an identical one runs: ``"run"`` runs it too,
            ``"join"`` gives both the same result, ``"refuse"`` tells the model to wait.
        read_only: Whether it has no side effects, so that a cancelled call is safe to repeat.
        commits: Whether all side effects are in its ``commit()`` section, so that a call cancelled
            before that is safe to repeat.
        where: ``"thread"`` or ``"worker"``, for a function that is not async.
        inherit: For a worker: the names of our environment variables that it gets besides ``PATH``,
            ``HOME``, ``LANG`` and those that Python needs.
        result_chars: How many characters of a result the model gets, at least 100; the middle of a
            longer one is left out, and the model reads how much. ``None`` for all.

    Raises:
        ToolDefinitionError: The function or an option is not valid.
    """
    options = {
        "policy": policy,
        "timeout_s": timeout_s,
        "permission": permission,
        "on_duplicate": on_duplicate,
        "read_only": read_only,
        "commits": commits,
        "result_chars": result_chars,
    }
    if name is not None and not isinstance(name, str):
        return FunctionTool(name, None, where, inherit, **options)
    return lambda function: FunctionTool(function, name, where, inherit, **options)


THREADS = 64
"""How many tools may run in threads at once, over all calls of the process. Trio's own limit of 40
stays free for short work."""

THREAD_S = 1.0
"""How long a stopped thread may take until its result is dropped, in seconds; the same as for an
interrupted run of a chain."""

_limiter: RunVar[trio.CapacityLimiter] = RunVar("bargein_tool_threads")


async def run_in_thread(
    context: ToolContext, function: Callable[..., Any], arguments: Mapping[str, Any]
) -> str:
    """Call a plain function in a thread.

    Cancelling cannot stop the thread; it sets the tool's token, which the function can poll. If the
    function ends soon, its result still counts; otherwise the thread is abandoned, and its end is
    logged.

    Returns:
        What the function returned, as text.
    """
    thread = _Thread(context, function, arguments)
    try:
        await trio.to_thread.run_sync(thread.run, abandon_on_cancel=True, limiter=_threads())
    except trio.Cancelled:
        if thread.withdraw():
            context.conclude("", "not_started")
            raise
        with trio.move_on_at(thread.left_at_s, shield=True):
            await thread.ended.wait()
        thread.leave()
        raise
    assert thread.text is not None
    return thread.text


class _Thread:
    """A function in a thread, and its outcome, even when nobody waits for it any more."""

    def __init__(
        self, context: ToolContext, function: Callable[..., Any], arguments: Mapping[str, Any]
    ) -> None:
        self._context = context
        self._function = function
        self._arguments = arguments
        self._trio_token = trio.lowlevel.current_trio_token()
        self.ended = trio.Event()
        self._lock = threading.Lock()
        self._has_started = False
        self._is_withdrawn = False
        self._is_left = False
        self.text: str | None = None
        """The function's result as text; ``None`` if it has not returned, or raised."""

    def run(self) -> None:
        """Call the function unless it was withdrawn; runs in the thread."""
        with self._lock:
            if self._is_withdrawn:
                return
            self._has_started = True
        try:
            self.text = as_text(self._function(**self._arguments))
        finally:
            with contextlib.suppress(trio.RunFinishedError):
                self._trio_token.run_sync_soon(self._report_end)

    def withdraw(self) -> bool:
        """Prevent the function from starting; return False if it has already started."""
        with self._lock:
            self._is_withdrawn = not self._has_started
            return self._is_withdrawn

    def _report_end(self) -> None:
        self.ended.set()
        if self._is_left:
            log.info("abandoned_thread_ended", tool=self._context.name, id=self._context.id)

    @property
    def left_at_s(self) -> float:
        """How long to wait for a thread that was told to stop now, in seconds of trio's clock."""
        return max(self._context.commit_until_s, trio.current_time()) + THREAD_S

    def leave(self) -> None:
        """Use the result if the function has ended; otherwise abandon the thread."""
        if not self.ended.is_set():
            self._is_left = True
            log.warning("tool_thread_abandoned", tool=self._context.name, id=self._context.id)
        elif self.text is not None:
            self._context.conclude(self.text, "completed")


def _threads() -> trio.CapacityLimiter:
    try:
        return _limiter.get()
    except LookupError:
        limiter = trio.CapacityLimiter(THREADS)
        _limiter.set(limiter)
        return limiter
