"""A speech to speech model that speaks OpenAI's messages, in virtual time.

It keeps the conversation as the vendor does, and refuses what the vendor refuses: a second response
at a time, a cancel of nothing, a truncation beyond the audio, an item that it does not have.
"""

from __future__ import annotations

import base64
import json
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import trio
import trio.testing

from bargein.websocket import ConnectionClosedError, WebSocket, accept, using

CHAR_S = 0.05
"""How long a character is heard; it is made ten times as fast."""

RATE_HZ = 24_000
HEARS = "conversation.item.input_audio_transcription."


@dataclass
class Item:
    """An item of the conversation."""

    id: str
    what: str
    """``user``, ``assistant``, ``call:name``, ``result``."""
    text: str = ""
    audio_ms: float = 0.0


@dataclass
class Call:
    """A reply that calls a tool."""

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    id: str = "call_1"


class Line:
    """One line, and the conversation that the vendor keeps for it."""

    def __init__(self, request: Any, socket: WebSocket) -> None:
        self.request = request
        self.socket = socket
        self.received: list[dict[str, Any]] = []
        self.items: list[Item] = []
        self.session: dict[str, Any] = {}
        self.errors: list[str] = []
        self.audio = bytearray()
        self.response: trio.CancelScope | None = None
        self.response_id = ""
        self.cancels: list[str] = []

    def of(self, kind: str) -> list[dict[str, Any]]:
        """Return the messages of a type that came."""
        return [message for message in self.received if message["type"] == kind]

    @property
    def conversation(self) -> list[tuple[str, str]]:
        """What the model knows, as it would read it."""
        return [(item.what, item.text) for item in self.items]


