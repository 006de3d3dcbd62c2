"""Everything about turns that can be set, with the default and why it is the default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from typing import Any, Literal, Protocol, get_args

from ._barge_in import BargeIn, HoldThenDecide
from ._endpointing import Endpointing, ModelEndpointing
from ._language_packs import LanguagePack, check_phrases
from ._languages import PACKS
from ._number_checks import check_count, check_seconds, check_share
from ._phrases import Phrases
from ._turn_start import StartOnVoice, TurnStart

MuteRule = Literal["first_message", "tool"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnSettings:
    """When the caller's turn begins and ends, and what interrupts the agent.

    Times are in seconds.  A wrong value raises when the settings are made.
    """

    # --- what interrupts -----------------------------------------------------------------------

    min_duration_s: float | None = 0.8
    """A voice that lasts this long interrupts before any word is known; None: only words do.  Most
    acknowledgements are shorter, and many laughs and coughs; what is meant to interrupt is longer.
    The agent is held meanwhile, so that the caller notices no wait, and words that are known
    interrupt at once."""
    acknowledgement_lasts_s: float = 0.9
    """As `min_duration_s`, for a sound that seems to be an acknowledgement: a slow "mm-hmm" takes
    up to 0.75 s in the voices we measured."""
    min_words: int = 1
    """So many words interrupt, if they are no acknowledgement; characters where a script has no
    spaces.  Fewer are kept, and answered once the agent is done."""
    languages: tuple[str | LanguagePack, ...] = ("en",)
    """Whose acknowledgements, interruption phrases and unfinished sentences count: names of packs
    (``en, de, fr, es, zh, ja``) or packs of your own.  English, as the recogniser of `LocalSpeech`
    hears English; words of one language are other words in another, so name only those that are
    spoken."""
    acknowledgements: tuple[str, ...] = ()
    """Further words that alone never interrupt."""
    interruption_phrases: tuple[str, ...] = ()
    """Further words that always interrupt."""
    misheard_words: int = 3
    """Up to so many words of a sound that is surely an acknowledgement or an echo, and short, are
    one, whatever the recogniser makes of it; an interruption phrase still interrupts, and so do
    numbers, "no" and words of which the recogniser is sure (0.8), if it seems no echo.  0: its
    words always count."""
    false_interruption_timeout_s: float = 0.15
    """Silence after which a sound that was too short lets the agent go on.  A recogniser that is
    asked when the voice stops has told by then whether there are words: it takes 0.1 s."""
    speech_timeout_s: float = 0.6
    """The same, if it is longer, for a sound that is surely speech by a hint, or has lasted for
    more than 0.35 s and seems nothing else: "Wait, …" takes a breath.  Words end the wait; they are
    known 0.45 s after the voice stopped.  A breath of 0.4 s takes up to 0.5 s for a voice detector
    that has windows of 32 ms and tells starts and stops after 64.  One short word of assent in 60
    seems to be speech."""
    min_confidence: float = 0.5
    """Words of a short sound that the recogniser is less sure of interrupt nothing: of a cough
    Whisper makes "Mocha, mocha" with 0.3 to 0.4.  A single word needs 0.65, but for numbers, "no",
    and words of the recogniser's hint.  An interruption phrase interrupts from 0.4 on,
    and a voice that lasts does; words without a confidence are sure.  0: all words count."""
    longest_hold_s: float = 0.25
    """For how long a sound holds the agent's speech at most that is more likely an acknowledgement
    than not, or does not interrupt by lasting: with the way to the player the gap stays below
    0.3 s, and a longer one is heard as a fault."""
    hint_above: float = 0.7
    """From this probability on a hint at what a sound is lets the agent go on."""
    answer_within_s: float = 0.5
    """An acknowledgement that ends this shortly before the agent falls silent is an answer to what
    it said: "Shall I book it?" "Okay."  Twice the time in which people usually answer."""
    barge_in: BargeIn = field(default_factory=HoldThenDecide)
    """Decides by these settings; may be one of your own."""

    # --- when nothing interrupts ---------------------------------------------------------------

    mute: tuple[MuteRule, ...] = ()
    """When the caller's voice neither holds nor interrupts: ``first_message`` (until the agent's
    first speech of the call is over), ``tool`` (while a tool runs).  What is said then is kept, and
    answered once the agent is done."""
    echo_warm_up_s: float = 1.0
    """For how long after the agent's first sound of the call sound alone does not interrupt: an
    echo canceller has to hear the loudspeaker before it can do its work."""
    echo_similarity: float = 0.8
    """From this share on of its words, in order, being what the agent is saying, a transcript is
    the agent's echo: recognisers get about one word in five of an echo wrong."""
    echo_min_words: int = 3
    """Fewer words are an echo only if the sound seems to be one, too: callers repeat single words
    of what they hear."""

    # --- when turns begin and end --------------------------------------------------------------

    start: TurnStart = field(default_factory=StartOnVoice)
    """Decides when a turn begins while the agent neither says nor does anything."""
    endpointing: Endpointing = field(default_factory=ModelEndpointing)
    """Decides which silence ends a turn."""
    unfinished_phrases: tuple[str, ...] = ()
    """Further words with which no sentence of a caller ends: "my order number is"."""
    longest_turn_s: float | None = 60.0
    """A turn that lasts longer is ended by force; None: never.  A minute holds 150 words; what goes
    on for longer is mostly no caller but a radio."""

    # --- when something is missing -------------------------------------------------------------

    words_within_s: float = 5.0
    """For how long words are waited for after a voice has stopped.  Recognisers take 0.2 to 2 s;
    one that gives nothing must not hang the call."""
    voice_lost_s: float = 10.0
    """When a voice that never stops counts as stopped, after its last words were known."""
    microphone_lost_s: float = 1.0
    """When a voice counts as stopped because no audio arrives any more; longer than the gaps of a
    bad network."""
    late_event_s: float = 1.0
    """How much later than its stop the start of the same sound may come."""

    # --- when nobody says anything -------------------------------------------------------------

    user_away_after_s: float | None = None
    """After so much silence of both sides ``UserAway`` is published; None: never."""
    user_away_times: int = 3
    """How often in a row at most."""
    agent_idle_after_s: float | None = None
    """After so much work without a sound ``AgentIdle`` is published; None: never."""
    agent_idle_times: int = 3
    """How often at most in one turn of the agent."""

    phrases: Phrases = field(init=False, repr=False, compare=False)
    """The acknowledgements and interruption phrases of all languages, ready for use."""

    def __post_init__(self) -> None:
        """Check everything.

        Raises:
            TypeError: A value is of a wrong type.
            ValueError: A value is out of its bounds.
        """
        for name, above in _SECONDS.items():
            optional = name in _OPTIONAL
            check_seconds(_named(name), getattr(self, name), optional=optional, above=above)
        for name in _SHARES:
            check_share(_named(name), getattr(self, name))
        for name in _COUNTS:
            check_count(_named(name), getattr(self, name))
        check_count(_named("misheard_words"), self.misheard_words, least=0)
        for name, protocol in _STRATEGIES.items():
            _check_strategy(name, getattr(self, name), protocol)
        check_phrases(_named("acknowledgements"), self.acknowledgements)
        check_phrases(_named("interruption_phrases"), self.interruption_phrases)
        check_phrases(_named("unfinished_phrases"), self.unfinished_phrases)
        _check_mute(self.mute)
        packs = tuple(_pack(language) for language in _languages(self.languages))
        phrases = Phrases.of(
            packs, self.acknowledgements, self.interruption_phrases, self.unfinished_phrases
        )
        object.__setattr__(self, "phrases", phrases)

    def but(self, changes: Mapping[str, Any]) -> TurnSettings:
        """Return settings with some changed.

        Args:
            changes: Names and values.
        """
        return replace(self, **changes) if changes else self


