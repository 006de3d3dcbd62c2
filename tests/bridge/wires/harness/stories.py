"""What agents tell over the fakes of platforms, and what of it is heard."""

import re

import trio

from bargein.events import AgentResponse, UserStoppedSpeaking
from bargein.testing import open_harness

STORY = (
    "Once upon a time, there was a fox. It lived in a wood, with a hen. "
    "Every evening the fox asked the hen for dinner, and every evening the hen declined."
)
STORIES = {
    "English": STORY,
    "Chinese": "从前有一只狐狸。它和一只母鸡住在森林里。每天晚上狐狸都请母鸡吃饭、母鸡都拒绝。",
    "Arabic": "كان يا ما كان ثعلب يعيش في غابة مع دجاجة وكل مساء كان يدعوها إلى العشاء",
    "emoji": "Once 🦊 upon a time 👨‍👩‍👧, there was 🏳️‍🌈 a fox. It lived 🌲, with a hen 🐔.",
}


def teller(story=STORY):
    """Greets, and tells a story to whoever speaks, word by word."""

    async def answer(call):
        async def tell(message):
            for word in re.findall(r"\S+\s*", story):
                yield AgentResponse(content=word)
                await trio.sleep(0.01)

        call.converse(type("Teller", (), {"generate": staticmethod(tell)})())
        call.say("Good evening. What can I tell you?")

    return answer


def acting(act):
    """Does something at the end of the caller's first turn."""

    async def answer(call):
        call.bridge(name="clerk").on(UserStoppedSpeaking).stream(act).broadcast()

    return answer


def squeezed(text):
    """Return what of a text is heard: no white space, no emoji, no punctuation."""
    return "".join(char for char in text if char.isalnum())


def entries(call):
    return [one for one in call.history.entries if one.role == "agent"]


def random_barge_ins(make_harness, moments, story):
    """Interrupt the story at each moment; nothing that was heard may lack, and nothing more be."""

    async def main():
        async with open_harness(teller(story), make_harness()) as harness:
            for moment in moments:
                await harness.says("Tell me a story.")
                await trio.sleep(moment)
            await trio.sleep(40)
            told = "".join(one.heard for one in entries(harness.call))
            assert squeezed(told) == squeezed(harness.line.heard)

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
