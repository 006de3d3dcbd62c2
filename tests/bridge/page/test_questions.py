"""What a tool asks in the midst of its work, against the real server."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

Meet = Callable[..., Any]

FOCUS = "document.activeElement.id"


def ask(meet: Meet) -> Any:
    """A call in which a tool has asked."""
    call = meet("?mode=text")
    call.type("Let me choose")
    call.page.locator("#text").blur()
    call.wait("!document.querySelector('#ask').hidden")
    return call


def notes(call: Any) -> list[str]:
    """The transcript's lines about the call."""
    lines: list[str] = call.page.locator(".note").all_inner_texts()
    return lines


def answers(call: Any) -> list[str]:
    """The answers that the page has sent as such."""
    sent = [json.loads(each) for each in call.sent if isinstance(each, str)]
    return [message["text"] for message in sent if message["type"] == "answer"]


def test_a_key_of_the_choices_answers(meet: Meet) -> None:
    """The question stands with a key for each choice; the one that is pressed is the answer."""
    call = ask(meet)
    page = call.page
    assert page.inner_text("#ask-text") == "Which table would you like?"
    assert page.locator("#ask-choices button").all_inner_texts() == ["By the window", "Outside"]
    assert page.evaluate(FOCUS) == "ask"
    page.keyboard.press("Enter")  # meant for something else: it chooses nothing
    assert page.is_visible("#ask")
    page.click("#ask-choices button:has-text('Outside')")
    call.wait("document.body.innerText.includes('All right: Outside')")
    assert answers(call) == ["Outside"]
    assert page.is_hidden("#ask")
    assert notes(call).count("The question was withdrawn.") == 0


def test_what_is_typed_answers(meet: Meet) -> None:
    """With a question open the box of words answers it, and afterwards it talks as usual."""
    call = ask(meet)
    call.type("the first one")
    call.wait("document.body.innerText.includes('All right: the first one')")
    assert answers(call) == ["the first one"]
    call.type("Thanks")
    call.wait("document.body.innerText.includes('All right: Thanks')")
    assert answers(call) == ["the first one"]


def test_never_mind(meet: Meet) -> None:
    """The key withdraws the question, and the transcript says so."""
    call = ask(meet)
    call.page.click("#ask-nevermind")
    call.wait("document.body.innerText.includes('The question was withdrawn.')")
    assert call.page.is_hidden("#ask")
    assert answers(call) == ["Never mind"]


def test_a_cancel_takes_the_question_away(meet: Meet) -> None:
    """Nobody waits for an answer to work that was stopped."""
    call = ask(meet)
    call.page.click("#cancel")
    call.wait("document.querySelector('#ask').hidden")
    assert "The question was withdrawn." in notes(call)
    assert answers(call) == []


def test_choices_are_text(meet: Meet) -> None:
    """What a tool asks is shown as it is, never as markup."""
    call = meet("?mode=text", begin=False)
    shown = call.page.evaluate(
        """async () => {
          const { Questions } = await import(new URL("page/questions.js", document.baseURI));
          const questions = new Questions({ answer() {}, note() {} });
          questions.ask({ id: "q", text: "<i>Which?</i>", choices: ["<img src=x>", "b"] });
          const box = document.querySelector("#ask");
          return [box.querySelector("h2").textContent, box.querySelectorAll("img, i").length,
            [...box.querySelectorAll("#ask-choices button")].map((each) => each.textContent)];
        }"""
    )
    assert shown == ["<i>Which?</i>", 0, ["<img src=x>", "b"]]
