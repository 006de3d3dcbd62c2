"""A fake of OpenAI's speech-to-speech model, by the types of the vendor's SDK 3.54.

It keeps the conversation as the vendor does, and refuses what the vendor refuses: a second response
at a time, a cancel of nothing, a truncation beyond the audio, an item that it does not have.
"""

from __future__ import annotations

import base64
import json
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any, ClassVar

import trio

from bargein.bridge.websocket import ConnectionClosedError
from bargein.nodes.fakes import (
    CHAR_S,
    FLOOD_BYTES,
    SAMPLE_RATE_HZ,
    SPEED,
    FakeLine,
    Fault,
    FaultKind,
    FaultStage,
    base64_of,
)

from .fake_ear import HEARS, FakeOpenAILine, is_loud

__all__ = ["FakeOpenAIRealtime", "RealtimeCall"]

WRITTEN_S = 0.3
"""How long a transcript takes, in seconds."""

PAUSE_S = 0.5
"""How much silence ends the caller's turn, in seconds."""

LATE_S = 6.0
"""How long a cancelled response continues with the fault "late", in seconds."""

MOST_ITEMS = 200
"""How many items the conversation keeps: the vendor drops the oldest of a long conversation."""

MOST_MESSAGES = 100
"""How many received messages are kept, not counting audio."""


@dataclass
class RealtimeItem:
    """An item of the conversation."""

    id: str
    what: str
    """``user``, ``assistant``, ``call:name``, ``result``."""
    text: str = ""
    audio_ms: float = 0.0


@dataclass
class RealtimeCall:
    """A reply that calls a tool."""

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    id: str = "call_1"


class RealtimeConversation:
    """One line, and the conversation that the vendor keeps for it."""

    def __init__(self, line: FakeLine) -> None:
        self.line = line
        self.received: deque[dict[str, Any]] = deque(maxlen=MOST_MESSAGES)
        self.items: list[RealtimeItem] = []
        self.session: dict[str, Any] = {}
        self.errors: list[str] = []
        self.audio = bytearray()
        self.response: trio.CancelScope | None = None
        self.response_id = ""
        self.cancels: list[str] = []
        self.spoken = ""  # the item that the caller is speaking
        self.silence_s = 0.0

    def of(self, kind: str) -> list[dict[str, Any]]:
        """Return the received messages of a type."""
        return [message for message in self.received if message["type"] == kind]

    @property
    def hearing(self) -> dict[str, Any]:
        """The session's settings for the caller's audio."""
        hearing: dict[str, Any] = self.session.get("audio", {}).get("input", {})
        return hearing

    def add(self, item: RealtimeItem, after: str | None = None) -> None:
        """Add an item after another one; ``root`` adds it at the beginning, ``None`` at the end."""
        ids = ["root", *(each.id for each in self.items)]
        self.items.insert(ids.index(after) if after else len(self.items), item)
        del self.items[:-MOST_ITEMS]

    @property
    def conversation(self) -> list[tuple[str, str]]:
        """The conversation as the model knows it."""
        return [(item.what, item.text) for item in self.items]


