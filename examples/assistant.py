"""A voice assistant: a language model, two tools, ears and a voice.

`python -m bridge talk examples/assistant.py:app` opens it in the browser.  With OPENAI_API_KEY set,
or OPENAI_BASE_URL for a server of your own, the model OPENAI_MODEL answers; without them a few
lines stand for a model, so that it runs offline.  Ask "where is parcel 417?", and go on talking.
"""

import os
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import trio

from bridge import App, Call
from nodes import ChatNode
from nodes.llm import AnswerPiece, ChatModel, OpenAIChat, TextDelta, ToolCallRequest
from nodes.speech import LocalSpeech
from nodes.tools import tool

PROMPT = "You speak for a parcel service. Answer in one short sentence, as people say it aloud."


@tool(read_only=True)
async def opening_hours() -> str:
    """Say when the counter is open."""
    return "We are open from nine to six, and until noon on Saturdays."


@tool(read_only=True, policy="detach")  # who talks meanwhile hears of it later
async def find_parcel(number: str) -> str:
    """Find out where a parcel is.

    Args:
        number: The number of the parcel, in digits.
    """
    await trio.sleep(4)  # as slow as the service that knows it
    return f"Parcel {number} is in Lyon, and arrives tomorrow."


async def answer(call: Call, model: ChatModel | None = None) -> None:
    """Answer a call."""
    call.converse(ChatNode(model or MODEL, PROMPT, tools=[opening_hours, find_parcel]))
    call.say("Hello! Where is your parcel, or when are we open: what may I tell you?")


class StandIn:
    """Stands for a language model where none is named: knows when to call which tool."""

    async def stream(
        self, messages: Sequence[Mapping[str, Any]], *, tools: Sequence[Mapping[str, Any]] = ()
    ) -> AsyncIterator[AnswerPiece]:
        last, call_id = str(messages[-1]["content"]), f"call_{len(messages)}"
        if found := re.search(r"Parcel \d+ is.*", last):  # a result, now or from the background
            yield TextDelta(found[0])
        elif messages[-1]["role"] == "tool":
            yield TextDelta(last)
        elif number := re.search(r"\d+", last):
            yield TextDelta("One moment, I look for it. ")
            yield ToolCallRequest(call_id, "find_parcel", {"number": number[0]}, "")
        elif re.search(r"open|hours|close", last, re.I):
            yield ToolCallRequest(call_id, "opening_hours", {}, "")
        else:
            yield TextDelta("I can find a parcel by its number, or say when we are open.")


def model_named_outside() -> ChatModel:
    """Return the model that the environment names, or what stands for one."""
    if os.environ.get("OPENAI_API_KEY") or os.environ.get("OPENAI_BASE_URL"):
        return OpenAIChat(os.environ.get("OPENAI_MODEL", "gpt-4o-mini"))
    return StandIn()


MODEL = model_named_outside()
app = App(answer, speech=LocalSpeech(), name="the assistant")
