"""Type checkers find each public name in the installed wheel; run by `make wheel`.

In a checkout, pyright reads the sources; of an installed package, it knows only what ``py.typed``
and the way of each import make public.
"""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
from importlib import import_module
from pathlib import Path

import bargein

SCRIPTS = Path(sysconfig.get_path("scripts"))


def imports() -> str:
    """Return a program that imports all that ``bargein`` and its modules name in ``__all__``."""
    doors = Path(str(bargein.__file__)).parent.glob("[!_]*.py")
    modules = ["bargein", "bargein.routes", *(f"bargein.{door.stem}" for door in sorted(doors))]
    return "".join(
        f"from {module} import {name} as {module.replace('.', '_')}_{name}\n"
        for module in modules
        for name in getattr(import_module(module), "__all__", ())
    )


def main(environment: Path) -> int:
    """Run pyright and mypy on the program; return 0 if neither finds anything."""
    folder = environment / "types"
    folder.mkdir(exist_ok=True)
    (folder / "names.py").write_text(imports(), "utf-8")
    (folder / "pyrightconfig.json").write_text('{"typeCheckingMode": "standard"}', "utf-8")
    python = str((environment / "bin" / "python").absolute())
    pyright = subprocess.run(
        [str(SCRIPTS / "basedpyright"), "--pythonpath", python, "--outputjson", "names.py"],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    found = [each["message"] for each in json.loads(pyright.stdout)["generalDiagnostics"]]
    mypy = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--python-executable", python, "names.py"],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    found += [line for line in mypy.stdout.splitlines() if "error:" in line]
    print(*found[:20], sep="\n")
    print(f"{imports().count('import ')} public names for type checkers: {len(found)} faults")
    return 1 if found or mypy.returncode else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
