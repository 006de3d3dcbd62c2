"""A call as its journal has it: what another process needs to go on with it."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import trio
from pydantic import ValidationError

from bargein.routes import BargeinError, Event, class_of
from bargein.routes.logs import get_logger

from .._call_request import CallRequest, Identity
from ..conversations._entry_records import from_record, with_additions
from ..history._entries import Entry, ToolEntry
from ..history._repair import repair

log = get_logger()

VERSION = 1
"""The version of the records.  A reader leaves calls of a higher one to others; fields and records
that it does not know are kept, so that versions that differ by such can take calls in turns."""


class NewerJournalError(BargeinError):
    """A newer version has written a journal: whoever runs that one can go on with the call."""


@dataclass(frozen=True, slots=True)
class SavedAnswer:
    """An answer that was not over."""

    agent: str
    text: str | None
    """The whole text of an answer whose generation has ended; ``None`` of any other."""
    trigger: object
    """The event that it answers; ``None`` if nobody can make it again."""
    source: str
    """Who published that."""
    runs: int = 1
    """How many processes have begun it."""


class SavedCall:
    """What the records of a call say.

    Attributes:
        entries: Its history, repaired.
        answers: The answers that were not over, by number.
        unfinished_tools: The names of tools without a result.
        lost_s: Seconds since the last record was put.
    """

    def __init__(self, records: Mapping[str, str]) -> None:
        """Read the records.

        Raises:
            NewerJournalError: A newer version wrote them.
            ValueError: They are of no call.
        """
        self._records = records
        call = json.loads(records.get("call", "null"))
        if not isinstance(call, dict):
            raise ValueError("the journal of the call does not say how it began")
        if call.get("v", 0) > VERSION:
            raise NewerJournalError(f"the journal has version {call['v']}; this reads {VERSION}")
        self._call: dict[str, Any] = call
        unix_s = time.time() - trio.current_time()
        entries = self._read_entries(unix_s)
        self.unfinished_tools = tuple(
            entry.call.name
            for entry in entries
            if isinstance(entry, ToolEntry) and entry.result is None
        )
        self.entries: tuple[Entry, ...] = repair(entries)
        self.answers = {
            int(key.partition("/")[2]): _saved_answer(json.loads(value))
            for key, value in sorted(records.items(), key=lambda item: (len(item[0]), item[0]))
            if key.startswith("answer/")
        }
        self.lost_s = max(0.0, time.time() - float(records.get("at", time.time())))

    def _read_entries(self, unix_s: float) -> list[Entry]:
        whole: dict[int, str] = {}
        added: dict[int, list[tuple[int, str]]] = {}
        for key, value in self._records.items():
            kind, _, place = key.partition("/")
            if kind == "entry":
                number, _, piece = place.partition("+")
                if piece:
                    added.setdefault(int(number), []).append((int(piece), value))
                else:
                    whole[int(number)] = value
        entries = []
        for index in sorted(whole):
            entry = from_record(whole[index], unix_s)
            if entry is not None:
                pieces = [text for _, text in sorted(added.get(index, ()))]
                entries.append(with_additions(entry, pieces))
        return entries

    @property
    def began(self) -> dict[str, Any]:
        """How it began, with what only other versions know."""
        return dict(self._call)

    @property
    def additions(self) -> tuple[str, ...]:
        """The keys of the records that add to an entry, which is whole once it is read."""
        return tuple(key for key in self._records if key.startswith("entry/") and "+" in key)

    @property
    def wire(self) -> str:
        """The name of its wire."""
        return str(self._call.get("wire", ""))

    @property
    def note_tag(self) -> str:
        """The tag of its history's notes."""
        return str(self._call.get("note_tag", ""))

    @property
    def conversation(self) -> str | None:
        """The conversation that its request named; ``None`` for none."""
        name = self._call.get("conversation")
        return None if name is None else str(name)

    @property
    def request(self) -> CallRequest:
        """How its client asked for it; secrets are left out."""
        asked = self._call["request"]
        identity = Identity(asked["user"], frozenset(asked["rights"]))
        return CallRequest(
            mode=asked["mode"],
            conversation=asked["conversation"],
            headers=MappingProxyType(asked["headers"]),
            query=MappingProxyType(asked["query"]),
            peer=asked["peer"],
            identity=identity,
            secure=asked["secure"],
            direction=asked["direction"],
            token_expires_s=asked["token_expires_s"],
        )

    @property
    def tokens(self) -> tuple[bytes, ...]:
        """The digests of the tokens that resume it."""
        return tuple(bytes.fromhex(one) for one in json.loads(self._records.get("tokens", "[]")))

    @property
    def received(self) -> int:
        """How many JSON messages of its client had their effect."""
        return int(self._records.get("received", "0"))

    @property
    def floor(self) -> str:
        """The agent that had the floor; empty for none."""
        return self._records.get("floor", "")

    @property
    def is_paused(self) -> bool:
        """Whether it was paused."""
        return self._records.get("paused") == "1"

    @property
    def utterance(self) -> int:
        """The highest number of an utterance that was told."""
        return int(self._records.get("utterance", "0"))

    @property
    def state(self) -> str | None:
        """The app's state as JSON; ``None`` if it has none."""
        return self._records.get("state")


def _saved_answer(data: dict[str, Any]) -> SavedAnswer:
    trigger = None
    cls = class_of(str(data.get("event")))
    if cls is not None and issubclass(cls, Event):
        try:
            trigger = cls.model_validate_json(data["data"])
        except (ValidationError, KeyError):
            log.error("journal_trigger_unreadable", event=data.get("event"))
    return SavedAnswer(
        data["agent"], data.get("text"), trigger, data.get("source", ""), data.get("runs", 1)
    )
