"""The HTTP service of vendors, against a server in memory."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import httpx2
import pytest
import trio
from structlog.testing import capture_logs

from bargein.ears import AzureTranscription, TranscriptionService
from bargein.fakes import (
    FakeAnthropic,
    FakeAzureChat,
    FakeGeminiChat,
    FakeOpenAIChat,
    FakeOpenAIVoice,
    FakeTranscription,
)
from bargein.llm import (
    AnthropicChat,
    AzureChat,
    ChatModelError,
    ChatModelExtraError,
    GeminiChat,
    HttpLimits,
    OpenAIChat,
)
from bargein.speech import SpeechExtraError, VoiceStyle
from bargein.vendors import ErrorTable, HttpService, Vendor, VendorError
from bargein.voices import AzureVoice, OpenAIVoice

Answer = Callable[[httpx2.Request], httpx2.Response]
ANY = Vendor(errors=ErrorTable("Any"), url="wss://any.example", variables="ANY")


def service(answer: Answer, url: str = "http://host/v1", **options: Any) -> HttpService:
    return HttpService(
        "Test",
        url,
        errors=ErrorTable("Test"),
        extra="llm",
        missing=ChatModelExtraError,
        transport=httpx2.MockTransport(answer),
        **options,
    )


@pytest.mark.parametrize(
    ("base", "query", "expected"),
    [
        ("ws://h/v1", None, "ws://h/v1/x?a=1"),
        ("ws://h/v1/", {"b": True}, "ws://h/v1/x?a=1&b=true"),
        (
            "wss://h/d/m?api-version=2024-10-21",
            None,
            "wss://h/d/m/x?a=1&api-version=2024-10-21",
        ),
        ("wss://h?a=2&c=", {"c": ["3", "4"]}, "wss://h/x?a=2&c=3&c=4"),
        ("wss://h", {"a": None}, "wss://h/x"),
    ],
)
def test_an_address_has_one_query(base: str, query: Any, expected: str) -> None:
    """The path is appended before the query of a base URL, and the user's parameters win."""
    at = ANY.at("Ear", "k", {"base_url": base, "query": query})
    assert at.address("/x", {"a": 1, "none": None, "empty": ()}).url == expected


async def test_each_request_has_the_headers_and_the_query() -> None:
    """Headers and query go with each request, also with those that open a connection."""
    seen: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        return httpx2.Response(200, json={"text": "hello"})

    made = service(answer, "http://host/v1?a=1", headers={"api-key": "k"}, query={"b": "2"})
    async with made.open():
        await made.prewarm("/models")
        assert json.loads(await made.fetch("/audio", data={"model": "m"})) == {"text": "hello"}
    assert [str(request.url) for request in seen] == [
        "http://host/v1/models?a=1&b=2",
        "http://host/v1/audio?a=1&b=2",
    ]
    assert {request.headers["api-key"] for request in seen} == {"k"}


async def test_a_passing_refusal_is_tried_again(autojump_clock: Any) -> None:
    """A request refused for a while is sent again after the time that the server asks for."""
    answers = [
        httpx2.Response(503),
        httpx2.Response(429, headers={"retry-after": "2"}),
        httpx2.Response(200, content=b"yes"),
    ]
    made = service(lambda request: answers.pop(0))
    async with made.open():
        assert await made.fetch("/x", json={}) == b"yes"


@pytest.mark.parametrize("code", ["insufficient_quota", "invalid_api_key"])
async def test_no_credit_and_a_wrong_key_are_not_tried_again(code: str) -> None:
    """What waiting cannot mend fails at the first attempt, whatever its status."""
    asked = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(request)
        return httpx2.Response(429, json={"error": {"code": code, "message": "no"}})

    made = service(answer)
    async with made.open():
        with pytest.raises(VendorError) as told:
            await made.fetch("/x", json={})
    assert len(asked) == 1
    assert (told.value.code, told.value.detail) == (code, "no")


async def test_a_page_of_a_proxy_is_not_the_servers_word() -> None:
    """A refusal that comes as a web page is told by the words for its status."""
    page = httpx2.Response(403, html="<html><h1>Blocked</h1></html>")
    made = service(lambda request: page)
    async with made.open():
        with pytest.raises(VendorError) as told:
            await made.fetch("/x", json={})
    assert (told.value.status, told.value.detail) == (403, "Forbidden")


async def test_models_and_voices_ask_again_alike(autojump_clock: Any) -> None:
    """A chat model's attempts are those of the service: as many, as late, and logged as such."""
    model = OpenAIChat(
        "m",
        base_url="http://h/v1",
        limits=HttpLimits(attempts=2, first_wait_s=1.0, random=lambda: 1.0),
        transport=httpx2.MockTransport(lambda request: httpx2.Response(503)),
    )
    with capture_logs() as logs, pytest.raises(ChatModelError, match="HTTP status 503"):
        _ = [piece async for piece in model.stream([{"role": "user", "content": "hi"}])]
    assert trio.current_time() == 1.0
    [again] = logs
    assert (again["event"], again["vendor"], again["wait_s"]) == ("vendor_asked_again", "m", 1.0)


