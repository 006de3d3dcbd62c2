"""The node that lets a language model answer, and call tools."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from bargein.bridge import Message, UserEntry
from bargein.bridge.control import Caps
from bargein.bridge.events import (
    JobAnnounced,
    JobFinished,
    TurnLikelyOver,
    TurnWentOn,
    UserStartedSpeaking,
)
from bargein.bridge.history import last_messages

from ._conversation_context import ConversationContext
from ._jobs import Job, Jobs, bring
from ._model_request import LastAsked
from ._reasoning_node import ReasoningNode
from ._speculation import SpeculativeModel
from ._tool_loop import LoopPlan, ToolLoop
from .llm import ChatModel, Usage
from .tools import Tool, ToolDefinitionError, ToolRunner, current_tool, tool

if TYPE_CHECKING:
    from bargein.bridge import Bridge

NO_CAPS = Caps()

DEFAULT_CAPS = Caps(steps=100)
"""Far more than an answer takes; it ends a model that calls tools in circles."""


class ChatNode(ReasoningNode):
    """Answers each turn with what a language model makes of the conversation as it was heard.

    Text is passed on token by token.  Tools run as the model asks for them, each under its policy,
    and the model is asked again with their results, until it asks for no more.  A tool that goes on
    in the background gives its result later, of which the node tells by itself.
    """

    def __init__(
        self,
        model: ChatModel,
        system_prompt: str = "",
        *,
        examples: Sequence[Mapping[str, str]] = (),
        last_entries: int | None = None,
        tools: Sequence[Tool | Callable[..., Any]] = (),
        caps: Caps = DEFAULT_CAPS,
        job_caps: Caps = NO_CAPS,
        parallel_tools: bool = True,
        cost_of: Callable[[Usage], float] | None = None,
        speculate: bool = False,
    ) -> None:
        """Make a node.

        Args:
            model: The model, shared by all calls.
            system_prompt: What the model is told first.
            examples: Chat messages that stand before the conversation, to show a small model how.
            last_entries: How many messages of the conversation up to the turn the model sees; None
                means all.
            tools: What the model may call: tools, or functions to make tools of.
            caps: How much one turn may take; by default 100 steps.
            job_caps: How much each background job may take, besides counting to its turn.
            parallel_tools: Whether tools that the model asks for in one step run side by side;
                otherwise one after the other, in the order of their calls.
            cost_of: What a call of the model has cost, of what it tells of it, for ``caps.cost``.
            speculate: Whether the model is asked at each pause of the user that is likely to be
                the end of the turn; what it writes is thrown away, unheard and unrecorded, when
                the user goes on.  It shortens the wait and costs what is thrown away.

        Raises:
            ToolDefinitionError: `tools` holds something else, such as the schema of a tool, or two
                of one name.
            ValueError: There is a cap on cost, and nobody tells the cost.
        """
        super().__init__(system_prompt)
        if cost_of is None and (caps.cost, job_caps.cost) != (None, None):
            raise ValueError("a cap on cost needs cost_of=, a function that tells what was spent")
        self._speculative = SpeculativeModel(model) if speculate else None
        self._plan = LoopPlan(
            self._speculative or model, self.messages, caps, parallel_tools, cost_of
        )
        self._examples = tuple(dict(example) for example in examples)
        self._last_entries = last_entries
        self._tools = _as_tools(tools)
        self._job_caps = job_caps
        self._runner: ToolRunner | None = None
        self._jobs: Jobs | None = None
        self._last_asked = LastAsked()

    def attached(self, bridge: Bridge) -> None:
        """Take one's place in a call; ``call.bridge(node)`` calls this.

        The node declares a route of its own there, which tells what went on in the background.

        Args:
            bridge: The place.
        """
        super().attached(bridge)
        if self._runner is None:
            self._runner = ToolRunner(bridge.call, self._tools, source=bridge.name)
            self._jobs = Jobs(bridge, self._runner, self._job_caps, self._plan.caps)
            finished = bridge.on([JobFinished, JobAnnounced], source=bridge.name)
            finished.interrupt_on(UserStartedSpeaking).stream(self.generate).broadcast()
            if self._speculative is not None:
                bridge.on(TurnLikelyOver).map(self._speculate)
                bridge.on(TurnWentOn).map(self._speculative.throw_away)

    def _speculate(self, message: Message) -> None:
        """Ask the model as if the user had said no more than this."""
        bridge = self._bridge
        assert bridge is not None  # the route is declared in one
        assert self._speculative is not None
        if not bridge.call.has_floor(bridge.name):
            return
        said = UserEntry(message.at_s, message.event.content)
        schemas = () if self._runner is None else self._runner.schemas()
        self._speculative.start_answer(
            bridge.call.nursery, self.messages(self.context.copy(said)), schemas
        )

    @property
    def jobs(self) -> tuple[Job, ...]:
        """The background jobs of this node, those that have ended too, in their order."""
        return () if self._jobs is None else self._jobs.all

    def messages(self, context: ConversationContext) -> list[dict[str, Any]]:
        """Return what the model is asked; the steps of the turn under way are put behind it.

        Args:
            context: The conversation up to the turn, which does not change.
        """
        chat = context.as_chat()
        first = 1 if context.system_prompt else 0
        said = chat[first:]
        if self._last_entries is not None:
            said = last_messages(said, self._last_entries)
        return [*chat[:first], *self._examples, *said]

    def process_context(self, context: ConversationContext) -> AsyncIterator[Any]:
        """Stream the model's answer, with the tools that it calls.

        Cancelling closes the model's connection at once, and leaves tools to their policies.

        Args:
            context: What the node knows.

        Yields:
            ``AgentResponse`` for text.

        Raises:
            ChatModelError: The model failed; what was said before stays said.
            CapReachedError: A cap is reached by an answer that is no turn, as in a tool.  A turn
                just ends.
        """
        call = None if self._bridge is None else self._bridge.call
        on_start = None if self._jobs is None else self._jobs.watch
        loop = ToolLoop(self._plan, context, call, self._runner_here(), on_start, self._last_asked)
        return loop.answer()

    def _runner_here(self) -> ToolRunner | None:
        """Return what runs the tools; a node outside of any call uses that of the tool it is in."""
        if self._runner is not None or not self._tools:
            return self._runner
        try:
            outer = current_tool()
        except RuntimeError:
            raise RuntimeError(
                f"{type(self).__name__} has tools, and they need a call; give it a place with "
                "call.bridge(node), or use it inside a tool"
            ) from None
        runner = ToolRunner(outer.call, self._tools, source=outer.name)
        runner.on_settled = partial(bring, outer.call)
        return runner


def _as_tools(given: Sequence[Tool | Callable[..., Any]]) -> tuple[Tool, ...]:
    tools: dict[str, Tool] = {}
    for one in given:
        if not isinstance(one, Tool) and not callable(one):
            raise ToolDefinitionError(
                f"tools= takes tools, or functions to make tools of, not {one!r}; "
                "the schema is made of the function's annotations"
            )
        made = one if isinstance(one, Tool) else tool(one)
        if made.name in tools:
            raise ToolDefinitionError(f"two tools are called {made.name!r}; give one another name=")
        tools[made.name] = made
    return tuple(tools.values())
