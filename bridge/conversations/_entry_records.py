"""How an entry of a history is written down: one JSON object, typed and versioned.

Times are written as Unix seconds, since trio's clock begins anew with each process.

An agent's answer grows with each piece of its text.  What a piece adds is a record of its own, so
that a token costs the same however long the answer is; the entry is written whole when it changes
in any other way.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Annotated, Any

import structlog
from pydantic import Discriminator, TypeAdapter, ValidationError

from ..history._entries import AgentEntry, Entry, InterruptionRecord, as_plain
from ._errors import ConversationError

log = structlog.get_logger()

VERSION = 1
"""Of the records.  A reader refuses a higher one; fields that it does not know it leaves out."""

_adapter: TypeAdapter[Entry] = TypeAdapter(Annotated[Entry, Discriminator("role")])


def to_record(entry: Entry, unix_s: float) -> str:
    """Return an entry of a history as JSON, for a store of your own.

    Args:
        entry: The entry.  Values that are not JSON are written as their ``repr()``.
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
    """Return the entry of a JSON record; ``None`` for an incomplete record.

    A result or an interruption that cannot be read is left out, and the rest is kept.

    Args:
        data: The JSON.
        unix_s: As for ``to_record``.

    Raises:
        ConversationError: A newer version has written it.
    """
    try:
        plain = json.loads(data)
    except (TypeError, ValueError, RecursionError):
        plain = None
    if not isinstance(plain, dict):
        log.error("conversation_record_unreadable", chars=len(data))
        return None
    version = plain.pop("v", VERSION)
    if not isinstance(version, int) or version > VERSION:
        raise ConversationError(
            f"a record has the version {version!r}, and this program reads up to {VERSION}; "
            "use the version of bargein that wrote it, or a newer one"
        )
    entry = _validated(plain)
    return None if entry is None else _earlier(entry, unix_s)


def to_addition(before: AgentEntry, entry: AgentEntry) -> str | None:
    """Return what an answer has grown by as JSON; ``None`` if it has changed in any other way.

    Args:
        before: The entry as it was written last, additions included.
        entry: The entry now.
    """
    same = (
        (before.at_s, before.turn, before.agent) == (entry.at_s, entry.turn, entry.agent)
        and entry.generated.startswith(before.generated)
        and entry.generated.startswith(entry.heard)
        and _is_same_cut(before.interruption, entry.interruption)
    )
    if not same:
        return None
    added = entry.generated[len(before.generated) :]
    return json.dumps({"added": added, "heard": len(entry.heard)}, separators=(",", ":"))


def with_additions(entry: Entry, additions: Iterable[str]) -> Entry:
    """Return an answer as it was when the last addition was written.

    Half an addition is left out, and with it those behind it.

    Args:
        entry: What was written whole; only an agent's entry has additions.
        additions: What was written since, in order.
    """
    if not isinstance(entry, AgentEntry):
        return entry
    texts, heard_chars = [entry.generated], len(entry.heard)
    for data in additions:
        try:
            addition = json.loads(data)
            texts.append(addition["added"] + "")
            heard_chars = int(addition["heard"])
        except (KeyError, TypeError, ValueError, RecursionError):
            log.error("conversation_addition_unreadable", chars=len(data))
            break
    generated = "".join(texts)
    heard, cut = generated[:heard_chars], entry.interruption
    cut = cut and replace(cut, generated=generated, heard=heard)
    return replace(entry, generated=generated, heard=heard, interruption=cut)


def _is_same_cut(before: InterruptionRecord | None, now: InterruptionRecord | None) -> bool:
    """Whether two records differ in nothing but the text, which is the entry's own."""
    if before is None or now is None:
        return before is now
    return replace(now, generated=before.generated, heard=before.heard) == before


def _validated(plain: dict[str, Any]) -> Entry | None:
    for left_out in ((), ("result", "interruption")):
        kept = {key: value for key, value in plain.items() if key not in left_out}
        try:
            return _adapter.validate_python(kept)
        except ValidationError as error:
            log.error("conversation_record_invalid", problems=error.error_count(), without=left_out)
    return None


def _earlier(entry: Entry, by_s: float) -> Entry:
    moved = replace(entry, at_s=entry.at_s - by_s)
    if isinstance(moved, AgentEntry) and moved.interruption is not None:
        cut = moved.interruption
        return replace(moved, interruption=replace(cut, at_s=cut.at_s - by_s))
    return moved