async def test_a_chat_model_without_credit_asks_once() -> None:
    """A chat model does not ask again an account whose credit is used up."""
    asked = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(request)
        return httpx2.Response(429, json={"error": {"code": "insufficient_quota"}})

    model = OpenAIChat("m", base_url="http://h/v1", transport=httpx2.MockTransport(answer))
    with pytest.raises(Exception, match="no credit"):
        _ = [piece async for piece in model.stream([{"role": "user", "content": "hi"}])]
    assert len(asked) == 1


async def test_chat_and_voice_reach_a_deployment_behind_a_query() -> None:
    """A base URL with a query and a key in ``api-key``, as at Azure, serve chat and voice."""
    seen: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        if request.url.path.endswith("/speech"):
            return httpx2.Response(200, content=b"\0" * 480, headers={"content-type": "audio/pcm"})
        chunk = {"choices": [{"delta": {"content": "Hi."}, "finish_reason": "stop"}]}
        body = f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n"
        return httpx2.Response(200, text=body, headers={"content-type": "text/event-stream"})

    url = "https://one.openai.azure.com/openai/deployments/m?api-version=2024-10-21"
    options: Any = {"headers": {"api-key": "k"}, "transport": httpx2.MockTransport(answer)}
    model = OpenAIChat("m", base_url=url, **options)
    _ = [piece async for piece in model.stream([{"role": "user", "content": "hi"}])]
    voice = OpenAIVoice(base_url=url, **options)
    async with voice.open(), voice.open_context(VoiceStyle()) as context:
        await context.send("Hello.")
        await context.end()
        while await context.receive() is not None:
            pass
    assert [request.url.path for request in seen] == [
        "/openai/deployments/m/chat/completions",
        "/openai/deployments/m/audio/speech",
    ]
    for request in seen:
        assert request.url.params["api-version"] == "2024-10-21"
        assert request.headers["api-key"] == "k"
        assert "authorization" not in request.headers
    assert "api-version" not in repr(model) + repr(voice)


async def test_a_voice_of_ones_own_needs_no_key_and_never_plays_a_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A keyless server is asked without a key, and its error behind status 200 is no sound."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    seen: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        return httpx2.Response(200, json={"error": {"code": "voice_not_found", "message": "no"}})

    transport = httpx2.MockTransport(answer)
    voice = OpenAIVoice(base_url="http://localhost:8880/v1", transport=transport, attempts=1)
    async with voice.open(), voice.open_context(VoiceStyle()) as context:
        await context.send("Hello.")
        await context.end()
        with pytest.raises(VendorError, match="no audio"):
            await context.receive()
    assert "authorization" not in seen[0].headers
    with pytest.raises(ValueError, match="requires a key"):
        OpenAIVoice(transport=transport)


def test_the_users_own_header_is_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """A header of the user's that carries a key keeps the key of the environment out."""
    monkeypatch.setenv("ANY_API_KEY", "from-environment")
    assert ANY.headers_for("Ear", None, ANY.url, {"api-key": "k"}) == {"api-key": "k"}
    from_environment = {"Authorization": "Bearer from-environment"}
    assert ANY.headers_for("Ear", None, ANY.url, None) == from_environment
    assert ANY.headers_for("Ear", "", "wss://mine", None) == {}


MODELS: list[Any] = [OpenAIChat, AnthropicChat, GeminiChat, AzureChat]
SPEECH: list[Any] = [OpenAIVoice, AzureVoice, TranscriptionService, AzureTranscription]
FAKE_MODELS: list[Any] = [FakeOpenAIChat, FakeAnthropic, FakeGeminiChat, FakeAzureChat]
FAKE_SPEECH: list[Any] = [FakeOpenAIVoice, FakeTranscription]


@pytest.mark.parametrize("made", [*MODELS, *SPEECH, *FAKE_MODELS, *FAKE_SPEECH])
def test_a_missing_package_is_an_error_of_its_kind(made: Any, monkeypatch: Any) -> None:
    """A model's extra is a model's error, and that of a voice or a recogniser one of speech."""
    monkeypatch.setitem(sys.modules, "httpx2", None)
    is_of_model = made in MODELS or made in FAKE_MODELS
    kind, extra = (ChatModelExtraError, "llm") if is_of_model else (SpeechExtraError, "openai")
    azure = {"endpoint": "http://host"} if made.__name__.startswith("Azure") else {}
    is_fake = made in FAKE_MODELS or made in FAKE_SPEECH
    make = made().transport if is_fake else partial(made, "any", api_key="k", **azure)
    with pytest.raises(kind, match=rf"{made.__name__} needs .*bargein\[{extra}\]"):
        make()