_SECONDS = {
    "min_duration_s": -1.0,
    "acknowledgement_lasts_s": -1.0,
    "false_interruption_timeout_s": -1.0,
    "speech_timeout_s": -1.0,
    "longest_hold_s": 0.0,
    "answer_within_s": -1.0,
    "echo_warm_up_s": -1.0,
    "longest_turn_s": 0.0,
    "words_within_s": 0.0,
    "voice_lost_s": 0.0,
    "microphone_lost_s": 0.0,
    "late_event_s": -1.0,
    "user_away_after_s": 0.0,
    "agent_idle_after_s": 0.0,
}
"""The times, and what each has to be above; -1 where 0 has a meaning."""

_OPTIONAL = ("min_duration_s", "longest_turn_s", "user_away_after_s", "agent_idle_after_s")
_SHARES = ("hint_above", "echo_similarity", "min_confidence")
_COUNTS = ("min_words", "echo_min_words", "user_away_times", "agent_idle_times")
_STRATEGIES: dict[str, type] = {
    "barge_in": BargeIn,
    "start": TurnStart,
    "endpointing": Endpointing,
}

SETTINGS = tuple(spec.name for spec in fields(TurnSettings) if spec.init)
"""The names of all settings."""


def check_changes(where: str, changes: Mapping[str, Any]) -> None:
    """Raise when changes name no setting, or give one a wrong value.

    Args:
        where: Names it in the error.
        changes: Names and values.

    Raises:
        TypeError: There is no such setting, or a value is of a wrong type.
        ValueError: A value is out of its bounds.
    """
    for name in changes:
        if name not in SETTINGS:
            near = get_close_matches(name, SETTINGS, n=1)
            hint = f"; did you mean {near[0]!r}" if near else ""
            raise TypeError(
                f"{where} knows no setting {name!r}{hint}? There are {', '.join(SETTINGS)}"
            )
    TurnSettings(**changes)


def _named(name: str) -> str:
    return f"TurnSettings({name}=)"


def _check_strategy(name: str, value: object, protocol: type[Protocol]) -> None:  # type: ignore[valid-type]
    if isinstance(value, type) or not isinstance(value, protocol):
        wanted = ", ".join(_MEMBERS[name])
        raise TypeError(f"{_named(name)} is an object with {wanted}, not {value!r}")


_MEMBERS = {
    "barge_in": ("judge(sound, settings)",),
    "start": ("begins(sound)", "look_after_s"),
    "endpointing": ("wait_s(pause)",),
}


def _check_mute(rules: object) -> None:
    known = get_args(MuteRule)
    if not isinstance(rules, tuple):
        raise TypeError(f"{_named('mute')} is a tuple of {', '.join(known)}, not {rules!r}")
    for rule in rules:
        if rule not in known:
            raise ValueError(f"{_named('mute')} knows {', '.join(known)}, not {rule!r}")


def _languages(languages: object) -> tuple[object, ...]:
    if not isinstance(languages, tuple):
        raise TypeError(
            f"{_named('languages')} is a tuple of names and LanguagePacks, not {languages!r}"
        )
    return languages


def _pack(language: object) -> LanguagePack:
    if isinstance(language, LanguagePack):
        return language
    if isinstance(language, str) and language in PACKS:
        return PACKS[language]
    raise ValueError(
        f"{_named('languages')} knows {', '.join(PACKS)}, not {language!r}; "
        "give a LanguagePack of your own"
    )
