"""What a person takes along of a call: the transcript, copied or as a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Open = Callable[..., Any]

NAME = """
async ([agent, ...when]) => {
  const { fileName } = await import(new URL("page/save-transcript.js", document.baseURI));
  return fileName(agent, new Date(...when));
}
"""
WORDS = """\
Agent: Hi! This is Café Lumen. What can I get you?

You: What kinds of coffee do you have?

Agent: We have espresso, cappuccino, flat white and filter coffee [cut at 2.72 s; never heard: , \
and today there is also a very good cinnamon roll which I can warm up for you if you like.]

You: Just a flat white, please.

(The agent uses check_stock)
"""
LAST = "Agent: A flat white, gladly. Shall I"
REST = "I make it with oat milk or with ordinary milk?"


def download(call: Any, place: str) -> tuple[str, str]:
    """Presses Download; returns the file's name and its text."""
    with call.page.expect_download() as download:
        call.page.click(f"{place} .download")
    return download.value.suggested_filename, Path(download.value.path()).read_text("utf-8")


def test_a_transcript_is_downloaded(visit: Open) -> None:
    """While the call goes on it says what is still to be heard, after it what never was."""
    call = visit("styles", "")
    call.start()
    call.wait("document.querySelector('#state').dataset.state === 'speaking'")
    call.page.click("#settings-toggle")
    name, text = download(call, "#settings")
    assert name.startswith("cafe-lumen-")
    assert text.startswith("Café Lumen, ")
    assert WORDS in text
    assert f"{LAST} [still to be heard: {REST[2:]}]" in text
    call.page.click("#hangup")
    name, text = download(call, "#transcript-actions")
    assert WORDS in text
    assert f"{LAST} [call ended; never heard: {REST[2:]}]" in text


def test_a_transcript_is_copied(visit: Open) -> None:
    """The key says that it is done, and the clipboard has the words."""
    call = visit("styles", "", permissions=["clipboard-read", "clipboard-write", "microphone"])
    call.start()
    call.wait("document.querySelector('#state').dataset.state === 'speaking'")
    call.page.click("#hangup")
    call.page.click("#transcript-actions .copy")
    call.wait("document.querySelector('#transcript-actions .copy').textContent === 'Copied'")
    assert WORDS in call.page.evaluate("navigator.clipboard.readText()")
    call.wait("document.querySelector('#transcript-actions .copy').textContent === 'Copy'")


def test_there_is_nothing_to_keep_of_an_empty_call(visit: Open) -> None:
    """Without a word said, nothing is offered to be kept."""
    call = visit("echo", "?mode=text")
    assert call.page.is_hidden("#transcript-actions")
    call.start()
    assert call.page.is_hidden("#transcript-actions")
    call.page.click("#hangup")
    call.wait("document.body.dataset.phase === 'ended'")
    assert call.page.is_hidden("#transcript-actions")


@pytest.mark.parametrize(
    ("agent", "name"),
    [
        ("Café Lumen", "cafe-lumen"),
        ("../../etc", "etc"),
        ("予約 係", "予約-係"),
        ("???", "call"),
    ],
)
def test_names_of_files(bare_page: Any, agent: str, name: str) -> None:
    """A file is named after agent and minute, by letters that every file system takes."""
    told = bare_page.evaluate(NAME, [agent, 2026, 0, 5, 9, 7])
    assert told == f"{name}-2026-01-05-0907.txt"