class FakeOpenAIRealtime(FakeOpenAILine):
    """``/v1/realtime``: each response is the next reply of its script.

    With `words` it hears them in any loud audio; otherwise call ``hear``.

    Attributes:
        replies: The model's answers: texts, tool calls, lists of both for one response, or a dict,
            the error of a failed response; the last one repeats.
        words: The words in any loud audio, if the session detects turns; empty to detect nothing.
        conversations: The conversations of all lines, the newest last.
        is_stalled: Whether texts stop halfway.
        is_refusing: Whether responses are refused.
        echoes_metadata: Whether a response repeats the metadata of its request.
    """

    faults: ClassVar[frozenset[FaultKind]] = frozenset(
        {
            *("stall", "drop", "close", "refuse", "error", "garbage", "duplicate"),
            *("reorder", "slow", "late", "empty", "flood", "deaf", "backwards"),
        }
    )
    time_keys: ClassVar[tuple[str, ...]] = ("audio_start_ms",)
    error: ClassVar[Mapping[str, Any] | None] = {
        "type": "error",
        "event_id": "event_1",
        "error": {"type": "server_error", "code": None, "message": "no", "param": None},
    }

    def __init__(self, *replies: Any, words: str = "", fault: Fault | None = None) -> None:
        """Set the script.

        Args:
            replies: See the attribute.
            words: See the attribute.
            fault: The fault to play; ``None`` for none.

        Raises:
            ValueError: This fake cannot play that fault.
        """
        super().__init__(fault)
        self.replies = [*replies]
        self.words = words
        self._reply: Any = "Sure."
        self.conversations: list[RealtimeConversation] = []
        self.is_stalled = False
        self.is_refusing = False
        self.echoes_metadata = True
        self._numbers = count(1)

    @property
    def line(self) -> RealtimeConversation:
        """The conversation of the newest line."""
        return self.conversations[-1]

    async def talk(self, line: FakeLine) -> None:
        """Converse until the line is over."""
        conversation = RealtimeConversation(line)
        self.conversations.append(conversation)
        await self.send(conversation, "session.created", session={"type": "realtime"})
        async with trio.open_nursery() as nursery:
            try:
                while True:
                    message = json.loads(await line.receive())
                    await self._obey(conversation, message, nursery)
            except (ValueError, KeyError, TypeError) as error:
                line.close(1008, str(error)[:100])
            finally:
                nursery.cancel_scope.cancel(reason="the line is over")

    async def send(
        self, line: RealtimeConversation, kind: str, at: FaultStage | None = None, **fields: Any
    ) -> None:
        """Send a message; with `at`, as a part of a response."""
        message = {"type": kind, "event_id": f"event_{next(self._numbers)}", **fields}
        with suppress(ConnectionClosedError):
            if at is None or line.line.has("flood"):
                await line.line.say(message)
            else:
                await self.give(line.line, message, at)

    async def refuse(self, line: RealtimeConversation, message: dict[str, Any], code: str) -> None:
        """Answer a message with an error."""
        line.errors.append(code)
        error = {"type": "invalid_request_error", "code": code, "message": "no", "param": None}
        await self.send(line, "error", error={**error, "event_id": message.get("event_id")})

    async def _obey(
        self, line: RealtimeConversation, message: dict[str, Any], nursery: trio.Nursery
    ) -> None:
        kind = message["type"].removeprefix("conversation.").removeprefix("input_audio_buffer.")
        if kind != "append":
            line.received.append(message)
        match kind:
            case "session.update":
                line.session |= message["session"]
                await self.send(line, "session.updated", session=line.session)
            case "append":
                pcm = base64.b64decode(message["audio"])
                line.audio += pcm
                if self.words and line.hearing.get("turn_detection"):
                    await self._detect(line, pcm, nursery)
            case "clear":
                line.audio.clear()
            case "commit":
                if len(line.audio) < 2 * SAMPLE_RATE_HZ // 10:
                    await self.refuse(line, message, "input_audio_buffer_commit_empty")
                else:
                    await self._commit_by_hand(line, nursery)
            case "item.create":
                self._create(line, message["item"], message.get("previous_item_id"))
            case "item.delete":
                await self._delete(line, message)
            case "item.truncate":
                await self._truncate(line, message)
            case "response.create":
                await self.respond(line, message, nursery)
            case "response.cancel":
                await self._cancel(line, message)

    def _create(self, line: RealtimeConversation, item: dict[str, Any], after: str | None) -> None:
        id = item.get("id") or f"item_{next(self._numbers)}"
        if item["type"] == "message":
            made = RealtimeItem(id, item["role"], "".join(part["text"] for part in item["content"]))
        elif item["type"] == "function_call":
            made = RealtimeItem(id, f"call:{item['name']}", item["arguments"])
        else:
            made = RealtimeItem(id, "result", item["output"])
        line.add(made, after)

    def _item(self, line: RealtimeConversation, id: str) -> RealtimeItem | None:
        return next((item for item in line.items if item.id == id), None)

    async def _delete(self, line: RealtimeConversation, message: dict[str, Any]) -> None:
        item = self._item(line, message["item_id"])
        if item is None:
            await self.refuse(line, message, "item_delete_invalid_item_id")
            return
        line.items.remove(item)
        await self.send(line, "conversation.item.deleted", item_id=item.id)

    async def _truncate(self, line: RealtimeConversation, message: dict[str, Any]) -> None:
        item = self._item(line, message["item_id"])
        if item is None or message["audio_end_ms"] > item.audio_ms:
            await self.refuse(line, message, "invalid_truncation")
            return
        item.text, item.audio_ms = "", message["audio_end_ms"]
        told: dict[str, Any] = {
            name: message[name] for name in ("item_id", "content_index", "audio_end_ms")
        }
        await self.send(line, "conversation.item.truncated", **told)

    async def _cancel(self, line: RealtimeConversation, message: dict[str, Any]) -> None:
        line.cancels.append(message["response_id"])
        if line.response is None or message["response_id"] != line.response_id:
            await self.refuse(line, message, "response_cancel_not_active")
        elif line.line.has("late"):
            line.response = None  # another response may start meanwhile
        else:
            line.response.cancel()

    # --- responses ------------------------------------------------------------------------------

    async def respond(
        self, line: RealtimeConversation, message: dict[str, Any], nursery: trio.Nursery
    ) -> None:
        """Start the response that a client asks for, or refuse it."""
        if self.is_refusing or line.response is not None:
            code = (
                "server_error" if self.is_refusing else "conversation_already_has_active_response"
            )
            await self.refuse(line, message, code)
            return
        line.response = trio.CancelScope()
        line.response_id = f"resp_{next(self._numbers)}"
        metadata = message["response"].get("metadata") if self.echoes_metadata else None
        nursery.start_soon(self._run, line, line.response, line.response_id, metadata)

    async def _run(
        self,
        line: RealtimeConversation,
        scope: trio.CancelScope,
        id: str,
        metadata: dict[str, Any] | None,
    ) -> None:
        response = {"id": id, "object": "realtime.response", "output": []}
        begun = {**response, "status": "in_progress", "metadata": metadata}
        await self.send(line, "response.created", response=begun)
        details: dict[str, Any] | None = None
        status = "completed"
        with scope:
            if self.replies:
                self._reply = self.replies.pop(0)
            reply = self._reply
            if line.line.has("empty"):
                reply = []
            if isinstance(reply, dict):
                status, details = "failed", {"type": "failed", "error": reply}
            else:
                for part in reply if isinstance(reply, list) else [reply]:
                    await trio.sleep(0.1)
                    await self._part(line, id, part)
                until_s = trio.current_time() + LATE_S
                while line.response is not scope and trio.current_time() < until_s:
                    await self._part(line, id, "late ")
        if scope.cancelled_caught:
            status, details = "cancelled", {"type": "cancelled", "reason": "client_cancelled"}
        await trio.sleep(0.02)  # late audio may still be on its way
        usage: dict[str, Any] = {"input_tokens": 50, "output_tokens": 20, "total_tokens": 70}
        usage |= {"input_token_details": {"cached_tokens": 30}}
        over = {**response, "status": status, "status_details": details, "usage": usage}
        if line.response is scope:
            line.response = None
        await self.send(line, "response.done", response={**over, "metadata": metadata}, at="last")

    async def _part(self, line: RealtimeConversation, response: str, part: Any) -> None:
        item = RealtimeItem(f"item_{next(self._numbers)}", "assistant")
        line.add(item)
        head: dict[str, Any] = {"response_id": response, "output_index": 0}
        if isinstance(part, RealtimeCall):
            item.what, item.text = f"call:{part.name}", json.dumps(part.arguments)
            call = {"id": item.id, "type": "function_call", "name": part.name}
            call |= {"call_id": part.id, "arguments": "", "status": "in_progress"}
            await self.send(line, "response.output_item.added", item=call, **head)
            await trio.sleep(0.1)
            done = {**call, "arguments": item.text, "status": "completed"}
            await self.send(line, "response.output_item.done", item=done, **head)
            return
        message = {"id": item.id, "type": "message", "role": "assistant", "content": []}
        await self.send(line, "response.output_item.added", item=message, **head)
        head |= {"item_id": item.id, "content_index": 0}
        speaks = line.session["output_modalities"] == ["audio"]
        at: FaultStage = "first"
        for word in str(part).split():
            while self.is_stalled:
                await trio.sleep_forever()
            text, said_s = word + " ", CHAR_S * (len(word) + 1)
            await trio.sleep(said_s / SPEED)
            item.text += text
            if not speaks:
                await self.send(line, "response.output_text.delta", at, delta=text, **head)
                at = "middle"
                continue
            item.audio_ms += 1000 * said_s
            sound = base64_of(text)
            await self.send(line, "response.output_audio_transcript.delta", at, delta=text, **head)
            await self.send(line, "response.output_audio.delta", at, delta=sound, **head)
            for _ in range(FLOOD_BYTES // len(sound) if line.line.has("flood") else 0):
                await self.send(line, "response.output_audio.delta", delta=sound, **head)
            at = "middle"
        head.pop("content_index")
        head.pop("item_id")
        await self.send(line, "response.output_item.done", item=message, **head)

    # --- the caller -----------------------------------------------------------------------------

    async def commit(self, line: RealtimeConversation, id: str, text: str) -> None:
        """Make an item of the audio so far."""
        line.audio.clear()
        before = line.items[-1].id if line.items else None
        line.add(RealtimeItem(id, "user", text))
        await self.send(line, "input_audio_buffer.committed", item_id=id, previous_item_id=before)

    async def hear(self, text: str, *, takes_s: float = 0.5, written_s: float = WRITTEN_S) -> None:
        """Detect speech of the caller, and transcribe it a little later."""
        line = self.line
        id = await self._start_voice(line)
        await trio.sleep(takes_s)
        await self._stop_voice(line, id, text)
        await self._write_down(line, id, text, written_s)

    async def _detect(self, line: RealtimeConversation, pcm: bytes, nursery: trio.Nursery) -> None:
        """Detect the start and the end of speech in the caller's audio."""
        if is_loud(pcm):
            line.silence_s = 0.0
            if not line.spoken:
                line.spoken = await self._start_voice(line)
        elif line.spoken:
            line.silence_s += len(pcm) / 2 / SAMPLE_RATE_HZ
            if line.silence_s >= PAUSE_S:
                id, line.spoken = line.spoken, ""
                text = "" if line.line.has("empty") else self.words
                await self._stop_voice(line, id, text)
                nursery.start_soon(self._write_down, line, id, text, WRITTEN_S)

    async def _start_voice(self, line: RealtimeConversation) -> str:
        id = f"item_{next(self._numbers)}"
        told = {"item_id": id, "audio_start_ms": 0}
        await self.send(line, "input_audio_buffer.speech_started", "voice", **told)
        return id

    async def _stop_voice(self, line: RealtimeConversation, id: str, text: str) -> None:
        await self.send(line, "input_audio_buffer.speech_stopped", item_id=id, audio_end_ms=9)
        await self.commit(line, id, text)

    async def _commit_by_hand(self, line: RealtimeConversation, nursery: trio.Nursery) -> None:
        id, text = f"item_{next(self._numbers)}", self.words or "<audio>"
        await self.commit(line, id, text)
        if line.hearing.get("transcription"):
            nursery.start_soon(self._write_down, line, id, text, WRITTEN_S)

    async def _write_down(
        self, line: RealtimeConversation, id: str, text: str, takes_s: float
    ) -> None:
        await trio.sleep(takes_s)
        usage = {"type": "duration", "seconds": 1.0}
        told: dict[str, Any] = {"item_id": id, "content_index": 0, "transcript": text}
        await self.send(line, HEARS + "completed", "words", **told, usage=usage)
