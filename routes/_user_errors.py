"""What code of a user raises ends at most its own work, whatever class it is of.

Rules:
1. trio's own cancellation passes, and so does Ctrl+C: they are nobody's error.
2. An ``Exception`` is told as it is.
3. Any other ``BaseException`` becomes a ``CodeExitError``: argparse and click raise ``SystemExit``
   on    arguments that a model chose, and one caller's bad argument must not end the server.
4. No thread ever gets a Ctrl+C, so a ``KeyboardInterrupt`` that comes out of one is code's.
"""

from __future__ import annotations

import inspect
import math
from types import TracebackType
from typing import Any

import trio

from ._errors import CodeExitError, ScopeLeakError

_TO_THREAD = inspect.unwrap(trio.to_thread.run_sync).__code__


def as_error(error: BaseException) -> Exception:
    """Return what code of a user raised as an ``Exception``; raise what must pass.

    Args:
        error: What ``except BaseException`` caught around that code.

    Raises:
        BaseException: The error itself, if Ctrl+C or a cancellation is in it.
    """
    if isinstance(error, Exception):
        return error
    if isinstance(error, BaseExceptionGroup):
        if error.split(_passes)[0] is not None:
            raise error
        return _without_leaks(error)
    if _passes(error):
        raise error
    return _told(error)


class _Contained:
    __slots__ = ()

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None or isinstance(error, Exception):
            return
        told = as_error(error)
        raise told from told.__cause__


CONTAINED: Any = _Contained()
"""Stands around code of a user, so that an ``except Exception`` around it sees all that it raises:
``with CONTAINED: await fn()``."""


def text_of(error: BaseException) -> str:
    """Return the text of an exception, whatever its ``__str__`` does.

    Args:
        error: Any exception; that of an app may have a ``__str__`` that raises.
    """
    try:
        with CONTAINED:
            return str(error)
    except Exception as failure:  # noqa: BLE001  # the first error is the one to be told
        return f"its text cannot be told, as __str__ raised {type(failure).__name__}"


def contain(error: BaseException) -> tuple[Exception | None, BaseException | None]:
    """Part what ends a run alone from what ends everything; called outside of the run's scope.

    Generators that are closed out of order, or that hold scopes which reach other code, leave
    ``GeneratorExit`` and ``Cancelled`` where no code expects them.

    Returns:
        What is told of the run, and what is raised on; ``None`` for nothing.
    """
    if isinstance(error, Exception):
        return error, None
    is_alone = not isinstance(error, BaseExceptionGroup)
    group = error if isinstance(error, BaseExceptionGroup) else BaseExceptionGroup("", [error])
    passing, others = group.split(_passes)
    leaked: BaseException | None = None
    if passing is not None and trio.current_effective_deadline() != -math.inf:
        leaked, passing = passing.split(trio.Cancelled)
    told = None
    if others is not None:
        told = _without_leaks(others)
    elif leaked is not None:
        told = _leak(leaked)
    return told, error if is_alone and passing is not None else passing


def _passes(error: BaseException) -> bool:
    if isinstance(error, KeyboardInterrupt):
        return not _is_from_thread(error)
    return isinstance(error, trio.Cancelled)


def _is_from_thread(error: BaseException) -> bool:
    """Whether a worker thread of trio raised an error; its frames are in the traceback.

    ``trio.as_safe_channel`` raises a ``KeyboardInterrupt`` of its tasks anew, from their group.
    """
    if isinstance(error.__cause__, BaseExceptionGroup):
        raised = error.__cause__.subgroup(KeyboardInterrupt)
        if raised is not None:
            return raised.split(_is_from_thread)[1] is None
    where = error.__traceback__
    while where is not None:
        code = where.tb_frame.f_code
        if code.co_filename == _TO_THREAD.co_filename and code is not _TO_THREAD:
            return True
        where = where.tb_next
    return False


def _told(error: BaseException) -> Exception:
    if isinstance(error, Exception):
        return error
    if isinstance(error, BaseExceptionGroup):
        return _told_group(error)
    told = CodeExitError(error)
    told.__cause__ = error
    return told


def _without_leaks(group: BaseExceptionGroup[BaseException]) -> Exception:
    """Return what is told of a group; a nursery that a generator leaks wraps its GeneratorExit."""
    leaked, others = group.split(GeneratorExit)
    return _told_group(others) if others is not None else _leak(leaked)


def _leak(cause: BaseException | None) -> ScopeLeakError:
    leak = ScopeLeakError()
    leak.__cause__ = cause
    return leak


def _told_group(group: BaseExceptionGroup[BaseException]) -> Exception:
    if isinstance(group, ExceptionGroup):
        return group
    told = ExceptionGroup(group.message, [_told(one) for one in group.exceptions])
    return told.with_traceback(group.__traceback__)
