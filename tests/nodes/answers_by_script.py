"""An agent that answers what was said, and that speech interrupts."""

from bargein.events import UserStartedSpeaking, UserStoppedSpeaking


def answer_with(node):
    """Return an answer to a call, given by a node."""

    async def answer(call):
        bridge = call.bridge(node, name="agent")
        on_stop = bridge.on(UserStoppedSpeaking).interrupt_on(UserStartedSpeaking)
        on_stop.stream(node.generate).broadcast()

    return answer
