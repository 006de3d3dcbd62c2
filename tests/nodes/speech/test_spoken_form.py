"""What a voice says of a text: its words, without marks, thoughts and tokens."""

from contextlib import asynccontextmanager

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from bargein import App, ChatNode
from bargein.events import AgentResponse, UserStartedSpeaking, WordTiming
from bargein.fallback import Fallback
from bargein.speech import (
    AsWritten,
    Fillers,
    PlainWords,
    Speech,
    SpeechPiece,
    SpokenForm,
    SpokenPart,
    TextSaid,
)
from bargein.testing import ScriptedModel, calls, open_call
from bargein.tools import tool

SAID = {
    "**Two lattes** and *one* __tea__.": "Two lattes and one tea.",
    "***Wow*** ~~old~~ ==new== un**even**": "Wow old new uneven",
    "**open and never closed": "open and never closed",
    "# Menu\n- latte\n* **tea**\n- [x] cake\n> quote\n## End ##\n": (
        "Menu\nlatte\ntea\ncake\nquote\nEnd \n"
    ),
    "Say `order now` please, don`t.": "Say order now please, don't.",
    "See [our page](https://x.com/a?b=1) or ![a cat](http://x/y.png).": "See our page or a cat.",
    "[a][b] [docs](/d 'Docs'), [1](see this)": "a docs, 1(see this)",
    "Paris is big.[2] Yes[^3]. So【4:0†source】 it is.": "Paris is big. Yes. So it is.",
    "<https://example.com/a_b>, <me@x.com>": "https://example.com/a_b, me@x.com",
    "All done 😀🎉, 👨‍👩‍👧 1️⃣ :) :smile: 🇩🇪": "All done ,  1   ",
    "Prices\n---\n| latte | tea |\n|---|:-:|\n| 3 | 2 |\n": "Prices\n\nlatte, tea\n\n3, 2\n",
    "Run:\n```python\nprint('hi')\n```\nThen go.": "Run:\n\nThen go.",
    "```markdown\n# Hello\n```\nBye": "\nHello\n\nBye",
    '<b>Bold</b> &amp; <i style="x">it</i><br/>new<!-- no --> AT&T': "Bold & it\nnew AT&T",
    "<script>alert('x < y')</script>Hi": "Hi",
    '<speak>Wait <break time="9s"/>now</speak>': "Wait now",
    "&lt;break/&gt; me": " break/  me",
    '{"name": "look", "arguments": {"a": "}"}}\nDone.': "\nDone.",
    "I am [[h@l'oU]] your [[[friend]]].": "I am h@l'oU your friend.",
    "<think>hm, **no**</think>What size?": "What size?",
    "<THINKING>hm</Thinking>\n\nWhat size?": "What size?",
    "◁think▷hm◁/think▷Yes. [THINK]hm[/THINK]": "Yes. ",
    "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Hi.": (
        "Hi."
    ),
    '<tool_call>{"name": "look"}</tool_call>Done.<|im_end|>': "Done.",
    'Sure.[TOOL_CALLS][{"name": "look"}]': "Sure.",
    "<function=look>{}</function>Hi.</s>": "Hi.",
    "<|im_start|>assistant\nHello.<|im_end|><|im_start|>user\nYes": "Hello.",
}
KEPT = (
    "Two times 3 * 4 is 12, 5*3=15 and 2**3.",
    "snake_case, a_b@example.com and __x",
    "https://www.example.com/a_b_?b=1,2&c=3.5*4 now",
    "a < b and 5 > 3, C# and No. 5 costs $5.",
    "1. latte\n2) tea\n-5 degrees, ~5",
    "10:30, 3/4, 98.6 and #5",
    "नमस्ते क्‍ष, 你好。Grüße",
)


def said(text, size=10_000):
    """What is said of a text that comes in pieces of a size."""
    form = PlainWords()
    parts = [p for at in range(0, len(text), size) for p in form.feed(text[at : at + size])]
    parts += form.flush()
    assert "".join(part.written for part in parts) == text
    return "".join(part.spoken for part in parts)


