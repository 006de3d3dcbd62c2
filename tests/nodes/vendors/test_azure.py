"""Deployments at Azure OpenAI: addresses, keys and versions, in virtual time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from bargein.ears import AzureTranscription
from bargein.fakes import FakeAzureChat, FakeOpenAIVoice, FakeTranscription
from bargein.llm import AzureChat, ChatModelError, HttpLimits, TextDelta
from bargein.speech import SpeechPiece, VoiceStyle
from bargein.voices import AzureVoice

SOUND = b"\x01\x10" * 8_000
ASK = ({"role": "user", "content": "Hi"},)


class Heads:
    """Keeps the heads of the requests that a fake gets."""

    heads: list[str]

    def refusal(self, head: str) -> tuple[int, Mapping[str, Any]] | None:
        """Keep a head."""
        self.heads = [*getattr(self, "heads", []), head]
        return super().refusal(head)  # type: ignore[misc,no-any-return]  # of the fake beside it

    @property
    def line(self) -> str:
        """The first line of the newest request."""
        return self.heads[-1].partition("\r\n")[0]


class Chat(Heads, FakeAzureChat):
    pass


class Transcription(Heads, FakeTranscription):
    pass


class Voice(Heads, FakeOpenAIVoice):
    pass


async def answer_of(chat: AzureChat) -> str:
    return "".join([p.text async for p in chat.stream(ASK) if isinstance(p, TextDelta)])


@pytest.mark.parametrize(
    ("endpoint", "version", "path"),
    [
        ("http://mine.example", None, "/openai/v1/chat/completions"),
        ("http://mine.example/openai/v1/", None, "/openai/v1/chat/completions"),
        (
            "http://mine.example/",
            "2024-10-21",
            "/openai/deployments/my%20gpt/chat/completions?api-version=2024-10-21",
        ),
    ],
)
async def test_a_deployment_has_its_address(autojump_clock, endpoint, version, path):
    """The v1 API names the deployment as the model; a dated version has an address for each."""
    async with Chat().open() as vendor:
        chat = AzureChat(
            "my gpt",
            endpoint=endpoint,
            api_key="s3cret",
            api_version=version,
            transport=vendor.transport(),
        )
        async with chat.open():
            assert await answer_of(chat) == "Two lattes, please wait."
        assert vendor.line == f"POST {path} HTTP/1.1"
        assert vendor.requests[0]["model"] == "my gpt"
        head = vendor.heads[0].lower()
    assert "\r\napi-key: s3cret\r\n" in head
    assert "authorization" not in head
    assert "s3cret" not in repr(chat)


async def test_the_environment_names_the_resource(autojump_clock, monkeypatch):
    """Endpoint and key come from the variables that the vendor's SDK reads."""
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "http://mine.example")
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "s3cret")
    monkeypatch.setenv("OPENAI_API_KEY", "another")
    async with Chat().open() as vendor:
        chat = AzureChat("mine", transport=vendor.transport())
        async with chat.open():
            await answer_of(chat)
    assert "\r\napi-key: s3cret\r\n" in vendor.heads[0].lower()
    assert "another" not in vendor.heads[0]


async def test_a_token_takes_the_place_of_the_key(autojump_clock, monkeypatch):
    """With an `authorization` header, no key is needed or sent."""
    monkeypatch.delenv("AZURE_OPENAI_API_KEY", raising=False)
    async with Chat().open() as vendor:
        chat = AzureChat(
            "mine",
            endpoint="http://mine.example",
            headers={"Authorization": "Bearer token"},
            transport=vendor.transport(),
        )
        async with chat.open():
            assert await answer_of(chat)
    assert "api-key" not in vendor.heads[0].lower()


async def test_a_deployment_that_is_not_there_fails_at_once(autojump_clock):
    """The vendor's words for a wrong address stand in the error."""
    async with Chat().open() as vendor:
        chat = AzureChat(
            "mine",
            endpoint="http://mine.example/elsewhere",
            api_key="s3cret",
            limits=HttpLimits(first_wait_s=0, max_wait_s=0),
            transport=vendor.transport(),
        )
        async with chat.open():
            with pytest.raises(ChatModelError, match="Resource not found") as caught:
                await answer_of(chat)
    assert caught.value.status == 404
    assert len(vendor.heads) == 1


async def test_a_deployment_of_whisper_hears(autojump_clock):
    """An utterance goes to the deployment, with the key in Azure's header."""
    async with Transcription().open() as vendor:
        ear = AzureTranscription(
            "whisper",
            endpoint="http://mine.example",
            api_key="s3cret",
            api_version="2024-10-21",
            transport=vendor.transport(),
        )
        async with ear.open():
            assert (await ear.transcribe(SOUND)).text == "a large latte please"
    path = "/openai/deployments/whisper/audio/transcriptions?api-version=2024-10-21"
    assert vendor.line == f"POST {path} HTTP/1.1"
    assert "\r\napi-key: s3cret\r\n" in vendor.heads[0].lower()


async def test_a_deployment_of_a_voice_speaks(autojump_clock):
    """A text goes to the deployment, and its sound comes back."""
    async with Voice().open() as vendor:
        voice = AzureVoice(
            "tts",
            "coral",
            endpoint="http://mine.example",
            api_key="s3cret",
            transport=vendor.transport(),
        )
        async with voice.open(), voice.open_context(VoiceStyle()) as context:
            await context.send("Hello.")
            await context.end()
            assert isinstance(await context.receive(), SpeechPiece)
    assert vendor.line == "POST /openai/v1/audio/speech HTTP/1.1"
    assert (vendor.requests[0]["model"], vendor.requests[0]["voice"]) == ("tts", "coral")
    assert "\r\napi-key: s3cret\r\n" in vendor.heads[0].lower()


@pytest.mark.parametrize("kind", [AzureChat, AzureTranscription, AzureVoice])
def test_what_is_missing_is_named(monkeypatch, kind):
    """Without a deployment, an endpoint or a key, the class says which and what to do."""
    for name in ("AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ValueError, match=f"{kind.__name__}.* names no deployment"):
        kind("", endpoint="http://mine.example", api_key="k")
    with pytest.raises(ValueError, match="AZURE_OPENAI_ENDPOINT"):
        kind("mine", api_key="k")
    with pytest.raises(ValueError, match="AZURE_OPENAI_API_KEY"):
        kind("mine", endpoint="http://mine.example")
    with pytest.raises(ValueError, match="endpoint="):
        kind("mine", endpoint="mine.openai.azure.com", api_key="k")
