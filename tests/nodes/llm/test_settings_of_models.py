"""A model's constructor raises for wrong settings, and its errors never show a key."""

from __future__ import annotations

import re
from typing import Any

import pytest

from bargein.llm import AnthropicChat, OpenAIChat

URL = "http://127.0.0.1:9/v1"
KINDS: Any = pytest.mark.parametrize("kind", [OpenAIChat, AnthropicChat])


@KINDS
@pytest.mark.parametrize("key", ["sk-sécret", "sk-“secret”", "sk-sec\nret", "sk-sec\x00ret"])
def test_a_key_that_no_header_can_hold_is_refused(kind: Any, key: str) -> None:
    """The error names the argument and its variable, and shows nothing of the key."""
    with pytest.raises(ValueError, match=r"api_key=.*_API_KEY") as caught:
        kind("m", base_url=URL, api_key=key)
    assert "sec" not in str(caught.value)


@KINDS
def test_blanks_around_a_key_are_left_out(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The line end of a key that was read from a file is ignored."""
    variable = "OPENAI_API_KEY" if kind is OpenAIChat else "ANTHROPIC_API_KEY"
    monkeypatch.setenv(variable, " sk-secret\n")
    assert "sk-secret" not in repr(vars(kind("m", base_url=URL)))


@KINDS
@pytest.mark.parametrize("url", ["localhost:1234/v1", "ftp://x/v1", "http://", "http://[::1"])
def test_a_base_url_that_is_none_is_refused(kind: Any, url: str) -> None:
    """The error shows it, and how one looks."""
    with pytest.raises(ValueError, match=re.escape(repr(url)) + r".*http://localhost:8000/v1"):
        kind("m", base_url=url, api_key="k")


@KINDS
@pytest.mark.parametrize(
    ("setting", "value", "told"),
    [
        ("options", {"stop": {1, 2}}, "options= has a value that is no JSON"),
        ("options", {"temperature": float("nan")}, "options= has a value that is no JSON"),
        ("options", "temperature=1", "options= is a mapping.*'temperature=1'"),
        ("headers", {"x-user": 3}, "headers=.*'x-user'"),
        ("headers", {"x-user": "é"}, "headers=.*'x-user'"),
        ("headers", {"x-user": "a\nb: c"}, "headers=.*'x-user'"),
        ("headers", {"x\n": "1"}, "headers="),
    ],
)
def test_a_setting_that_no_request_can_carry_is_refused(
    kind: Any, setting: str, value: object, told: str
) -> None:
    """The error names the setting when the model is made, not when a caller waits."""
    with pytest.raises((TypeError, ValueError), match=told):
        kind("m", base_url=URL, api_key="k", **{setting: value})
