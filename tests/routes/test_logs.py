"""Our logger raises nothing that the set-up of the logs raises, and is structlog's otherwise."""

from __future__ import annotations

import io
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import structlog
import trio
from structlog.testing import capture_logs

from bargein.routes.logs import get_logger

log = get_logger()
"""Made at import, as in our modules."""


async def cancelled() -> BaseException:
    """Return what trio raises in a task that is cancelled."""
    with trio.CancelScope() as scope:
        scope.cancel()
        try:
            await trio.lowlevel.checkpoint()
        except trio.Cancelled as error:
            raised = error
            raise
    return raised


async def test_what_stops_a_program_passes():
    """A log hides neither Ctrl+C nor a cancellation."""
    for error in (KeyboardInterrupt(), SystemExit(), await cancelled()):

        def processor(*_: Any, error: BaseException = error) -> Any:
            raise error

        structlog.configure(processors=[processor])
        with pytest.raises(type(error)):
            log.info("anything")


@pytest.mark.parametrize("is_cached", [False, True])
def test_the_configuration_of_the_first_line_counts(is_cached):
    """What is configured after the import holds, and so does capture_logs()."""
    out = io.StringIO()
    structlog.configure(
        processors=[structlog.processors.add_log_level, structlog.processors.JSONRenderer()],
        logger_factory=structlog.PrintLoggerFactory(out),
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        cache_logger_on_first_use=is_cached,
    )
    late = get_logger()
    late.debug("quiet")
    late.warning("loud", place="here")
    assert out.getvalue() == '{"place": "here", "event": "loud", "level": "warning"}\n'
    with capture_logs() as logs:
        late.error("captured")
    assert logs == [{"event": "captured", "log_level": "error"}]


def test_the_place_of_a_line_is_that_of_its_caller():
    """Loggers of the standard library have the name of the module that logs."""
    seen: list[Any] = []

    def see(logger: Any, method: str, event: Any) -> Any:
        seen.append((logger.name, event["filename"], event["func_name"]))
        raise structlog.DropEvent

    places = structlog.processors.CallsiteParameterAdder(
        {
            structlog.processors.CallsiteParameter.FILENAME,
            structlog.processors.CallsiteParameter.FUNC_NAME,
        }
    )
    structlog.configure(processors=[places, see], logger_factory=structlog.stdlib.LoggerFactory())
    log.info("anything")
    assert seen == [
        (__name__, Path(__file__).name, "test_the_place_of_a_line_is_that_of_its_caller")
    ]


def test_the_exception_that_is_handled_is_logged():
    """exception() has it, without being told."""
    with capture_logs() as logs:
        try:
            raise LookupError
        except LookupError:
            log.exception("failed")
    assert logs == [{"event": "failed", "exc_info": True, "log_level": "error"}]


TWICE = """
import structlog
from bargein.routes.logs import get_logger

def fail(*_):
    raise LookupError("what somebody said")

structlog.configure(processors=[fail])
log = get_logger()
log.info("one")
log.info("two")
"""


@pytest.mark.proof
def test_standard_error_says_once_what_is_wrong(tmp_path):
    """It says where the set-up fails, at the first line, and nothing that people said."""
    (tmp_path / "twice.py").write_text(TWICE)
    done = subprocess.run(
        [sys.executable, "twice.py"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stderr == (
        "error: a log line is lost, and so may be others: its set-up raised LookupError at "
        f'File "{tmp_path}/twice.py", line 6\n'
    )
