"""The console in a real terminal: whole windows, keys, and what an interrupt does."""

import os
import re
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.proof  # a real terminal, which a person types into

UNWOUND_S = 0.2
"""What the console promises between Esc and the end of the work."""


def processes(pattern: str) -> list[str]:
    """Return the processes whose command line has a pattern."""
    listed = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True)
    return [line for line in listed.stdout.splitlines() if re.search(pattern, line)]


def test_a_conversation(open_chat):
    """What is said, answered, and going on stands in the window, with the status at its bottom."""
    tty = open_chat(rows=9)
    assert tty.settled() == ">\nyour turn · /help · Esc interrupts · Ctrl+D leaves"
    tty.type("hello there\r")
    tty.until("You said")
    assert tty.settled() == (
        "> hello there\nYou said: hello there\n"
        ">\nyour turn · /help · Esc interrupts · Ctrl+D leaves"
    )
    assert (tty.screen.row, tty.screen.column) == (2, 2)
    tty.type("remember one\r")
    tty.until("It says")
    assert re.fullmatch(
        r"> hello there\n"
        r"You said: hello there\n"
        r"> remember one\n"
        r"✓ remember\(word=\"one\"\) · # s\n"
        r"It says: pid \d+ has one\n"
        r">\n"
        r"your turn · /help · Esc interrupts · Ctrl\+D leaves",
        tty.settled(),
    )
    tty.type("\x04")
    assert tty.end() == 0
    assert tty.is_restored()


def test_text_streams_and_scrolls(open_chat):
    """Text is shown as it is generated; what is whole scrolls away unchanged, and only once."""
    tty = open_chat(columns=40, rows=6)
    tty.type("count 60\r")
    tty.until("1 2 3")
    assert "thinking" in tty.screen.shown()
    tty.until("60")
    tty.settled()
    told = tty.screen.everything().split("> count 60\n")[1].split("\n>")[0]
    assert told.split() == [str(number) for number in range(1, 61)]
    assert all(len(row) < 40 for row in told.splitlines())


def test_what_is_typed_meanwhile_is_kept_and_sent(open_chat):
    """Entries that are made while the agent works are queued, shown, and sent in order."""
    tty = open_chat()
    tty.type("bake\r")
    tty.until("in the oven")
    tty.type("first\rsecond\rnot yet")
    typed = (
        "> bake\n"
        "→ bake() · #% in the oven · # s\n"
        "… queued: first\n"
        "… queued: second\n"
        "> not yet\n"
        "at work · step 2 · # s"
    )
    tty.until(lambda: re.sub(r"\d+%", "#%", tty.screen.shown()) == typed)
    tty.until("You said: second")
    assert tty.settled() == (
        "> bake\n"
        "✓ bake() · # s\n"
        "It says: baked\n"
        "> first\n"
        "You said: first\n"
        "> second\n"
        "You said: second\n"
        "> not yet\n"
        "your turn · /help · Esc interrupts · Ctrl+D leaves"
    )


def test_a_queued_entry_can_be_taken_back(open_chat):
    """The up arrow on an empty line takes the last queued entry back."""
    tty = open_chat()
    tty.type("bake\r")
    tty.until("in the oven")
    tty.type("wrong\r")
    tty.until("queued: wrong")
    tty.type("\x1b[A")
    tty.until(lambda: "queued" not in tty.screen.shown() and "> wrong\n" in tty.screen.shown())


def test_tab_completes_a_command(open_chat):
    """Tab completes a command as far as it is certain, and lists those that fit equally well."""
    tty = open_chat()
    tty.type("/pa\t")
    tty.until("> /pause\n")
    tty.type("\x15/RE\t")
    tty.until("/resume /redirect\n")
    tty.until("> /re\n")
    tty.type("d\t")
    tty.until("> /redirect")
    tty.type("tea\x15/q\t\r")  # the completed command is the one that is sent
    assert tty.process.wait(60) == 0


def test_tab_changes_nothing_else(open_chat):
    """Tab in a message, a path or an unknown command does nothing."""
    tty = open_chat()
    for entry in ("hello", "/etc/p", "/dance", "//pa", "say /pa"):
        tty.type(f"\x15{entry}\t")
        tty.until(f"> {entry}\n")
    tty.type("\x15\tdone")
    tty.until("> done\n")


def test_esc_interrupts(open_chat):
    """Esc stops the work within the promised time, and the conversation goes on."""
    tty = open_chat()
    tty.type("bake\r")
    tty.until("in the oven")
    tty.type("\x1b")
    tty.until("stopped: bake")
    tty.until("may have partially executed")
    assert tty.settled() == (
        "> bake\n"
        "■ interrupted; stopped: bake\n"
        "✗ bake() · stopped; it may have partially executed · # s\n"
        ">\n"
        "your turn · /help · Esc interrupts · Ctrl+D leaves"
    )
    tty.type("are you there?\r")
    tty.until("You said: are you there?")


