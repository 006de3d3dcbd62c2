"""Runs README's test in an empty folder, as its reader does; run by `make wheel`.

The environment has the wheel and its extra `testing`, and nothing else.
"""

import os
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

_BLOCK = re.compile(r"^```(python|toml)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# (\w+\.py)\n")


def run_tests() -> tuple[int, str]:
    """Run pytest in this folder; return its exit code and what it says."""
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "test_agent.py"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return ran.returncode, ran.stdout + ran.stderr


def check(readme: Path) -> None:
    """Save the files of README; the test passes with its setting, and without is answered."""
    settings = ""
    for language, source in _BLOCK.findall(readme.read_text("utf-8")):
        if language == "toml":
            settings += source
        elif file := _FILE.match(source):
            Path(file[1]).write_text(source, "utf-8")
    code, said = run_tests()
    assert code == 1, said
    assert "    [tool.pytest.ini_options]\n    trio_mode = true\n" in said, said
    Path("pyproject.toml").write_text(settings, "utf-8")
    code, said = run_tests()
    assert code == 0, said
    assert "1 passed" in said, said
    print("README's test runs with the extra testing alone")


if __name__ == "__main__":
    given = Path(sys.argv[1]).resolve()
    # Outside of the checkout, whose own settings pytest would find above a folder in it.
    with TemporaryDirectory() as folder:
        os.chdir(folder)
        check(given)
        os.chdir(given.parent)
