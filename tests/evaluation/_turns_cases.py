"""Cases about the end of a turn: pauses that do not end it, and the latency of answers."""

from __future__ import annotations

from itertools import cycle

from bargein.rehearsal import ScriptLine, agent_falls_silent

from ._agents import repeat
from ._found import Found, latency_rows, pauses_of, problems
from ._row import MeasurementRow, decided
from ._stage import Stage

FALSE_SHARE = 5.0
"""The largest share of pauses in which the agent may cut in, in percent."""

PAUSES_S = (0.3, 0.5, 0.7, 0.9)

HESITATIONS = (
    ("joe", "I would like ... a large latte ... and a blueberry ... muffin please."),
    ("ann", "Can I get ... two croissants ... and an espresso ... to go?"),
    ("ben", "We need ... a room ... for two nights ... in March."),
    ("eve", "I want to book ... a table for four ... on Friday ... at seven."),
    ("ann", "I think ... I will have ... the cappuccino ... instead."),
    ("joe", "Could you tell me ... what is in ... the blueberry ... muffin?"),
    ("eve", "My sister ... and her husband ... would like ... some tea."),
    ("ben", "The thing is ... that I ordered ... the soup ... not the salad."),
)
"""Each line has pauses of one length; the next line has the next length."""


async def hesitation(stage: Stage) -> Found:
    """The caller stops to think in the middle of a sentence."""
    found, plans, script = Found(), [], []
    for (who, text), pause_s in zip(HESITATIONS, cycle(PAUSES_S), strict=False):
        sound, begins = await stage.voices.hesitate(who, text, pause_s)
        shown = text.replace("...", f"… {pause_s:g} s …", 1).replace("...", "…")
        script.append(ScriptLine(shown, agent_falls_silent(0.5), sound=sound))
        plans.append((pause_s, begins))
    half = len(script) // 2
    pauses = []
    for name, part in (("hesitation-1", slice(half)), ("hesitation-2", slice(half, None))):
        take = await stage.call(name, repeat(), script[part], answer_s=3.0)
        mine = pauses_of(take, plans[part])
        pauses += mine
        split = len(take.result.transcripts) - len(take.result.said)
        cut_in = sum(pause.cut_in for pause in mine)
        happened = f"the agent cut into {cut_in} of {len(mine)} pauses; {split} turns were split"
        take.rows.append(MeasurementRow("hesitation", "stops to think", happened, holds=not cut_in))
        if problems(take):
            row = MeasurementRow("hesitation", "all", problems(take), holds=False, picture=name)
            found.rows.append(row)
            take.rows.append(row)
        found.takes.append(take)
    found.rows += [_row(pauses, pause_s) for pause_s in PAUSES_S]
    found.rows.append(_row(pauses, None, bound=FALSE_SHARE))
    return found


def _row(pauses: list, pause_s: float | None, bound: float | None = None) -> MeasurementRow:  # type: ignore[type-arg]
    mine = [each for each in pauses if pause_s in (None, each.length_s)]
    cut_in = [each for each in mine if each.cut_in]
    where = "".join(f"; into {each.line!r}" for each in cut_in[:2]) if pause_s else ""
    what = "all pauses" if pause_s is None else f"pauses of {pause_s:g} s in mid-sentence"
    happened = f"the agent cut into {len(cut_in)} of {len(mine)}{where}"
    figure = 100 * len(cut_in) / len(mine) if mine else None
    return MeasurementRow(
        "hesitation", what, happened, figure, unit="%", bound=bound, picture="hesitation-1"
    )


QUESTIONS = (
    ("ann", "Can I get a large latte please."),
    ("joe", "What time do you close today?"),
    ("ben", "I want to change my order."),
    ("eve", "Do you have oat milk?"),
    ("joe", "No, that's all, thank you."),
    ("ann", "Yes, please."),
    ("ben", "How much is the blueberry muffin?"),
    ("eve", "Two croissants and an espresso to go."),
)


async def answers(stage: Stage) -> Found:
    """The caller speaks and waits for the answer: how long it takes, and where the time goes."""
    script = [await stage.line(who, text, agent_falls_silent(0.4)) for who, text in QUESTIONS]
    take = await stage.call("answers", repeat(), script, answer_s=4.0)
    found = Found()
    rows = latency_rows("answers", take.result.answers, take.name)
    unanswered = [each for each in take.result.answers if each.latency_s is None]
    if unanswered or problems(take):
        told = f"{len(unanswered)} lines without an answer; {problems(take)}"
        rows.append(MeasurementRow("answers", "all", told, holds=False, picture=take.name,
                        decided=decided(take.result.decisions)))  # fmt: skip
    found.add(take, *rows)
    return found
