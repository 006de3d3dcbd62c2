"""The envelope."""

from typing import Literal

from bargein.routes import Event, Message, open_router


class Said(Event):
    type: Literal["msg.said"] = "msg.said"


def test_a_message_tells_what_it_carries():
    """`repr` names number, alias, source and time."""
    message = Message(Said(), "caller", 7, 1.25)
    assert repr(message) == "<Message 7 msg.said from 'caller' at 1.250 s>"
    assert message.alias == "msg.said"


def test_a_message_of_no_run_is_never_stale():
    """A message that no run published cannot be stale."""
    assert not Message(Said()).is_stale


async def test_messages_are_numbered_and_stamped(autojump_clock):
    """The router numbers messages from 1 and stamps them with trio's time."""
    import trio

    async with open_router() as router:
        first = router.publish(Said(), "caller")
        await trio.sleep(2)
        second = router.publish(Said())
    assert (first.id, second.id) == (1, 2)
    assert second.at_s - first.at_s == 2
    assert (first.source, second.source) == ("caller", "")
