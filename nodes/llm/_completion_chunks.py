"""Turns the chunks of a chat completion into the pieces of an answer.

OpenAI, "Create chat completion", object ``chat.completion.chunk``. Many servers send it, each a
little differently, and this module handles all differences:

- the pieces of a tool call carry an index, or only an id, or neither (then a piece is a whole
  call);
- ``content`` is a string or a list of parts;
- reasoning comes as ``reasoning_content`` (DeepSeek, llama.cpp) or as ``reasoning``
  (OpenRouter, Ollama, and vLLM, whose page "Reasoning Outputs" mentions the new name);
- usage comes with the last chunk, in a chunk of its own, or never;
- an error is an object in the stream, whose code is an HTTP status or a word.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from bargein.bridge.validation.foreign_data import read_json

from ._errors import ChatModelError
from ._protocol import AnswerPiece, AnswerProgress, TextDelta, ToolCallRequest, Usage

_RETRYABLE_WORDS = (
    "rate_limit",
    "overloaded",
    "server_error",
    "api_error",
    "unavailable",
    "timeout",
)
_RETRYABLE_STATUS = frozenset({408, 409, 429})


MAX_CALL_CHARACTERS = 1 << 20
"""How long the arguments of all calls of one answer may be: far more than a model's longest answer;
what goes on for longer never ends."""


_WORD = re.compile(r"[A-Za-z0-9_.-]{1,64}")
"""An endpoint's error code; anything longer or with spaces may be a sentence that quotes people."""


def _word(code: object) -> str:
    return code if isinstance(code, str) and _WORD.fullmatch(code) else ""


def retryable_status(status: int) -> bool:
    """Return whether a request refused with this HTTP status may succeed when sent again."""
    return status in _RETRYABLE_STATUS or status >= 500


def check_calls(model: str, characters: int) -> None:
    """Refuse calls of tools that never end.

    Raises:
        ChatModelError: They are longer than `MAX_CALL_CHARACTERS`.
    """
    if characters > MAX_CALL_CHARACTERS:
        problem = f"the call of a tool exceeds {MAX_CALL_CHARACTERS} characters"
        raise ChatModelError(problem, model=model)


class _ServerObject(BaseModel):
    """An object from a server; unknown fields are ignored."""

    model_config = ConfigDict(extra="ignore", defer_build=True)


class _FunctionDelta(_ServerObject):
    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class _ToolCallDelta(_ServerObject):
    index: int | None = None
    id: str | None = None
    function: _FunctionDelta | None = None


class _Part(_ServerObject):
    type: str | None = None
    text: str | None = None


class _Delta(_ServerObject):
    content: str | list[_Part] | None = None
    refusal: str | None = None
    reasoning: Any = None
    reasoning_content: Any = None
    tool_calls: list[_ToolCallDelta] | None = None

    def text(self) -> str:
        """Return the text to say; a refusal is said like any other answer."""
        content = self.content
        if isinstance(content, list):
            content = "".join(part.text or "" for part in content if part.type == "text")
        return content or self.refusal or ""

    def is_reasoning(self) -> bool:
        """Return whether the model wrote reasoning."""
        return bool(self.reasoning or self.reasoning_content)

    def is_token(self) -> bool:
        """Return whether the model wrote anything, reasoning included."""
        return bool(self.content or self.refusal or self.tool_calls) or self.is_reasoning()


class _Choice(_ServerObject):
    index: int | None = 0
    delta: _Delta | None = None
    message: _Delta | None = None
    finish_reason: str | None = None


class _PromptDetails(_ServerObject):
    cached_tokens: int | None = None


class _UsageReport(_ServerObject):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _PromptDetails | None = None


class Chunk(_ServerObject):
    """One chunk of a stream, or a whole answer."""

    choices: list[_Choice] | None = None
    usage: _UsageReport | None = None
    error: Any = None


def parse_chunk(data: bytes, model: str) -> Chunk:
    """Parse one chunk.

    Raises:
        ChatModelError: It is not a chunk.
    """
    try:
        try:
            return Chunk.model_validate_json(data)
        except ValidationError:
            if b"\\u" not in data:
                raise
            return Chunk.model_validate(read_json(data))  # a lone surrogate costs no answer
    except ValueError as error:
        if not isinstance(error, ValidationError):
            raise ChatModelError("a chunk of the answer is no JSON", model=model) from error
        where = ", ".join(".".join(map(str, item["loc"])) or "the whole" for item in error.errors())
        problem = f"a chunk of the answer is not what chat completions send (in {where})"
        raise ChatModelError(problem, model=model) from error


def reported_error(model: str, error: object, status: int | None = None) -> ChatModelError:
    """Return the exception for an error that a server reports in its own words.

    Args:
        model: The model's name.
        error: The value of ``error``: an object or a text.
        status: HTTP status; ``None`` if the error came inside an answer.
    """
    fields: Mapping[str, Any] = error if isinstance(error, dict) else {"message": error}
    code, kind = fields.get("code"), fields.get("type")
    if status is None and isinstance(code, int):
        status = code
    words = f"{code} {kind}".lower()
    retryable = retryable_status(status) if status is not None else False
    return ChatModelError(
        "the server reported an error",
        model=model,
        retryable=retryable or any(word in words for word in _RETRYABLE_WORDS),
        status=status,
        code=_word(code) or _word(kind),
        detail=str(fields.get("message") or error),
    )