@pytest.mark.parametrize("text", SAID)
def test_marks_are_not_said(text) -> None:
    """A voice gets the words of a text, and neither marks nor what is not for the caller."""
    assert said(text) == SAID[text]


@pytest.mark.parametrize("text", KEPT)
def test_what_may_be_meant_is_said(text) -> None:
    """A sign that is no mark is left to the voice."""
    assert said(text) == text.replace("__", "")


@pytest.mark.parametrize("text", [*SAID, *KEPT])
def test_it_does_not_matter_where_a_text_is_split(text) -> None:
    """The same is said of a text however it arrives."""
    assert {said(text, size) for size in (1, 2, 3, 5, 8)} == {said(text)}


MARKS = st.sampled_from(
    (
        *("*", "_", "`", "[", "](", ")", "<", "/>", "<b>", "</think>", "<think>", "|", "\n", "#"),
        *("- ", "a", " ", "1", ".", "```", "{", '"', "}", ":", "&amp;", "😀", "\u200d", "\\"),
        *("!", "<!--", "https://x.y", "~", "=", "<|", "|>", "[THINK]", "【1", "】", "\ud83d", "</"),
        "<script>",
    )
)


@given(st.lists(MARKS, max_size=60), st.integers(1, 7))
def test_every_part_of_a_text_is_kept_and_nothing_can_steer_a_voice(bits, size) -> None:
    """The written parts are the text, and what is said has no tag and no brackets left."""
    text = "".join(bits)
    words = said(text, size)
    assert "[" not in words
    assert "<b" not in words
    assert "<think" not in words
    assert words == said(text)


@pytest.mark.parametrize(
    "text",
    ["#  Title", "a\n##\t b", "```\ncode\n```  \nafter", "-  [x]  done", ">  > quoted", "|  a  |"],
)
def test_blanks_behind_a_mark_are_left_out_however_they_arrive(text) -> None:
    """What is said does not depend on where the text was cut."""
    for size in range(1, len(text)):
        assert said(text, size) == said(text)


def test_words_do_not_wait_for_a_mark_that_may_not_come() -> None:
    """Each word comes at once behind an opening mark, whether or not it is ever closed."""
    for mark in ("**", "*", "`", "[", "~~", "# ", "> ", "<b>", "==", "- "):
        form = PlainWords()
        parts = [*form.feed(mark), *form.feed("Hello there. N")]
        assert "".join(part.spoken for part in parts) == "Hello there. N", mark


class Voice:
    """A voice that says ten characters a second, with the times of its words."""

    sample_rate_hz = 16_000

    def __init__(self):
        self.texts = []

    async def synthesize(self, text):
        self.texts.append(text)
        words, at = [], 0
        for word in text.split():
            begin = text.index(word, at)
            at = begin + len(word)
            words.append(WordTiming(word.strip(".,"), begin / 10, at / 10))
        yield SpeechPiece(bytes(3200 * len(text)), tuple(words))


class StreamingVoice(Voice):
    """The same, with contexts."""

    times = "words"
    synthesize = None

    @asynccontextmanager
    async def open_context(self, style):
        yield StreamedVoice(self)


class StreamedVoice:
    """A context of it."""

    def __init__(self, voice):
        self.voice = voice
        self.send_facts, self.facts = trio.open_memory_channel(100)

    async def send(self, text):
        self.voice.texts.append(text)
        await self.send_facts.send(SpeechPiece(bytes(3200 * len(text))))

    async def flush(self):
        await self.send_facts.send(TextSaid())

    async def end(self):
        self.send_facts.close()

    async def receive(self):
        try:
            return await self.facts.receive()
        except trio.EndOfChannel:
            return None


@asynccontextmanager
async def speaking(voice, *answers, tools=(), **settings):
    """A caller whose agent answers by a script."""
    model = ScriptedModel(*answers)

    async def answer(call):
        call.converse(ChatNode(model, "p", tools=list(tools)))

    settings.setdefault("fillers", None)
    app = App(answer, speech=Speech(None, voice, **settings))
    async with open_call(app, own_speech=True) as caller:
        yield caller


