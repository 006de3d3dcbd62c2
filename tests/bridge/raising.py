"""Code of a user that raises what ends programs."""

from __future__ import annotations

from collections.abc import Callable

from bargein import Call, Interrupted
from bargein.events import (
    AgentResponse,
    DTMFInput,
    UserStartedSpeaking,
)
from bargein.routes import CodeExitError, ScopeLeakError
from bargein.testing import Caller, open_call


class Fatal(BaseException):
    """A class of the user's own that is no ``Exception``."""


Raise = Callable[[], None]


def raises(error: type[BaseException]) -> Raise:
    def fail() -> None:
        raise error("no such option: --tea")

    return fail


EXITS = [SystemExit, GeneratorExit, Interrupted, Fatal]


async def lives_on(fail_in: Callable[[Call], None]) -> Caller:
    """Have a call in which something fails; the next turn must work all the same."""

    async def answer(call: Call) -> None:
        good = call.bridge(name="good")
        good.on(UserStartedSpeaking).map(lambda m: AgentResponse(content="Yes?")).broadcast()
        fail_in(call)

    async with open_call(answer, expect_errors=True) as caller:
        caller.publish(DTMFInput(button="1"))
        await caller.at(1)
        caller.publish(UserStartedSpeaking())
        await caller.at(3)
        assert not caller.call.ended.is_set()
        assert any(event.content == "Yes?" for event in caller.events(AgentResponse))
    return caller


def is_told(error: Exception, kind: type[BaseException]) -> bool:
    while isinstance(error, ExceptionGroup):
        (error,) = error.exceptions
    # A nursery wraps a GeneratorExit that comes of a leak in the same way as one that was raised.
    leaks = kind is GeneratorExit and isinstance(error, ScopeLeakError)
    return leaks or (isinstance(error, CodeExitError) and isinstance(error.error, kind))
