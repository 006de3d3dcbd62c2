"""Lets shared objects, such as providers, record a failure in the history of the affected call.

The call is identified by the id that its log lines carry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from structlog.contextvars import get_contextvars

_records: dict[str, Callable[[str], None]] = {}


@contextmanager
def recording_faults(call_id: str, record: Callable[[str], None]) -> Iterator[None]:
    """Record the failures of a call while the block runs.

    Args:
        call_id: The id of the call in logs.
        record: Adds a failure to its history.
    """
    _records[call_id] = record
    try:
        yield
    finally:
        if _records.get(call_id) is record:
            del _records[call_id]


def record_fault(text: str) -> None:
    """Add a failure to the history of the call that this code works for; ignored outside of calls.

    Args:
        text: What failed, without anything that people said.
    """
    record = _records.get(get_contextvars().get("call_id", ""))
    if record is not None:
        record(text)