def test_what_waits_is_sent_after_an_interruption(open_chat):
    """Esc stops the work alone: the entries behind it are sent, and what is half typed stays."""
    tty = open_chat()
    tty.type("bake\r")
    tty.until("in the oven")
    tty.type("first\rsecond\rnot yet")
    tty.until("> not yet")
    tty.type("\x1b")
    tty.until("You said: second")
    assert re.sub(r"[■✗].*\n", "", tty.settled()) == (
        "> bake\n> first\nYou said: first\n> second\nYou said: second\n"
        "> not yet\nyour turn · /help · Esc interrupts · Ctrl+D leaves"
    )


def test_input_that_is_given_back_stands_in_the_editor(open_chat):
    """What the agent had taken and will not answer is behind what is half typed, to be sent."""
    tty = open_chat(target="agent:in_company")
    tty.type("bake\r")
    tty.until("in the oven")
    tty.type("milk")
    tty.until("> milk")
    tty.type("\x1b")
    tty.until("not answered: “and tea?”")
    tty.until("> milk and tea?\nyour turn")
    tty.type(" now\r")
    tty.until("You said: milk and tea? now")


@pytest.mark.proof
@pytest.mark.alone
def test_esc_is_quick(open_chat):
    """From the key to the end of an answer, and to its line in the window, less than 0.2 s pass.

    The third of ten tries has to keep to it: what the console itself waits for is in all of them,
    a pause of the machine (0.5 s were seen) in some.
    """
    tty = open_chat()
    took = []
    for number in range(401, 411):
        tty.type(f"count {number}\r")
        tty.until(f"> count {number}\n1 2 3 ")
        began_s = time.monotonic()
        tty.type("\x1b")
        tty.until(lambda: tty.screen.lines()[-3].startswith("■ interrupted"))
        took.append(time.monotonic() - began_s)
        tty.until("your turn")
    print([round(1000 * seconds) for seconds in took], "ms from Esc to the line in the window")
    assert sorted(took)[2] < UNWOUND_S, took


def test_a_sequence_is_no_esc(open_chat):
    """Arrows, keys with Alt and pasted escape bytes interrupt nothing; a paste is cleaned."""
    tty = open_chat()
    tty.type("bake\r")
    tty.until("in the oven")
    tty.type(
        "\x1b[A\x1b[B\x1b[1;5C\x1bOP\x1b\x1b[D\x1bb\x1b[200~pasted \x1b[A\x1b bytes\n2\x1b[201~"
    )
    tty.until("pasted")
    tty.until("It says: baked")
    assert "interrupted" not in tty.settled()
    assert "> pasted ytes\n  2" in tty.screen.shown()


def test_esc_while_idle_clears_the_line(open_chat):
    """With nothing to interrupt, Esc clears what was typed, and Ctrl+Y brings it back."""
    tty = open_chat()
    tty.type("a long story")
    tty.until("a long story")
    tty.type("\x1b")
    tty.until(lambda: "a long story" not in tty.screen.shown())
    tty.type("\x19")
    tty.until("a long story")


def test_a_shielded_tool_is_told(open_chat):
    """An interruption tells what still runs and until when, and later how that ended."""
    tty = open_chat()
    tty.type("pay\r")
    tty.until("→ pay()")
    tty.type("\x1b")
    tty.until("still running: pay (shield, at most")
    tty.until("completed after the interrupt")
    assert tty.settled() == (
        "> pay\n"
        "■ interrupted; still running: pay (shield, at most # s)\n"
        "✓ pay() · completed after the interrupt · # s\n"
        ">\n"
        "your turn · /help · Esc interrupts · Ctrl+D leaves"
    )


def test_permission(open_chat):
    """A tool asks with its arguments; only y, n or always answer, and other words are kept."""
    tty = open_chat()
    tty.type("delete a.txt\r")
    tty.until("asks first")
    assert tty.settled() == (
        "> delete a.txt\n"
        '→ delete(path="a.txt") · asks first\n'
        '? May delete(path="a.txt") run?\n'
        "  y, n or always, then Enter; Esc interrupts\n"
        ">\n"
        "asks permission · step 2 · delete · # s"
    )
    tty.type("why?\r")
    tty.until("queued: why?")
    tty.type("no\r")
    tty.until("You said: why?")
    tty.type("delete b.txt\r")
    tty.until('May delete(path="b.txt") run?')
    tty.type("always\r")
    tty.until("b.txt is gone")
    tty.type("delete c.txt\r")
    tty.until("c.txt is gone")
    tty.settled()
    assert "delete may not run" in tty.screen.everything()
    assert "a.txt is gone" not in tty.screen.everything()


def test_esc_withdraws_a_question(open_chat):
    """Esc at a question is neither yes nor no: the tool does not run."""
    tty = open_chat()
    tty.type("delete a.txt\r")
    tty.until("asks first")
    tty.type("\x1b")
    tty.until("withdrawn; it did not run")
    assert "May delete" not in tty.settled()


