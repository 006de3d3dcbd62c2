"""Cases in which the microphone hears more, or less, than the caller."""

from __future__ import annotations

from collections.abc import Callable

from bargein.client import NetworkCaller
from bargein.rehearsal import Room, agent_has_spoken

from ._agents import STORY, repeat, tell
from ._found import Found, cut_row, ignored_sound_rows, problems, stretch_row
from ._rooms import Sound, Step, beside, echo, pink_noise, talk, telephone
from ._row import MeasurementRow
from ._stage import Stage
from ._talking import CORRECTION

SPEAKS_S = 5.0
"""How long the agent speaks in each call with noise, in seconds."""

STILL_MS = 300
"""How long noise may hold the agent in that time, in milliseconds."""

NOISE_DB = (-50, -40, -30)
TALK_DB = (-60, -50, -40, -30)
ECHO_DB = (-40, -30, -20, -10)


def _beside(sound: Sound, db: float) -> Callable[[NetworkCaller], Room]:
    return lambda caller: beside(sound, [Step(1.0, db)])


def _echo(db: float) -> Callable[[NetworkCaller], Room]:
    return lambda caller: echo(lambda: caller.heard, [Step(0.0, db)])


async def noise(stage: Stage) -> Found:
    """There is noise behind the caller, who says nothing, or corrects the agent."""
    found = Found()
    sound = pink_noise(4.0)
    for db in NOISE_DB:
        name = f"noise{db}"
        what = f"says nothing; noise of {db} dBFS"
        take = await stage.call(
            name, tell, [], room=_beside(sound, db), answer_s=SPEAKS_S, title=f"The caller {what}"
        )
        found.add(take, stretch_row("background", what, take, 1.0, SPEAKS_S, STILL_MS))
    script = [await stage.line("ann", CORRECTION, agent_has_spoken(1.6), interrupts=True)]
    take = await stage.call(
        "noise-correction", repeat(STORY), [
            await stage.line("ann", "A large latte please.", agent_has_spoken(0.3)), *script],
        room=lambda _: beside(sound, [Step(0.0, -40)]), answer_s=3.0,
    )  # fmt: skip
    rows = [cut_row("background", take, cut, "ino") for cut in take.result.cuts]
    if not rows:
        rows = [
            MeasurementRow("background", CORRECTION, problems(take), holds=False, picture=take.name)
        ]
    found.add(take, *rows)
    return found


async def talking(stage: Stage) -> Found:
    """People talk behind the caller, who says nothing."""
    sound = talk([
        await stage.voices.say("ben", "I told her that the train was late again, and then we had "
                                      "to wait in the rain for half an hour."),
        await stage.voices.say("eve", "We could meet on Sunday if the weather is good, and bring "
                                      "the children and something to eat."),
    ])  # fmt: skip
    found = Found()
    for db in TALK_DB:
        what = f"says nothing; others talk at {db} dBFS"
        take = await stage.call(
            f"talk{db}",
            tell,
            [],
            room=_beside(sound, db),
            answer_s=SPEAKS_S,
            title=f"The caller {what}",
        )
        # No bound: it is speech, and one microphone cannot tell whose.
        found.add(take, stretch_row("background", what, take, 1.0, SPEAKS_S, None))
    return found


async def echoes(stage: Stage) -> Found:
    """The microphone hears the agent, 120 ms later; the caller says nothing."""
    found = Found()
    for db in ECHO_DB:
        what = f"says nothing; an echo {-db} dB below the agent"
        take = await stage.call(
            f"echo{db}",
            tell,
            [],
            room=_echo(db),
            answer_s=SPEAKS_S + 1,
            title=f"The caller {what}",
        )
        # A bound only for realistic echoes: at -10 dB the microphone lies on the loudspeaker.
        bound = STILL_MS if db < -10 else None
        found.add(take, stretch_row("echo", what, take, 0.3, SPEAKS_S, bound))
    return found


async def phone(stage: Stage) -> Found:
    """The caller uses an 8 kHz mu-law telephone line."""
    script = [
        await stage.line("ann", "mm-hmm", agent_has_spoken(1.2), longest_gap_s=0.3),
        await stage.line("ann", "okay", agent_has_spoken(3.6), longest_gap_s=0.3),
        await stage.line("ann", CORRECTION, agent_has_spoken(6.0), interrupts=True),
    ]
    take = await stage.call("telephone", tell, script, room=lambda _: telephone(), answer_s=3.0)
    found = Found()
    rows = ignored_sound_rows("telephone", "mm-hmm, okay over 8 kHz mu-law", take)
    rows += [cut_row("telephone", take, cut, "ino") for cut in take.result.cuts]
    found.add(take, *rows)
    return found
