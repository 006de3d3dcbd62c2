"""``bargein token``: makes a signed token for a caller."""

from __future__ import annotations

import argparse
import os
import sys

from ..server import sign_token
from ._option_values import as_duration
from ._output import complain

SECRET_VARIABLE = "BARGEIN_TOKEN_SECRET"  # the name of a variable, not a secret


def add_token(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to a command line."""
    parser = commands.add_parser(
        "token",
        help="make a signed token for a caller",
        description="Prints a token that lets a user call until it expires.  Set the secret that "
        f"signs it in {SECRET_VARIABLE}, for this command and for serve.",
    )
    parser.add_argument("--user", required=True, help="the user that the token names")
    parser.add_argument(
        "--for",
        dest="lasts_s",
        type=as_duration,
        required=True,
        metavar="TIME",
        help="how long the token is valid, such as 90s, 10m, 8h or 30d",
    )
    parser.add_argument(
        "--right",
        action="append",
        default=[],
        metavar="WORD",
        help="what the user may do: watch, control, operator, metrics, or a word of your app; "
        "repeat it for more",
    )
    parser.set_defaults(command=_make)


def _make(options: argparse.Namespace) -> int:
    secret = os.environ.get(SECRET_VARIABLE)
    if not secret:
        complain(
            f"error: set {SECRET_VARIABLE}, the same as for serve; make one with: "
            "openssl rand -hex 32\n"
        )
        return 1
    try:
        token = sign_token(secret, options.user, lasts_s=options.lasts_s, rights=options.right)
    except ValueError as error:
        complain(f"error: {error}\n")
        return 2
    sys.stdout.write(f"{token}\n")
    return 0
