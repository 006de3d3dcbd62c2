"""Questions whether a tool may run, against the real server."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

Meet = Callable[..., Any]

FOCUS = "document.activeElement.id"


def ask(call: Any, scene: str = "deposit") -> None:
    """Has the agent ask for permission."""
    call.type(f"Pay the {scene}")
    call.page.locator("#text").blur()
    call.wait("!document.querySelector('#question').hidden")


def notes(call: Any) -> list[str]:
    """The transcript's lines about the call."""
    lines: list[str] = call.page.locator(".note").all_inner_texts()
    return lines


def answers(call: Any) -> list[dict[str, Any]]:
    """The answers that the page has sent."""
    sent = [json.loads(each) for each in call.sent if isinstance(each, str)]
    return [message for message in sent if message["type"] == "permission"]


def test_allow(meet: Meet) -> None:
    """The question names the tool and what it would be called with; allowed, the tool runs."""
    call = meet("?mode=text")
    ask(call)
    page = call.page
    assert page.inner_text("#question-title") == "May the agent use pay_deposit?"
    shown = page.locator("#question-with > *").all_inner_texts()
    assert shown == ["amount", "20.00 EUR", "to", "Restaurant Lumen", "note", '""']
    assert page.evaluate(FOCUS) == "question"
    page.keyboard.press("Enter")  # meant for something else: it allows nothing
    assert page.is_visible("#question")
    page.click("#allow")
    call.wait("document.body.innerText.includes('20.00 EUR paid to Restaurant Lumen')")
    assert "You allowed pay_deposit." in notes(call)
    assert page.is_hidden("#question")
    [answer] = answers(call)
    assert (answer["allow"], answer["remember"]) == (True, False)


def test_deny_by_keyboard(meet: Meet) -> None:
    """From the question Tab leads to its keys, nothing holds the focus, and no is no."""
    call = meet("?mode=text")
    ask(call)
    page = call.page
    page.keyboard.press("Tab")
    assert page.evaluate(FOCUS) == "remember"
    page.keyboard.press("Tab")
    assert page.evaluate(FOCUS) == "deny"
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert not page.evaluate("document.querySelector('#question').contains(document.activeElement)")
    page.focus("#deny")
    page.keyboard.press("Enter")
    call.wait("[...document.querySelectorAll('.note')].at(-1).innerText.includes('did not allow')")
    assert page.is_hidden("#question")
    assert page.evaluate("document.activeElement !== document.body")
    assert [answer["allow"] for answer in answers(call)] == [False]


def test_remember(meet: Meet) -> None:
    """A remembered answer holds for the next call of the tool: nobody is asked."""
    call = meet("?mode=text")
    ask(call)
    call.page.check("#remember")
    call.page.click("#allow")
    call.wait("document.querySelector('#state').dataset.state === 'idle'")
    assert "You allowed pay_deposit. It is remembered for this call." in notes(call)
    call.type("Pay the deposit")
    call.wait("document.querySelectorAll('.agent').length === 2")
    assert len(answers(call)) == 1
    assert len(call.log("message")) > 0
    asked = [
        e for e in call.log("message") if e["message"].get("name") == "agent.permission_requested"
    ]
    assert len(asked) == 1


@pytest.mark.parametrize("by", ["cancel", "words"])
def test_withdrawn(meet: Meet, by: str) -> None:
    """Interrupted, the question goes away with a word, and no answer is sent."""
    call = meet("?mode=text")
    ask(call)
    if by == "cancel":
        call.page.click("#cancel")
    else:
        call.type("Never mind")
    call.wait("document.querySelector('#question').hidden")
    assert "The question about pay_deposit was withdrawn; it did not run." in notes(call)
    assert answers(call) == []
    if by == "words":
        call.wait("document.body.innerText.includes('All right: Never mind')")


def test_several_questions_come_one_by_one(meet: Meet) -> None:
    """Two tools that ask at once are asked about one after the other, each by its arguments."""
    call = meet("?mode=text")
    ask(call, "two deposits")
    page = call.page
    call.wait("document.querySelector('#question-more').textContent === '1 of 2 questions'")
    first = page.inner_text("#question-with")
    page.check("#remember")
    page.uncheck("#remember")
    page.click("#deny")
    call.wait("document.querySelector('#question-more').textContent === ''")
    second = page.inner_text("#question-with")
    assert first != second
    assert not page.is_checked("#remember")
    page.click("#deny")
    call.wait("document.querySelector('#question').hidden")
    call.wait("document.querySelector('#state').dataset.state === 'idle'")
    assert notes(call).count("You did not allow pay_deposit.") == 2
    assert len({answer["id"] for answer in answers(call)}) == 2


def test_who_types_is_not_taken_away(meet: Meet) -> None:
    """The question appears, and the words go on into the box where they were begun."""
    call = meet("?mode=text")
    call.type("Pay the deposit")
    call.page.focus("#text")
    call.page.keyboard.type("and also")
    call.wait("!document.querySelector('#question').hidden")
    call.page.keyboard.type(" a tip")
    assert call.page.evaluate(FOCUS) == "text"
    assert call.page.input_value("#text") == "and also a tip"


def test_arguments_are_text(meet: Meet) -> None:
    """What a tool is called with is shown as it is, never as markup."""
    call = meet("?mode=text", begin=False)
    shown = call.page.evaluate(
        """async () => {
          const { Permissions } = await import(new URL("page/permissions.js", document.baseURI));
          const permissions = new Permissions({ answer() {}, note() {} });
          const given = { "<b>": "<img src=x onerror=alert(1)>", deep: { list: [1, null] } };
          permissions.ask({ id: "q", name: "<i>tool</i>", arguments: given });
          const box = document.querySelector("#question");
          return [box.querySelector("#question-tool").textContent,
            box.querySelectorAll("img, b, i").length,
            [...box.querySelectorAll("dd")].map((each) => each.textContent)];
        }"""
    )
    assert shown == [
        "<i>tool</i>",
        0,
        ["<img src=x onerror=alert(1)>", '{"list":[1,null]}'],
    ]
