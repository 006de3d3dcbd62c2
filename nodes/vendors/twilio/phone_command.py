"""The command ``bargein phone``: this machine plays Twilio, and you the caller."""

from __future__ import annotations

import argparse
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import trio

from bargein.bridge import App
from bargein.bridge.commands import TargetError, configure_logs, load_app
from bargein.bridge.server import open_server
from bargein.bridge.wires.telephone import TwilioRelay
from bargein.routes import BargeinError

from .fake import FakeTwilio
from .fake_call import FakeTwilioCall

DEFAULT_TARGET = "agent.py"


def command(argv: Sequence[str]) -> int:
    """Ring your agent without an account: this machine plays Twilio.

    What you type is said, over the agent if it speaks; ``--script`` says the lines of a file, each
    once the agent has finished, or after ``! `` while it speaks.

    Args:
        argv: The arguments behind the command's name.

    Returns:
        The exit code.
    """
    options = argument_parser().parse_args(list(argv))
    configure_logs("warning", pii=False)
    try:
        app = load_app(options.target)
        lines = None if options.script is None else options.script.read_text("utf-8").splitlines()
        trio.run(_ring, app, lines, options.caller)
    except (TargetError, BargeinError, ImportError, OSError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    return 0


def argument_parser() -> argparse.ArgumentParser:
    """Return the parser of the command's arguments."""
    parser = argparse.ArgumentParser(
        prog="bargein phone",
        description="Rings your agent without an account: this machine plays Twilio, with the same "
        "webhook, signature, socket and messages.  What you type is said, over the agent if it "
        "speaks; an empty line waits, and the end of the input hangs up.",
    )
    parser.add_argument(
        "target",
        metavar="module:app",
        nargs="?",
        default=DEFAULT_TARGET,
        help="an App, or an async function that answers a call (%(default)s)",
    )
    parser.add_argument(
        "--script",
        type=Path,
        metavar="FILE",
        help="what the caller says, a line at a time, each when the agent has finished; a line "
        "that begins with '! ' is said after a second, over the agent",
    )
    parser.add_argument("--from", dest="caller", default="+15550001", metavar="NUMBER",
                        help="the number that calls (%(default)s)")  # fmt: skip
    return parser


async def _ring(app: App, script: Sequence[str] | None, caller: str) -> None:
    carrier = FakeTwilio()
    wire = TwilioRelay(auth_token=carrier.auth_token)
    async with open_server(app, port=0, wires=(wire,)) as server:

        async def dial() -> trio.abc.Stream:
            return await trio.open_tcp_stream("127.0.0.1", server.port)

        url = f"https://127.0.0.1:{server.port}/twilio/voice"
        async with (
            carrier.call(dial, voice_url=url, caller=caller, hears=_show) as line,
            trio.open_nursery() as nursery,
        ):
            _say(f"[{caller} rings]")
            nursery.start_soon(_talk, line, script, nursery.cancel_scope)
            await line.over()
            nursery.cancel_scope.cancel(reason="the agent hung up")
        ending = "the agent hung up" if line.close_code else "you hung up"
        _say(f"[{ending}]" + (f"\n{line.then}" if "<Dial>" in line.then else ""))


async def _talk(line: FakeTwilioCall, script: Sequence[str] | None, call: trio.CancelScope) -> None:
    if script is None:
        async for said in _typed():
            if said.strip():
                await line.says(said.strip())
    else:
        for said in script:
            if said.startswith("! "):
                await trio.sleep(1.0)
            else:
                await line.quiet()
            text = said.removeprefix("! ").strip()
            if text:
                _say(f"you: {text}")
                await line.says(text)
        await line.quiet()
    call.cancel(reason="the caller hangs up")


async def _typed() -> AsyncIterator[str]:
    while said := await trio.to_thread.run_sync(sys.stdin.readline, abandon_on_cancel=True):
        yield said


def _show(text: str) -> None:
    if text.strip():
        _say(f"agent: {text.strip()}")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
