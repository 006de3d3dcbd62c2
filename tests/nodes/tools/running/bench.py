"""Tools and verbs for the tests of a tool that runs."""

import trio
import trio.testing

from bargein.tools import tool

CUTTING = ("barge_in", "pause", "redirect", "cancel")
"""The verbs that act by the policy."""

FORCED = ("emergency_stop", "shutdown")

UNKNOWN = (
    "It was cut off by an interruption and may have partially executed; verify before retrying."
)
"""What the model is told of a tool that was cut."""


def sleeper(policy="cancel", **options):
    """A tool that takes ten seconds."""

    @tool("work", policy=policy, **options)
    async def work(seconds: float = 10.0) -> str:
        await trio.sleep(seconds)
        return "worked"

    return work
