"""The terminal is as it was before, however the console ends."""

import os
import signal
import sys
import termios
import time

import pytest

pytestmark = pytest.mark.proof  # a real terminal, which a person types into

CHAT = (sys.executable, "-m", "bargein", "chat")


def test_ctrl_c_twice(open_chat):
    """The first Ctrl+C clears the line and says so, the second leaves."""
    tty = open_chat()
    tty.type("half a")
    tty.until("> half a")
    tty.type("\x03")
    tty.until("your turn · press Ctrl+C again to leave")
    assert "half a" not in tty.screen.shown()
    tty.type("\x03")
    assert tty.end() == 0
    assert tty.is_restored()


def test_ctrl_c_interrupts_first(open_chat):
    """While the agent works the first Ctrl+C interrupts, and long after it the next one too."""
    tty = open_chat()
    for number in (1, 2):
        tty.type(f"count 40{number}\r")
        tty.until(f"> count 40{number}\n1 2")
        tty.type("\x03")
        tty.until(lambda: tty.screen.lines()[-3].startswith("■ interrupted"))
        tty.until(lambda: "again" not in tty.screen.shown())  # two seconds have passed
    tty.type("half a")
    tty.until("> half a")
    tty.type("\x15\x04")
    assert tty.end() == 0
    assert tty.is_restored()


@pytest.mark.proof
@pytest.mark.parametrize("at_work", [False, True], ids=["idle", "at work"])
@pytest.mark.parametrize(
    ("number", "code"),
    [
        (signal.SIGTERM, 143),
        (signal.SIGHUP, 129),
        (signal.SIGQUIT, -signal.SIGQUIT),
    ],
)
def test_a_signal(open_chat, number, code, at_work):
    """A signal that ends the console leaves the terminal in order."""
    tty = open_chat()
    tty.type("bake\r" if at_work else "half a")
    tty.until("in the oven" if at_work else "half a")
    tty.process.send_signal(number)
    assert tty.end() == code
    assert tty.is_restored()


def test_an_app_that_cannot_be_opened(open_tty):
    """An exception before the call begins is told, and the terminal is in order."""
    tty = open_tty(*CHAT, "agent:cannot_open")
    assert tty.end() == 1
    assert "error: ZeroDivisionError: the store broke" in tty.screen.everything()
    assert tty.is_restored()


def test_an_agent_that_cannot_answer(open_tty):
    """An agent that fails at the start ends the console with an error."""
    tty = open_tty(*CHAT, "agent:broken")
    assert tty.end() == 1
    assert "RuntimeError in broken" in tty.screen.everything()
    assert tty.is_restored()


def test_a_crash(open_chat):
    """An exception that nobody handles ends the console, and what was said stays readable."""
    tty = open_chat(target="agent:crash_soon")
    assert tty.end() == 1
    assert "error: ZeroDivisionError: a task broke" in tty.screen.everything()
    assert tty.is_restored()


@pytest.mark.proof
def test_a_program_that_hangs(open_chat):
    """Where the event loop hangs, the third Ctrl+C ends the process, with the terminal in order."""
    tty = open_chat()
    tty.type("block\r")
    time.sleep(2.0)  # nothing is drawn any more
    for _ in range(3):
        tty.type("\x03")
        time.sleep(0.3)
    assert tty.end() == 130
    assert tty.is_restored()


@pytest.mark.proof
def test_ctrl_z_and_fg(open_tty, environment):
    """Ctrl+Z gives the shell its terminal, and after fg the line and the work are still there."""
    tty = open_tty("bash", "--norc", "--noprofile", "-i", PS1="ready>", rows=20)
    tty.until("ready>")
    tty.type(" ".join(CHAT) + " agent:app\r")
    tty.until("your turn")
    tty.type("count 200\r")
    tty.until("1 2 3")
    tty.type("kept")
    tty.until("> kept")
    tty.type("\x1a")
    tty.until("Stopped")
    tty.type("stty | grep -cE -e '-(icanon|echo|icrnl|ixon)( |$)'; echo counted\r")
    tty.until("\n0\ncounted")
    tty.type("fg\r")
    tty.until(lambda: tty.screen.lines()[-2] == "> kept")
    tty.type("!\r")
    tty.until("queued: kept!")
    tty.type("\x1b")
    tty.until("You said: kept!")
    tty.type("\x04")
    tty.until(lambda: tty.screen.lines()[-1] == "ready>")
    tty.type("echo code $?\r")
    tty.until("code 0")


@pytest.mark.proof
def test_a_stop_from_outside(open_chat):
    """After SIGSTOP and SIGCONT keys are keys again, and the line is drawn anew."""
    tty = open_chat()
    tty.type("kept")
    tty.until("> kept")
    tty.process.send_signal(signal.SIGSTOP)
    time.sleep(0.2)
    os.system(f"stty -F {os.ttyname(tty.slave)} sane")
    tty.process.send_signal(signal.SIGCONT)
    tty.until(lambda: not termios.tcgetattr(tty.slave)[3] & termios.ICANON)
    tty.type("!\r")
    tty.until("You said: kept!")
    tty.type("\x04")
    assert tty.end() == 0
    assert tty.is_restored()


@pytest.mark.proof
def test_a_terminal_that_is_gone(open_chat):
    """When the window is closed, the console ends by itself."""
    tty = open_chat()
    os.close(tty.slave)
    os.close(tty.master)
    try:
        assert tty.process.wait(60) == 129
    finally:
        tty.master, tty.slave = os.openpty()


@pytest.mark.proof
def test_a_terminal_that_is_held(open_chat):
    """A terminal that takes nothing more delays neither an interrupt nor the exit."""
    tty = open_chat()
    tty.type("count 10000\r")
    tty.until("1 2 3")
    time.sleep(20)  # nobody reads: the buffer of the terminal fills up
    tty.type("\x1b")
    tty.process.send_signal(signal.SIGTERM)
    assert tty.process.wait(60) == 143
    assert tty.has_its_modes()
