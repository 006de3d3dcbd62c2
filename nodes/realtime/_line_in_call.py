"""The line of one call as its spare models see it; see ``Fallback()``."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Any

from bargein.bridge import Message, current_run
from bargein.nodes.llm import AnswerPiece
from bargein.nodes.services import VendorError

from ._realtime_connection import RealtimeLine

Chat = Sequence[Mapping[str, Any]]

MOST_RUNS = 64
"""Of how many runs it is known who speaks for them; hardly ever more than two go on at a time."""


class LineInCall:
    """A line, and for which runs another model speaks; a `CallLine`."""

    def __init__(
        self,
        line: RealtimeLine,
        whole_chat: Callable[[Chat], Chat],
        answer_number: Callable[[], int | None],
    ) -> None:
        """Start with a line that speaks for all runs.

        Args:
            line: The line.
            whole_chat: Returns the messages for a model that knows nothing.
            answer_number: Returns the number of the answer of the current run.
        """
        self._line = line
        self.whole_chat = whole_chat
        self._answer_number = answer_number
        self._voiced: deque[int] = deque(maxlen=MOST_RUNS)  # ids of runs

    @property
    def lost(self) -> VendorError | None:
        """Why the line is lost; ``None`` while it is open or opens."""
        return self._line.lost

    def stream(self, messages: Chat, *, tools: Chat = ()) -> AsyncGenerator[AnswerPiece, None]:
        """Yield a response; see `ChatModel.stream`."""
        return self._line.stream(messages, tools=tools)

    def speak(self) -> None:
        """Record that the model speaks for the current run itself."""
        run = current_run()
        if run is not None and run.id in self._voiced:
            self._voiced.remove(run.id)

    def leave_to_voice(self) -> None:
        """Record that another model answers in the current run, and a voice says its text."""
        run, number = current_run(), self._answer_number()
        if run is not None and run.id not in self._voiced:
            self._voiced.append(run.id)
        if number is not None:
            self._line.memory.unmark_answer(number)

    def is_left(self, message: Message) -> bool:
        """Whether a voice says the text of a message."""
        return message.run is not None and message.run.id in self._voiced
