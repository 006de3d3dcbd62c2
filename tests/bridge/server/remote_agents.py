"""Agents that the tests of remote handles share."""

import trio

from bargein import Call, current_run
from bargein.control import StillRunning
from bargein.events import AgentResponse, UserStartedSpeaking, UserTranscriptionReceived


class Chore:
    """A tool that ends some time after it was interrupted, or at once."""

    name = "tidy_up"
    outcome = None
    moving_from = None
    inside = None
    is_waiting = False

    def __init__(self, call: Call, id: str, grace_s: float) -> None:
        self.id, self.run, self.started_at_s = id, current_run(), trio.current_time()
        self.policy = "finish" if grace_s else "cancel"
        self.done = trio.Event()
        self._call, self._grace_s = call, grace_s
        self.for_operator = False
        call.running_tools.add(self)

    def interrupt(self, verb):
        self._call.nursery.start_soon(self._end)
        if self._grace_s:
            return StillRunning(
                self.id, self.name, self.policy, trio.current_time() + self._grace_s
            )
        return None

    def to_background(self):
        return False

    def notify_background(self):
        pass

    def consequence(self, verb):
        return f"will end in {self._grace_s:g} s"

    async def _end(self):
        await trio.sleep(self._grace_s)
        self.outcome = "completed_after_interrupt"
        self._call.running_tools.remove(self)
        self.done.set()


async def cleaner(call: Call) -> None:
    """Has two tools at work, whatever is said."""
    agent = call.bridge(name="cleaner")

    async def clean(message):
        Chore(call, "t1", 2.0)
        Chore(call, "t2", 0.0)
        yield AgentResponse(content="Let me see. ")
        await trio.sleep_forever()

    agent.on(UserTranscriptionReceived).stream(clean).broadcast()


async def asker(call: Call) -> None:
    """Asks whether a tool may run, whatever is said."""
    agent = call.bridge(name="asker")

    async def ask(message):
        call.answer_of(current_run()).phase = "permission"
        verdict = await call.permissions.ask("q1", "send_mail", {"to": "Ada"}, current_run())
        yield AgentResponse(content=f"It is {verdict}.")

    agent.on(UserTranscriptionReceived).interrupt_on(UserStartedSpeaking).stream(ask).broadcast()


async def soon(caller, kind, where=lambda message: True, **place):
    """The first message of a class, which must come within a minute."""
    with trio.fail_after(60):
        return await caller.wait_for(kind, where, **place)


def of(caller, kind):
    """All messages of a class that came so far."""
    return [one.message for one in caller.received if isinstance(one.message, kind)]
