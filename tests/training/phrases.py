"""What callers say while an agent speaks: acknowledgements, and beginnings of sentences."""

from __future__ import annotations

import random

HUMS = (
    "[[m-h'm-]]",
    "[[m:h'm:]]",
    "[[mmh'mm]]",
    "[[mmmh'mmm]]",
    "[[mh'm]]",
    "[[m-m-h'm-m-]]",
    "[[mmhmm]]",
    "[[m-h@m-]]",
    "[[m:m-h'm:]]",
    "[[mh'@m]]",
    "[[m:h'@m:]]",
    "[[m:hm: m:h'm:]]",
    "[[mmmm]]",
)
"""In espeak-ng's phonemes: it spells "mhm" letter by letter."""

UH_HUHS = ("uh-huh", "[[VhV]]", "[[@h'V]]", "[['Vh'V]]", "[[V~h'V~]]", "[[@h@]]", "[[V:h'V:]]")

WORDS = (
    *("okay", "yeah", "right", "sure", "I see", "yes", "yep", "alright", "got it", "of course"),
    *("okay okay", "yeah yeah", "good", "great"),
)

SHORT = (
    *("no", "no no", "stop", "wait", "actually", "hold on", "sorry", "hey", "hello", "what", "why"),
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *(
        "never mind",
        "cancel",
        "not that",
        "more",
        "now",
        "nothing",
        "none",
        "many",
        "help",
        "enough",
    ),
)
"""Words that mean something alone: an agent that took them for acknowledgements would talk on."""

_BEGINNINGS = """
no wait|stop|actually|can I|I want|hold on|what about|make it a|wait|sorry|could you|no|no no
no I said|never mind|excuse me|please|how much is|do you have|is there|I'd like|I would rather have
but|and also|maybe|my order|more milk|one moment|let me|give me|not that one|nothing else|what time
when does|where is|who are you|why|hang on|listen|that's wrong|that is not what I|cancel
change it to|instead of|the other one|two of them|three large|with oat milk|without sugar|hello|hi
hey|thank you|thanks|you know|you said|tell me|speak to|I don't|I can't hear|I meant|I need|it's
I'm|we|they|our table|my name is|mine is|a small|an espresso|medium please|many people|next week
nine o'clock|Monday morning|on Friday|under the name|until when|honestly|however|hm actually
um can I|uh no|uh wait|oh no|oh sorry|ah wait|eh what|which one|will it|would you|should I|seven
five|forty two|zero|double|half|just a|quick question|go back|repeat that|slower please|louder
enough|quiet|shut up|begin again|from the start|look|also
"""

_ENDS = (
    "can I have the blueberry muffin",
    "I want a cappuccino instead",
    "with oat milk please",
    "for the two of us",
    "do you have anything without sugar",
    "make that a large one",
    "I have a question about the bill",
    "is not what I ordered",
    "",
    "that's too much",
    "on the table by the window",
    "tomorrow morning at eight",
    "and something to eat",
    "could we change that",
)


def sentences(rng: random.Random) -> list[str]:
    """Return a sentence of each beginning."""
    beginnings = _BEGINNINGS.replace("\n", "|").strip("|").split("|")
    return [f"{beginning} {rng.choice(_ENDS)}".strip() for beginning in beginnings]
