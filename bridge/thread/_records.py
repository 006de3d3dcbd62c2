"""How an entry of a history is written down: one JSON object, typed and versioned.

Times are written as Unix seconds, since trio's clock begins anew with each process.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Annotated, Any

import structlog
from pydantic import Discriminator, TypeAdapter, ValidationError

from .._entries import AgentEntry, Entry, as_plain
from ._errors import ThreadError

log = structlog.get_logger()

VERSION = 1
"""Of the records.  A reader refuses a higher one; fields that it does not know it leaves out."""

_adapter: TypeAdapter[Entry] = TypeAdapter(Annotated[Entry, Discriminator("role")])


def to_record(entry: Entry, unix_s: float) -> str:
    """Return an entry as JSON.

    Args:
        entry: The entry.  What JSON has no words for stands as Python writes it.
        unix_s: The Unix time at which trio's clock stood at 0.

    Raises:
        ValueError: A tool's arguments contain themselves.
    """
    data = as_plain(entry)
    for timed in (data, data.get("interruption")):
        if timed is not None:
            timed["at_s"] += unix_s
    return json.dumps({"v": VERSION, **data}, default=repr, separators=(",", ":"))


def from_record(data: str, unix_s: float) -> Entry | None:
    """Return the entry that was written as JSON; ``None`` for half a record.

    A result or an interruption that cannot be read is left out, and the rest is kept.

    Args:
        data: The JSON.
        unix_s: As for ``to_record``.

    Raises:
        ThreadError: A newer version has written it.
    """
    try:
        plain = json.loads(data)
    except (TypeError, ValueError):
        plain = None
    if not isinstance(plain, dict):
        log.error("thread_record_unreadable", chars=len(data))
        return None
    version = plain.pop("v", VERSION)
    if not isinstance(version, int) or version > VERSION:
        raise ThreadError(
            f"a record has the version {version!r}, and this program reads up to {VERSION}; "
            "use the version of bargein that wrote it, or a newer one"
        )
    entry = _validated(plain)
    return None if entry is None else _earlier(entry, unix_s)


def _validated(plain: dict[str, Any]) -> Entry | None:
    for left_out in ((), ("result", "interruption")):
        kept = {key: value for key, value in plain.items() if key not in left_out}
        try:
            return _adapter.validate_python(kept)
        except ValidationError as error:
            log.error("thread_record_invalid", problems=error.error_count(), without=left_out)
    return None


def _earlier(entry: Entry, by_s: float) -> Entry:
    moved = replace(entry, at_s=entry.at_s - by_s)
    if isinstance(moved, AgentEntry) and moved.interruption is not None:
        cut = moved.interruption
        return replace(moved, interruption=replace(cut, at_s=cut.at_s - by_s))
    return moved
