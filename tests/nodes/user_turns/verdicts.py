"""What the default strategy makes of a sound over a speaking agent."""

from __future__ import annotations

from bargein.user_turns import AgentView, HoldThenDecide, Sound, TurnSettings

AGENT = AgentView(is_audible=True, is_at_work=True, first_sound_s=-100.0, state="speaking")
SAYING = "your parcel left the warehouse on monday"

HALF_A_SECOND = TurnSettings(min_duration_s=0.5)


def judged(settings=None, **known):
    known = {"now_s": 10.0, "agent": AGENT, "saying": SAYING, **known}
    return HoldThenDecide().judge(Sound(**known), settings or HALF_A_SECOND)


def over(text, **known):
    known = {"is_voiced": False, "silent_s": 0.3, "words_known": True, **known}
    return judged(text=text, **known)
