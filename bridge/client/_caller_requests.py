"""What a caller asks of the server, under numbers that the answers bear."""

from __future__ import annotations

from .._verbs import VERBS, Verb
from ..protocol import (
    AnswerPermission,
    AnswerQuestion,
    AskSnapshot,
    ClientMessage,
    DescribeVerb,
    UseVerb,
    Watch,
    encode,
)
from ..validation._verb_arguments import (
    check_answer,
    check_flag,
    check_instruction,
    check_string,
    check_word,
)
from ._reconnect import CallerLine


class CallerRequests:
    """The requests of one call.

    Attributes:
        line: The sending side, which outlives its connections.
    """

    line: CallerLine
    _requests = 0

    def control(self, verb: Verb, text: str = "") -> int:
        """Use a verb on the agent's work.

        Args:
            verb: The verb.
            text: The instruction of ``redirect``, or the note of ``resume``.

        Returns:
            The ``request`` of the ``VerbReceipt`` (or error) and the ``VerbSettled`` that follow.

        Raises:
            ValueError: There is no such verb, or the instruction has no words.
            TypeError: The text is no string.
        """
        check_word("control", "verb", verb, VERBS)
        check_string("control", "text", text)
        if verb == "redirect":
            check_instruction(text)
        request = self._next_request()
        self._send(UseVerb(verb=verb, text=text, request=request))
        return request

    def respond(self, permission: str, allow: bool, remember: bool = False) -> int:
        """Answer a tool's permission question.

        Args:
            permission: The id of the question.
            allow: Whether it may.
            remember: Whether the answer also covers later calls of the tool in this conversation.

        Returns:
            The ``request`` of the error that comes if nobody waits for the answer any more.

        Raises:
            TypeError: The id is not a string, or `allow` or `remember` is not a bool.
        """
        check_answer(permission, allow, remember)
        request = self._next_request()
        self._send(AnswerPermission(id=permission, allow=allow, remember=remember, request=request))
        return request

    def answer(self, question: str, text: str) -> int:
        """Answer a tool's question.

        Args:
            question: The id of the question.
            text: One of its choices, or any words; "never mind" withdraws it.

        Returns:
            The ``request`` of the error that comes if nobody waits for the answer any more.

        Raises:
            TypeError: An argument is not a string.
            pydantic.ValidationError: The text has no words.
        """
        check_string("answer", "question", question)
        check_string("answer", "text", text)
        request = self._next_request()
        self._send(AnswerQuestion(id=question, text=text, request=request))
        return request

    def ask_description(self, verb: Verb) -> int:
        """Ask what a verb would do now; returns the ``request`` of the ``Description``.

        Raises:
            ValueError: There is no such verb.
        """
        check_word("ask_description", "verb", verb, VERBS)
        request = self._next_request()
        self._send(DescribeVerb(verb=verb, request=request))
        return request

    def ask_snapshot(self, *, follow: bool = False) -> int:
        """Ask what the call is doing.

        Args:
            follow: Whether to send it again whenever it changes.

        Returns:
            The ``request`` of the ``SnapshotMessage``.

        Raises:
            TypeError: `follow` is not a bool.
        """
        check_flag("ask_snapshot", "follow", follow)
        request = self._next_request()
        self._send(AskSnapshot(request=request, follow=follow))
        return request

    def watch(self, on: bool = True) -> int:
        """Ask for every event of the call, as ``Seen`` messages, or ask to stop them.

        Returns:
            The ``request`` of the ``Watching`` that answers.

        Raises:
            TypeError: `on` is not a bool.
        """
        check_flag("watch", "on", on)
        request = self._next_request()
        self._send(Watch(on=on, request=request))
        return request

    def _next_request(self) -> int:
        self._requests += 1
        return self._requests

    def _send(self, message: ClientMessage) -> None:
        self.line.send(encode(message))