def test_commands(open_chat):
    """The verbs are commands, help tells what each would do, and an unknown one what exists."""
    tty = open_chat(columns=100, rows=24)
    tty.type("/paus\r")
    tty.until("there is no command /paus; did you mean /pause?")
    tty.type("bake\r")
    tty.until("in the oven")
    tty.type("/help\r")
    tty.until("/cancel         Cancel: the work ends; bake is stopped")
    tty.type("/background\r")
    tty.until("1 in the background")
    tty.until("✓ helper is done, in the background")
    tty.type("count 100\r")
    tty.until("1 2 3")
    tty.type("/pause\r")
    tty.until("paused; /resume continues")
    tty.until("paused · ")
    tty.type("/resume faster\r")
    tty.until("goes on")
    tty.type("/redirect hello instead\r")
    tty.until("You said: hello instead")
    tty.type("/quit\r")
    assert tty.end() == 0


def test_text_of_others_obeys_nobody(open_chat):
    """Control sequences of a model or a tool never reach the terminal."""
    tty = open_chat()
    tty.type("hostile\r")
    tty.until("31mend")
    said = "be\ufffd[2J\ufffd]0;owned\ufffdfore\ufffd31m after\ufffd[31mend\ufffd"
    assert said in tty.settled()
    tty.type("chatter\r")
    tty.until("It says: \ufffd[2J\ufffd[31mred\ufffd]0;title\ufffd")
    tty.settled()
    shown = tty.screen.shown()
    assert "│ printed by a tool" in shown
    assert "│ and to stderr" in shown
    assert "written past Python" not in shown


def test_a_failing_agent_leaves_the_conversation(open_chat):
    """An error of the agent is told, and the next words are answered."""
    tty = open_chat()
    tty.type("crash\r")
    tty.until("the answer failed; the conversation continues")
    tty.type("hello\r")
    tty.until("You said: hello")


def test_the_agent_may_end_the_call(open_chat):
    """When the agent ends the call, the console ends too."""
    tty = open_chat()
    tty.type("goodbye\r")
    assert tty.end() == 0
    assert "Goodbye.\n■ the call is over: agent_ended" in tty.screen.everything()
    assert tty.is_restored()


def test_a_window_that_changes(open_chat):
    """After a change of size everything is drawn anew, with nothing lost."""
    tty = open_chat(columns=60, rows=12)
    tty.type("hello to a window that is rather wide for its time\r")
    tty.until("You said")
    tty.settled()
    tty.set_size(24, 9)
    tty.until(lambda: "your turn · /help · Es…" in tty.screen.shown())
    assert tty.settled() == (
        "> hello to a window\n"
        "  that is rather wide\n"
        "  for its time\n"
        "You said: hello to a\n"
        "window that is rather\n"
        "wide for its time\n"
        ">\n"
        "your turn · /help · Es…"
    )
    tty.set_size(80, 10)
    tty.until(lambda: "Ctrl+D leaves" in tty.screen.shown())
    assert tty.settled() == (
        "> hello to a window that is rather wide for its time\n"
        "You said: hello to a window that is rather wide for its time\n"
        ">\n"
        "your turn · /help · Esc interrupts · Ctrl+D leaves"
    )


def test_wide_and_joined_characters(open_chat):
    """Wide characters, marks and emoji can be typed, moved over and taken away."""
    tty = open_chat()
    tty.type("日本語 e\u0301 🙂x")
    tty.until("x")
    tty.type("\x1b[D\x7f\x7f\x7f\x7f!")
    tty.until("!x")
    assert "> 日本語!x" in tty.settled()
    assert (tty.screen.row, tty.screen.column) == (0, 9)


@pytest.mark.proof
def test_a_worker_survives_an_interrupt(open_chat):
    """The process of a worker, and what is in its memory, outlive an interrupt of its work."""
    tty = open_chat(rows=24)
    tty.type("remember one\r")
    tty.until("has one")
    [pid] = re.findall(r"pid (\d+) has one", tty.screen.everything())
    tty.type("compute\r")
    tty.until("→ compute()")
    time.sleep(0.3)  # it has begun
    tty.type("\x1b")
    tty.until("compute() · cancelled before it had any effect")
    tty.type("remember two\r")
    tty.until(f"pid {pid} has one two")


@pytest.mark.proof
def test_a_command_is_gone(open_chat):
    """What a command tool has started is gone from the process table after Esc."""
    tty = open_chat()
    tty.type("sleeper\r")
    tty.until(lambda: processes(r"\bsleep 30$"))
    own = [line.split()[0] for line in processes(r"\bsleep 30$")]
    tty.type("\x1b")
    tty.until("stopped: sleeper")
    tty.until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in own))


def test_a_conversation_goes_on(open_chat, open_tty):
    """A named conversation is kept, goes on later with its last entries, and is one at a time."""
    tty = open_chat("--conversation", "mine")
    tty.type("hello\r")
    tty.until("You said: hello")
    other = open_tty(sys.executable, "-m", "bargein", "chat", "agent:app", "--conversation", "mine")
    assert other.end() == 1
    assert "'mine' is open in another call" in other.screen.everything().replace("\n", "")
    assert other.is_restored()
    tty.type("\x04")
    assert tty.end() == 0
    assert "--conversation mine continues it" in tty.screen.everything()
    again = open_chat("--conversation", "mine")
    assert again.settled().startswith("> hello\nYou said: hello\n>")
    again.type("\x1b[A")
    again.until("\n> hello")