@dataclass(slots=True)
class _OpenCall:
    """A tool call that may not be complete yet."""

    id: str
    name: str = ""
    raw: str = ""

    def add(self, function: _FunctionDelta | None) -> None:
        if function is None:
            return
        self.name = self.name or function.name or ""
        arguments = function.arguments
        if isinstance(arguments, dict):  # Ollama sends a whole object
            self.raw = json.dumps(arguments, ensure_ascii=False)
        else:
            self.raw += arguments or ""

    @property
    def size(self) -> int:
        return len(self.id) + len(self.name) + len(self.raw)

    def request(self, number: int) -> ToolCallRequest:
        return ToolCallRequest(
            id=self.id or f"call_{number}",
            name=self.name,
            arguments=arguments_of(self.raw),
            raw=self.raw,
        )


class Assembler:
    """The state of one answer between its chunks."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._calls: list[_OpenCall] = []
        self._calls_size = 0  # in characters
        self._by_index: dict[int, _OpenCall] = {}
        self._usage: _UsageReport | None = None
        self._finish_reason: str | None = None
        self._started = False
        self._ended = False
        self._reasons = False

    @property
    def begun(self) -> bool:
        """Whether a token has come, even one that is not for the caller."""
        return self._started

    @property
    def finished(self) -> bool:
        """Whether the server has sent a finish reason."""
        return self._finish_reason is not None

    @property
    def ended(self) -> bool:
        """Whether the server has said that nothing follows."""
        return self._ended

    def read(self, event: bytes) -> list[AnswerPiece]:
        """Return the pieces in an event; see `Reading.read`."""
        if event == b"[DONE]":
            self._ended = True
            return []
        return self.feed(parse_chunk(event, self._model))

    def read_whole(self, body: bytes) -> list[AnswerPiece]:
        """Return the pieces of an answer that came in one response; see `Reading.read_whole`."""
        return [*self.feed(parse_chunk(body, self._model)), *self.finish()]

    def feed(self, chunk: Chunk) -> list[AnswerPiece]:
        """Return the pieces that a chunk completes, and the model's progress.

        Raises:
            ChatModelError: The chunk reports an error.
        """
        if chunk.error:
            raise self.error(chunk.error)
        self._usage = chunk.usage or self._usage
        pieces: list[AnswerPiece] = []
        for choice in chunk.choices or ():
            if choice.index:
                continue  # a second choice, from options={"n": 2}; only the first one is said
            delta = choice.delta or choice.message
            if delta is not None:
                self._started = self._started or delta.is_token()
                pieces += self._assemble(delta)
            self._finish_reason = choice.finish_reason or self._finish_reason
        return pieces

    def finish(self) -> list[AnswerPiece]:
        """Return the pieces that are known only at the end: tool calls, then the usage."""
        calls = [call.request(number) for number, call in enumerate(self._calls, 1) if call.name]
        usage = self._usage or _UsageReport()
        details = usage.prompt_tokens_details or _PromptDetails()
        return [
            *calls,
            Usage(
                usage.prompt_tokens,
                usage.completion_tokens,
                details.cached_tokens,
                self._finish_reason or "",
            ),
        ]

    def error(self, error: object, status: int | None = None) -> ChatModelError:
        """Return the exception for an error that the server reports.

        Args:
            error: The value of ``error``: an object or a text.
            status: HTTP status; ``None`` if the error came inside an answer.
        """
        return reported_error(self._model, error, status)

    def _assemble(self, delta: _Delta) -> Iterator[AnswerPiece]:
        """Yield the pieces of a delta, in the order in which models write them."""
        if delta.is_reasoning() and not self._reasons:
            self._reasons = True
            yield AnswerProgress("thinking")
        if text := delta.text():
            self._reasons = False
            yield TextDelta(text)
        for piece in delta.tool_calls or ():
            self._reasons = False
            call = self._call(piece)
            was_named, size = bool(call.name), call.size
            call.add(piece.function)
            self._calls_size += 1 + call.size - size
            check_calls(self._model, self._calls_size)
            if call.name and not was_named:
                yield AnswerProgress("tool_call", call.name)

    def _call(self, piece: _ToolCallDelta) -> _OpenCall:
        """Return the call that a piece belongs to; start one for its first piece."""
        if piece.index is None and piece.id:
            call = next((call for call in self._calls if call.id == piece.id), None)
            index = len(self._calls)
        else:
            index = piece.index or 0
            call = self._by_index.get(index)
        if call is None or (piece.id and call.id and piece.id != call.id):
            call = self._by_index[index] = _OpenCall(piece.id or "")
            self._calls.append(call)
        return call


def arguments_of(raw: str) -> Mapping[str, Any] | None:
    """Parse a call's arguments; empty text means none, ``None`` that they are not a JSON object."""
    if not raw.strip():
        return {}
    try:
        value = read_json(raw)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
