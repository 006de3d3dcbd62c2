"""A storyteller on the telephone: long speech, and keys that turn its pages.

`1` tells the next chapter, `*` tells this one again, `2` pauses and resumes, `0` ends the call.
Callers can talk over the story; "go on" continues with the first word they have not heard.  To try
it, run `python -m bargein talk examples/story.py:app`.
"""

import re
from collections.abc import AsyncIterator
from typing import Any

from bargein import App, Call, ConversationContext, Message, ReasoningNode
from bargein.events import (
    AgentResponse,
    DTMFInput,
    EndCall,
    UserStartedSpeaking,
    UserStoppedSpeaking,
)

CHAPTERS = (
    "Chapter one. A lighthouse keeper counted ships, because nobody else did. Every evening she "
    "wrote the number into a book with a blue cover. One evening the number was one too high.",
    "Chapter two. She counted again, and the ship that was too many blinked back at her. It knew "
    "the rhythm of her lamp by heart. So she did what keepers never do, and turned the lamp off.",
    "Chapter three. In the dark the ship came close, and it was a whale with a lantern in its "
    "mouth. It had only wanted to know who was counting. From then on they took turns.",
)
MENU = "Press one for the next chapter, star to hear this one again, two to pause, zero to leave."


class Storyteller(ReasoningNode):
    """Tells chapters, and knows how much of each was heard."""

    name = "storyteller"

    def __init__(self) -> None:
        super().__init__()
        self.chapter = -1

    async def next_chapter(self, message: Message) -> AsyncIterator[Any]:
        self.chapter += 1
        if self.chapter < len(CHAPTERS):
            yield AgentResponse(content=CHAPTERS[self.chapter])
        else:
            yield AgentResponse(content="That was the whole story. Good night!")
            yield EndCall()

    async def once_more(self, message: Message) -> AsyncIterator[Any]:
        self.chapter = max(self.chapter, 0)
        yield AgentResponse(content=CHAPTERS[min(self.chapter, len(CHAPTERS) - 1)])

    async def process_context(self, context: ConversationContext) -> AsyncIterator[Any]:
        """Answer what was said in the middle of the story."""
        if re.search(r"go on|continue|yes", context.last_user_text, re.I):
            yield AgentResponse(content=self.unheard() or MENU)
        else:
            yield AgentResponse(content="Say go on, and I do. " + MENU)

    def unheard(self) -> str:
        """Return what is left of the chapter, from the first word that was not heard."""
        told = CHAPTERS[self.chapter] if 0 <= self.chapter < len(CHAPTERS) else ""
        cuts = [cut for cut in self.interruptions if cut.generated and told.endswith(cut.generated)]
        return cuts[-1].generated[len(cuts[-1].heard) :].lstrip() if cuts else ""


async def answer(call: Call) -> None:
    """Answer a call."""
    teller = Storyteller()
    bridge = call.bridge(teller)
    talk, turn_page = UserStartedSpeaking, DTMFInput

    def pause(message: Message) -> None:
        if call.current_state == "paused":
            call.handle.resume()
        else:
            call.handle.pause()

    def is_page(message: Message) -> bool:
        return message.event.button in "1*0"

    for key, tell in (("1", teller.next_chapter), ("*", teller.once_more)):
        page = bridge.on(DTMFInput, button=key).interrupt_on(talk)
        page.interrupt_on(turn_page, condition=is_page).stream(tell).broadcast()
    said = bridge.on(UserStoppedSpeaking).interrupt_on(talk)
    said.interrupt_on(turn_page, condition=is_page).stream(teller.generate).broadcast()
    bridge.on(DTMFInput, button="2").map(pause)
    bridge.on(DTMFInput, button="0").map(lambda: EndCall()).broadcast()
    if call.resumed is None:  # else another process has greeted
        call.say("Good evening! " + MENU)


app = App(answer, name="the storyteller")
