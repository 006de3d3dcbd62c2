"""The first message of a connection: who answers, and what was said before."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any

from ..._verbs import Verb
from ...history._entries import AgentEntry, Entry, UserEntry
from ...protocol import EarlierWords, Hello, Resumed
from ._remote_handle import snapshot_of

if TYPE_CHECKING:
    from ..._app import App
    from ...call._call import Call
    from .._server_limits import Limits

MAX_SAID_CHARS = 50_000
"""How much of a conversation is sent when a line starts: an hour of talk."""


def hello(app: App, call: Call, limits: Limits, token: str | None) -> Hello:
    return Hello(**_common(app, call, limits, token))


def resumed(
    app: App,
    call: Call,
    limits: Limits,
    token: str | None,
    received: int,
    verbs: Collection[Verb],
    *,
    fresh: bool = False,
) -> Resumed:
    """Return the first message of a connection that resumes a call.

    Args:
        call: The call; it may be over.
        received: How many JSON messages of the client were received.
        verbs: The verbs that the client may use.
        fresh: Whether another process had the call before.
    """
    snapshot = snapshot_of(call, "resumed", verbs)
    return Resumed(
        **_common(app, call, limits, token),
        received=received,
        state=snapshot.state,
        number=snapshot.number,
        snapshot=snapshot,
        fresh=fresh,
    )


def _common(app: App, call: Call, limits: Limits, token: str | None) -> dict[str, Any]:
    return {
        "call": call.call_id,
        "agent": app.name,
        "audio": call.audio,
        "watch": limits.watch,
        "conversation": call.conversation if app.callers_name_conversations else None,
        "resume": token,
        "resume_s": limits.resume_s,
        "handle": app.handle,
        "transcript": said_in(call.history.entries),
    }


def said_in(entries: Iterable[Entry]) -> tuple[EarlierWords, ...]:
    """Return what both sides said; only the end if it is long."""
    said: list[EarlierWords] = []
    room = MAX_SAID_CHARS
    for entry in reversed(tuple(entries)):
        one = _said(entry)
        if one is None:
            continue
        room -= len(one.text)
        if room < 0:
            break
        said.append(one)
    return tuple(reversed(said))


def _said(entry: Entry) -> EarlierWords | None:
    match entry:
        case UserEntry(content=content, is_returned=False):
            return EarlierWords(role="user", text=content)
        case AgentEntry(generated=generated) if generated:
            return EarlierWords(
                role="agent",
                text=generated,
                heard=entry.heard,
                answer=entry.answer,
                cut=entry.interruption is not None,
            )
    return None