class FakeRealtime:
    """The vendor: each response is the next reply of its script."""

    def __init__(self, nursery: trio.Nursery, *replies: Any) -> None:
        self._nursery = nursery
        self.replies = [*replies]
        self.lines: list[Line] = []
        self.is_stalled = False
        self.is_refusing = False
        self.echoes_metadata = True
        self._numbers = count(1)

    @property
    def line(self) -> Line:
        """The newest line."""
        return self.lines[-1]

    async def dial(self) -> trio.abc.Stream:
        """Open a stream to it."""
        mine, theirs = trio.testing.memory_stream_pair()
        self._nursery.start_soon(self._serve, theirs)
        return mine

    async def _serve(self, stream: trio.abc.Stream) -> None:
        opened = await accept(stream, lambda request: None)
        if opened is None:
            return
        with suppress(ConnectionClosedError):
            async with using(opened[1]) as socket, trio.open_nursery() as nursery:
                line = Line(opened[0], socket)
                self.lines.append(line)
                await self.send(line, "session.created", session={"type": "realtime"})
                try:
                    while True:
                        message = json.loads(await socket.receive())
                        line.received.append(message)
                        await self._answer(line, message, nursery)
                except ConnectionClosedError:
                    nursery.cancel_scope.cancel()

    async def send(self, line: Line, kind: str, **fields: Any) -> None:
        """Send a message."""
        with suppress(ConnectionClosedError):
            await line.socket.send(json.dumps({"type": kind, "event_id": "e", **fields}))

    async def refuse(self, line: Line, message: dict[str, Any], code: str) -> None:
        """Answer a message with an error."""
        line.errors.append(code)
        error = {"type": "invalid_request_error", "code": code, "message": "no", "param": None}
        await self.send(line, "error", error={**error, "event_id": message.get("event_id")})

    async def _answer(self, line: Line, message: dict[str, Any], nursery: trio.Nursery) -> None:
        kind = message["type"].removeprefix("conversation.").removeprefix("input_audio_buffer.")
        match kind:
            case "session.update":
                line.session |= message["session"]
                await self.send(line, "session.updated", session=line.session)
            case "append":
                line.audio += base64.b64decode(message["audio"])
            case "clear":
                line.audio.clear()
            case "commit":
                if len(line.audio) < 2 * RATE_HZ // 10:
                    await self.refuse(line, message, "input_audio_buffer_commit_empty")
                else:
                    await self.commit(line, f"item_{next(self._numbers)}", "<audio>")
            case "item.create":
                self._create(line, message["item"], message.get("previous_item_id"))
            case "item.delete":
                await self._delete(line, message)
            case "item.truncate":
                await self._truncate(line, message)
            case "response.create":
                await self._respond(line, message, nursery)
            case "response.cancel":
                await self._cancel(line, message)

    def _create(self, line: Line, item: dict[str, Any], after: str | None) -> None:
        id = item.get("id") or f"item_{next(self._numbers)}"
        if item["type"] == "message":
            made = Item(id, item["role"], "".join(part["text"] for part in item["content"]))
        elif item["type"] == "function_call":
            made = Item(id, f"call:{item['name']}", item["arguments"])
        else:
            made = Item(id, "result", item["output"])
        ids = ["root", *(each.id for each in line.items)]
        line.items.insert(ids.index(after) if after else len(line.items), made)

    def _item(self, line: Line, id: str) -> Item | None:
        return next((item for item in line.items if item.id == id), None)

    async def _delete(self, line: Line, message: dict[str, Any]) -> None:
        item = self._item(line, message["item_id"])
        if item is None:
            await self.refuse(line, message, "item_delete_invalid_item_id")
            return
        line.items.remove(item)
        await self.send(line, "conversation.item.deleted", item_id=item.id)

    async def _truncate(self, line: Line, message: dict[str, Any]) -> None:
        item = self._item(line, message["item_id"])
        if item is None or message["audio_end_ms"] > item.audio_ms:
            await self.refuse(line, message, "invalid_truncation")
            return
        item.text, item.audio_ms = "", message["audio_end_ms"]
        told = {name: message[name] for name in ("item_id", "content_index", "audio_end_ms")}
        await self.send(line, "conversation.item.truncated", **told)

    async def _cancel(self, line: Line, message: dict[str, Any]) -> None:
        line.cancels.append(message["response_id"])
        if line.response is None or message["response_id"] != line.response_id:
            await self.refuse(line, message, "response_cancel_not_active")
        else:
            line.response.cancel()

    # --- responses ------------------------------------------------------------------------------

    async def _respond(self, line: Line, message: dict[str, Any], nursery: trio.Nursery) -> None:
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
        self, line: Line, scope: trio.CancelScope, id: str, metadata: dict[str, Any] | None
    ) -> None:
        response = {"id": id, "object": "realtime.response", "output": []}
        begun = {**response, "status": "in_progress", "metadata": metadata}
        await self.send(line, "response.created", response=begun)
        details: dict[str, Any] | None = None
        status = "completed"
        with scope:
            reply = self.replies.pop(0)
            if isinstance(reply, dict):
                status, details = "failed", {"type": "failed", "error": reply}
            else:
                for part in reply if isinstance(reply, list) else [reply]:
                    await trio.sleep(0.1)
                    await self._part(line, id, part)
        if scope.cancelled_caught:
            status, details = "cancelled", {"type": "cancelled", "reason": "client_cancelled"}
        await trio.sleep(0.02)  # late audio may still be on its way
        usage = {"input_tokens": 50, "output_tokens": 20, "total_tokens": 70}
        usage |= {"input_token_details": {"cached_tokens": 30}}
        over = {**response, "status": status, "status_details": details, "usage": usage}
        if line.response is scope:
            line.response = None
        await self.send(line, "response.done", response={**over, "metadata": metadata})

    async def _part(self, line: Line, response: str, part: Any) -> None:
        item = Item(f"item_{next(self._numbers)}", "assistant")
        line.items.append(item)
        head = {"response_id": response, "output_index": 0}
        if isinstance(part, Call):
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
        for word in str(part).split():
            while self.is_stalled:
                await trio.sleep_forever()
            text, said_s = word + " ", CHAR_S * (len(word) + 1)
            await trio.sleep(said_s / 10)
            item.text += text
            if not speaks:
                await self.send(line, "response.output_text.delta", delta=text, **head)
                continue
            item.audio_ms += 1000 * said_s
            audio = base64.b64encode(bytes(2 * round(said_s * RATE_HZ))).decode()
            await self.send(line, "response.output_audio_transcript.delta", delta=text, **head)
            await self.send(line, "response.output_audio.delta", delta=audio, **head)
        head.pop("content_index")
        head.pop("item_id")
        await self.send(line, "response.output_item.done", item=message, **head)

    # --- the caller -----------------------------------------------------------------------------

    async def commit(self, line: Line, id: str, text: str) -> None:
        """Make an item of the audio so far."""
        line.audio.clear()
        before = line.items[-1].id if line.items else None
        line.items.append(Item(id, "user", text))
        await self.send(line, "input_audio_buffer.committed", item_id=id, previous_item_id=before)

    async def hear(self, text: str, *, takes_s: float = 0.5, written_s: float = 0.3) -> None:
        """Detect that the caller says something, and write it down a little later."""
        line, id = self.line, f"item_{next(self._numbers)}"
        await self.send(line, "input_audio_buffer.speech_started", item_id=id, audio_start_ms=0)
        await trio.sleep(takes_s)
        await self.send(line, "input_audio_buffer.speech_stopped", item_id=id, audio_end_ms=9)
        await self.commit(line, id, text)
        await trio.sleep(written_s)
        usage = {"type": "duration", "seconds": 1.0}
        told = {"item_id": id, "content_index": 0, "transcript": text, "usage": usage}
        await self.send(line, HEARS + "completed", **told)
