"""A voice assistant: a language model, two tools, ears and a voice.

`python -m bargein talk examples/assistant.py:app` opens it in the browser.  With OPENAI_API_KEY
set, or OPENAI_BASE_URL for a server of your own, the model OPENAI_MODEL answers; without them
`stand_in` does, offline.  Ask "where is parcel 417?", and keep talking.
"""

import sys
from pathlib import Path

import trio

sys.path.insert(0, str(Path(__file__).parent))  # the package `stand_in` is beside this file

from stand_in import model_named_outside

from bargein import App, Call, ChatNode
from bargein.llm import ChatModel
from bargein.speech import LocalSpeech
from bargein.tools import tool

PROMPT = "You speak for a parcel service. Answer in one short sentence, as people say it aloud."


@tool(read_only=True)
async def opening_hours() -> str:
    """Say when the counter is open."""
    return "We are open from nine to six, and until noon on Saturdays."


@tool(read_only=True, policy="detach")  # a caller who talks meanwhile gets the result later
async def find_parcel(number: str) -> str:
    """Find out where a parcel is.

    Args:
        number: The number of the parcel, in digits.
    """
    await trio.sleep(4)  # as slow as the real service
    return f"Parcel {number} is in Lyon, and arrives tomorrow."


async def answer(call: Call, model: ChatModel | None = None) -> None:
    """Answer a call."""
    call.converse(ChatNode(model or MODEL, PROMPT, tools=[opening_hours, find_parcel]))
    call.say("Hello! Where is your parcel, or when are we open: what may I tell you?")


MODEL = model_named_outside()
app = App(answer, speech=LocalSpeech(), name="the assistant")
