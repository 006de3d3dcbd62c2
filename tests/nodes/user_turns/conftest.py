"""A bench for the decisions of turn taking: no call, no clock, no waiting."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from bargein.events import (
    TranscriptionFailed,
    TurnDecided,
    UserStartedSpeaking,
    UserStoppedSpeaking,
    UserTranscriptionReceived,
    VoiceWords,
)
from bargein.nodes.user_turns._turn_taking_core import TimePassed, TurnCore
from bargein.nodes.user_turns._turn_taking_state import HoldSpeech, PublishEvent, ReleaseSpeech
from bargein.user_turns import AgentView, ModelEndpointing, TurnSettings

IDLE = AgentView()
SPEAKING = AgentView(
    is_audible=True,
    is_at_work=True,
    saying="your parcel left the warehouse on monday",
    first_sound_s=-100.0,
    state="speaking",
    agent="clerk",
)
WORKING = AgentView(is_at_work=True, first_sound_s=-100.0, state="thinking", agent="clerk")


def says(text: str, *, final: bool = True, segment: int = 0) -> VoiceWords:
    """Words of the caller's."""
    return VoiceWords(content=text, final=final, segment=segment)


def at_once(settings: TurnSettings | None = None) -> TurnSettings:
    """Settings without the waits that most tests are not about.

    What sounds complete ends in the step in which its words are known, and any voice that lasts
    for half a second interrupts; what the defaults wait for is tested by itself.
    """
    settings = settings or TurnSettings()
    if settings.min_duration_s == TurnSettings().min_duration_s:
        settings = settings.but({"min_duration_s": 0.5})
    if settings.endpointing != ModelEndpointing():
        return settings
    quick = ModelEndpointing(
        sure_pause_s=0.0, shortest_pause_s=0.0, spelling_pause_s=0.0, long_turn_s=100.0
    )
    return settings.but({"endpointing": quick})


@dataclass
class Bench:
    """Runs the core against an agent that falls silent when it is cut."""

    view: AgentView = IDLE
    settings: TurnSettings = field(default_factory=TurnSettings)
    now_s: float = 0.0
    acts: list[tuple[float, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.settings = at_once(self.settings)
        self.core = TurnCore()
        self.take(TimePassed())

    def take(self, fact: Any) -> Bench:
        """Hand a fact to the core, and do what it says."""
        acts = self.core.decide(fact, self.now_s, self.view, self.settings)
        self.acts += [(round(self.now_s, 6), act) for act in acts]
        if any(isinstance(event, UserStartedSpeaking) for event in _events(acts)):
            self.agent(IDLE)  # it was cut
        return self

    def agent(self, view: AgentView) -> Bench:
        """Let the agent do something else."""
        if view != self.view:
            self.view = replace(
                view, first_sound_s=min(view.first_sound_s, self.view.first_sound_s)
            )
            self.take(TimePassed())
        return self

    def wait(self, seconds: float) -> Bench:
        """Let time pass, and the core look whenever it wants to."""
        until_s = self.now_s + seconds
        looks = 0
        while self.core.ask_by_s <= until_s:
            assert self.core.ask_by_s > self.now_s or looks == 0, "it asks for the past"
            looks = 0 if self.core.ask_by_s > self.now_s else 1
            self.now_s = max(self.now_s, self.core.ask_by_s)
            self.take(TimePassed())
        self.now_s = until_s
        return self

    def rest(self) -> Bench:
        """Let time pass until nothing is undecided; fails after ten minutes."""
        until_s = self.now_s + 600
        while not self.core.is_quiet:
            assert self.core.ask_by_s < until_s, "it waits for nothing, or for ever"
            self.wait(max(0.0, self.core.ask_by_s - self.now_s))
        return self

    @property
    def is_held(self) -> bool:
        """Whether the agent's speech stands still."""
        holds = [act for _, act in self.acts if isinstance(act, (HoldSpeech, ReleaseSpeech))]
        return bool(holds) and isinstance(holds[-1], HoldSpeech)

    def events(self, kind: type = object) -> list[Any]:
        """Return what was published, by class."""
        return [event for event in _events(act for _, act in self.acts) if isinstance(event, kind)]

    @property
    def turns(self) -> list[str]:
        """Return what happened to the caller's turns, in short."""
        words = []
        for event in self.events():
            if isinstance(event, UserStartedSpeaking):
                words.append("start")
            elif isinstance(event, UserTranscriptionReceived) and event.final:
                words.append(event.content)
            elif isinstance(event, UserStoppedSpeaking):
                words.append("stop")
            elif isinstance(event, TranscriptionFailed):
                words.append(event.reason)
        return words

    @property
    def decisions(self) -> list[str]:
        """Return what was decided, and by which rule."""
        return [f"{e.decision}: {e.rule}" for e in self.events(TurnDecided)]

    def at(self, kind: type) -> float:
        """Return when something was done, or an event of a class published, for the first time."""
        for at_s, act in self.acts:
            thing = act.event if isinstance(act, PublishEvent) else act
            if isinstance(thing, kind):
                return at_s
        return math.inf


def _events(acts: Any) -> list[Any]:
    return [act.event for act in acts if isinstance(act, PublishEvent)]


@pytest.fixture(scope="session")
def bench() -> type[Bench]:
    """Makes benches."""
    return Bench


@pytest.fixture(scope="session")
def idle() -> AgentView:
    """An agent that does nothing."""
    return IDLE


@pytest.fixture(scope="session")
def speaking() -> AgentView:
    """An agent in the middle of its speech."""
    return SPEAKING


@pytest.fixture(scope="session")
def working() -> AgentView:
    """An agent that thinks, without a sound."""
    return WORKING
