"""The language of an app: what bargein says in it, and how callers answer its questions."""

from __future__ import annotations

import pytest
import trio

from bargein import App, Call, ChatNode
from bargein.events import QuestionAsked, UserStoppedSpeaking, UserTranscriptionReceived
from bargein.testing import ScriptedModel, calls, open_call
from bargein.tools import ToolContext, tool

CHOSEN: list[str | None] = []


@tool
async def account(context: ToolContext) -> str:
    """Ask which account."""
    answer = await context.ask("Welches Konto?", choices=["Girokonto", "Sparkonto"])
    CHOSEN.append(answer.choice)
    return "ok"


async def bank(call: Call) -> None:
    call.converse(ChatNode(ScriptedModel(calls("account"), "Fünf Euro."), tools=[account]))


async def test_questions_are_answered_in_the_language_of_the_app(autojump_clock: object) -> None:
    """Nothing has to be set in the call."""
    CHOSEN.clear()
    async with open_call(App(bank, language="de"), audio=False) as caller:
        caller.publish(UserTranscriptionReceived(content="Wie viel habe ich?"))
        caller.publish(UserStoppedSpeaking())
        await caller.receives(QuestionAsked)
        await trio.sleep(1)
        await caller.says("Das Zweite, bitte.", takes_s=0)
        await caller.quiet()
    assert CHOSEN == ["Sparkonto"]


async def nothing(call: Call) -> None:
    call.converse(ChatNode(ScriptedModel([], [])))


@pytest.mark.parametrize(("tag", "begins"), [("en", "Sorry,"), ("de", "Entschuldigung,")])
async def test_an_apology_is_in_the_language_of_the_app(
    autojump_clock: object, tag: str, begins: str
) -> None:
    """An answer of a text call that ends without a word is apologised for in it."""
    async with open_call(App(nothing, language=tag), audio=False, expect_errors=True) as caller:
        await caller.says("Hallo", takes_s=0)
        await caller.quiet()
        assert caller.heard.startswith(begins)


def test_what_was_not_understood_is_said_in_the_language_of_the_app() -> None:
    """Texts of one's own come first, and none at all is possible."""
    assert App(bank, language="fr").not_understood[0] == "Pardon, je n'ai pas compris."
    assert App(bank, language="fr", not_understood="Quoi ?").not_understood == ("Quoi ?",) * 2
    assert App(bank, language="fr", not_understood=None).not_understood == ()


@pytest.mark.parametrize("tag", ["ru", "xx", ""])
def test_a_language_without_texts_is_an_error(tag: str) -> None:
    """When the app is made; the error has those that there are."""
    with pytest.raises(ValueError, match=rf"App\(language=\) knows de, en, .*, not '{tag}'"):
        App(bank, language=tag)