@pytest.mark.parametrize("kind", [Voice, StreamingVoice, lambda: Fallback(Voice(), Voice())])
async def test_the_screen_and_the_history_keep_the_marks(autojump_clock, kind) -> None:
    """Voices of every kind get words, and what was heard is the written text."""
    voice = kind()
    text = "**Two** lattes 😀, see [our page](https://x.com/lattes). And *one* tea."
    async with speaking(voice, text) as caller:
        shown = caller.events(AgentResponse)
        await caller.says("hello", takes_s=0.5)
        await caller.quiet()
        shown = caller.events(AgentResponse)
        assert "".join(each.content for each in shown) == text
        assert caller.heard == text
    if isinstance(voice, Voice):
        got = " ".join(" ".join(voice.texts).split())
        assert got == "Two lattes , see our page. And one tea."


async def test_a_cut_is_found_in_the_written_text(autojump_clock) -> None:
    """Of a text with marks, what was heard ends with the written word that was said."""
    async with speaking(Voice(), "**One** [two](https://x.com/y) **three** four five.") as caller:
        await caller.says("hello", takes_s=0.5)
        await caller.until(lambda caller: "three" in caller.heard)
        caller.publish(UserStartedSpeaking())
        await caller.quiet()
        assert caller.heard == "**One** [two](https://x.com/y) **three**"


async def test_what_the_app_says_itself_is_not_read_with_its_marks(autojump_clock) -> None:
    """A fixed text of the app goes the same way to the voice."""
    voice = Voice()
    async with speaking(voice, "Yes.") as caller:
        await caller.call.say("**Hello** <laugh/> [[h@l'oU]] 😀 <think>hm</think>Max.")
        await caller.quiet()
        assert " ".join(" ".join(voice.texts).split()) == "Hello h@l'oU Max."


class Loud:
    """A spoken form of an app: all in capitals, and a word spelled as it sounds."""

    def feed(self, text):
        return [SpokenPart(word, word.upper().replace("SQL", "SEQUEL")) for word in [text] if word]

    def flush(self):
        return []


async def test_an_app_replaces_the_spoken_form(autojump_clock) -> None:
    """A stack or a voice has a spoken form of its own, also for its fillers."""
    assert isinstance(Loud(), SpokenForm)
    voice = Voice()
    async with speaking(voice, "We use SQL.", spoken_form=Loud, fillers=Fillers()) as caller:
        await caller.says("hello", takes_s=0.5)
        await caller.quiet()
        assert "WE USE SEQUEL." in voice.texts
        assert "ONE MOMENT." in voice.texts
        assert caller.heard == "We use SQL."

    class Raw(Voice):
        spoken_form = AsWritten

    for one in (Raw(), Fallback(Raw(), Voice())):
        async with speaking(one, "Hello <laugh/> you.") as caller:
            await caller.says("hello", takes_s=0.5)
            await caller.quiet()
            assert caller.heard == "Hello <laugh/> you."
    assert AsWritten().feed("*a*") == [SpokenPart("*a*", "*a*")]


def test_a_spoken_form_is_made_for_each_text() -> None:
    """An instance in place of its class is refused, with what to write."""
    with pytest.raises(TypeError, match="spoken_form"):
        Speech(None, Voice(), spoken_form=PlainWords())


@tool(read_only=True)
async def look() -> str:
    """Look."""
    return "here"


async def test_a_blank_stands_between_what_is_said_before_and_after_a_tool(autojump_clock) -> None:
    """What is shown, heard and remembered of both sides of a tool does not stick together."""
    answers = ["Let me look.", calls("look")], "Found it."
    async with speaking(Voice(), *answers, tools=[look]) as caller:
        await caller.says("hello", takes_s=0.5)
        await caller.quiet()
        assert caller.heard == "Let me look. Found it."
