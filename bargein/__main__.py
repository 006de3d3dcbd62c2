"""The command line: ``python -m bargein``, or ``bargein``."""

import sys

from bargein.cli import main

if __name__ == "__main__":
    sys.exit(main())
