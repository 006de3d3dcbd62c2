"""What the program says besides the conversation."""

import io
import os
import sys

import pytest
import structlog
import trio

from bargein.bridge.console._captured_output import log_to, opened_log, stray_output


@pytest.fixture
def _own_logs():
    """Leave the configuration of logs as it was."""
    before = structlog.get_config()
    yield
    structlog.configure(**before)


@pytest.mark.usefixtures("_own_logs")
async def test_warnings_are_shown():
    """Logs go to the file; its warnings are shown too, cleaned, in words where there are some."""
    file, shown = io.StringIO(), []
    log_to(file, "info", pii=False, show=lambda line: shown.append(line.text))
    log = structlog.get_logger()
    log.info("verb_used", verb="cancel")
    log.warning("odd\x1b[2J_thing", pii_words="secret")
    log.warning("tool_abandoned", tool="pay")
    log.warning("chain_goes_nowhere", route=".stream(talk)", hint="add .broadcast()")
    log.error("stage_failed")  # an event tells it
    await trio.to_thread.run_sync(lambda: log.warning("from_a_thread"))
    await trio.sleep(0.01)
    assert shown == [
        "odd thing",
        "pay does not stop; it was given up, and may still run",
        "chain goes nowhere\n  .stream(talk)\n  add .broadcast()",
        "from a thread",
    ]
    assert len(file.getvalue().splitlines()) == 6
    assert "secret" not in file.getvalue()


@pytest.mark.usefixtures("_own_logs")
async def test_a_warning_of_a_thread_is_shown_though_no_other_came_before():
    """What blocks the event loop is shown in words, with its place, once the loop turns again."""
    shown: list[str] = []
    log_to(io.StringIO(), "info", pii=False, show=lambda line: shown.append(line.text))
    log = structlog.get_logger()
    log.info("call_started")
    await trio.to_thread.run_sync(lambda: log.warning("event_loop_blocked", place="agent.py:7"))
    await trio.sleep(0.01)
    assert shown == ["agent.py:7 blocks everything else; let it await, or run in a thread"]


@pytest.mark.usefixtures("_own_logs")
async def test_an_exception_is_shown_whole():
    """The developer reads what it says, and the line that raised it, below the warning."""
    shown: list[str] = []
    log_to(io.StringIO(), "info", pii=False, show=lambda line: shown.append(line.text))
    try:
        raise KeyError("tea")
    except KeyError:
        structlog.get_logger().exception("sink_failed")
    (text,) = shown
    head, kind, said, place = text.splitlines()
    assert (head, kind, said) == ("sink failed", "  KeyError", "  'tea'")
    assert "test_stray.py" in place
    assert 'raise KeyError("tea")' in place


async def test_what_others_print(tmp_path):
    """What is printed is shown line by line; what is written past Python goes to the log."""
    shown = []
    descriptors = [os.fstat(number) for number in (1, 2)]
    with opened_log(tmp_path / "sub" / "chat.log") as (log, where):
        assert where == tmp_path / "sub" / "chat.log"
        with stray_output(log, lambda line: shown.append(line.text)):
            print("one\x1b[2J\ntwo")
            print("no end", end="", file=sys.stderr)
            os.write(2, b"native\n")
            await trio.sleep(0.01)
            assert shown == ["one", "two"]
        await trio.sleep(0.01)
    assert shown == ["one", "two", "no end"]
    assert (tmp_path / "sub" / "chat.log").read_text() == "native\n"
    assert (tmp_path / "sub" / "chat.log").stat().st_mode & 0o077 == 0
    assert [os.fstat(number) for number in (1, 2)] == descriptors


def test_a_log_without_a_place(monkeypatch):
    """Where the user's folder cannot be written to, there is no log, and that is no error."""
    monkeypatch.setenv("XDG_STATE_HOME", "/dev/null")
    with opened_log(None) as (log, where):
        assert where is None
        log.write("nothing")
