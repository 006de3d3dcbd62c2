"""The current step ends, what is finished is kept, and the agent does what the text says."""

from __future__ import annotations

from bargein.routes import Message

from .._verb_use import VerbUse, accept_input
from ._verb_row import Cell, PageButton, VerbRow, cells


def _redirect(use: VerbUse, message: Message) -> None:
    use.cut(message)
    accept_input(use.router, message.event.text)


_ANSWERED_NEXT = Cell("thinking")  # in each state: a caller's words are never lost

ROW = VerbRow(
    verb="redirect",
    cells=cells(idle=_ANSWERED_NEXT, at_work=_ANSWERED_NEXT, stopping=_ANSWERED_NEXT),
    act=_redirect,
    cuts="step",
    text="text",
    directive="continue",
    does="drop this step and do what you type",
    done="redirected",
    command="redirect",
    button=PageButton(
        busy="Redirecting…",
        did="Redirected.",
        icon="M5 19v-5a4 4 0 0 1 4-4h10M14.5 5.5 19 10l-4.5 4.5",
        key="R",
    ),
)
