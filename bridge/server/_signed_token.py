"""Signed tokens: who a caller is and what it may do, until when.

A token is a JSON Web Token (RFC 7519) signed with HS256 (RFC 7515, RFC 7518, section 3.2).

Rule 1. The algorithm is fixed: a token cannot choose how it is verified (RFC 8725, section 3.1).
Rule 2. The signature is compared in constant time, before any of the payload is read.
Rule 3. A token without an expiry, or with one too far ahead, is invalid.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import json
import math
import re
import time
from collections.abc import Collection
from typing import Any

from bargein.routes import BargeinError

from .._call_request import Identity
from ..validation.arguments import check_strings

MIN_SECRET_BYTES = 32
"""HS256 needs a key of at least 256 bits (RFC 7518, section 3.2)."""

MAX_TOKEN_CHARS = 4096
"""The longest token that is read: a quarter of the head of a request."""

MAX_LIFE_S = 366 * 86_400.0
"""The longest life of a token; for longer, use ``--token``."""

MAX_TIME_S = 1e12
"""Beyond any year that matters."""

MAX_USER_CHARS = 256
MAX_RIGHTS = 32

_RIGHT = re.compile(r"[a-z][a-z0-9_.:-]{0,63}")
_BASE64URL = re.compile(r"[A-Za-z0-9_-]+")
_HEADER = {"alg": "HS256", "typ": "JWT"}


class BadTokenError(BargeinError, ValueError):
    """An invalid token; the text says why and never quotes it."""


class BadSecretError(BargeinError, ValueError):
    """A secret that is too short to sign with."""


def check_secret(secret: str | bytes) -> bytes:
    """Return a secret as bytes.

    Raises:
        BadSecretError: It is too short to sign with.
    """
    key = secret.encode() if isinstance(secret, str) else secret
    if len(key) < MIN_SECRET_BYTES:
        raise BadSecretError(
            f"the secret of signed tokens needs at least {MIN_SECRET_BYTES} bytes, not {len(key)}; "
            "make one with: openssl rand -hex 32"
        )
    return key


def sign_token(
    secret: str | bytes,
    user: str,
    *,
    lasts_s: float,
    rights: Collection[str] = (),
    now_s: float | None = None,
) -> str:
    """Return a token that names a user until it expires.

    Args:
        secret: The secret that signs and verifies it, at least 32 bytes.
        user: The user, 1 to 256 characters.
        lasts_s: Seconds until it expires, above 0 and up to 366 days.
        rights: What its bearer may do; see ``Identity``.
        now_s: The current time, in seconds since the epoch; ``None`` reads the clock.

    Raises:
        TypeError: `rights` is not a list of strings.
        ValueError: An argument is invalid.
    """
    check_strings("sign_token(rights=)", rights)
    key = check_secret(secret)
    if not 0 < lasts_s <= MAX_LIFE_S:
        days = MAX_LIFE_S / 86_400
        raise ValueError(f"a token lasts more than 0 s and up to {days:g} days, not {lasts_s!r} s")
    issued_s = int(time.time() if now_s is None else now_s)
    claims = {
        "sub": user,
        "iat": issued_s,
        "exp": issued_s + max(1, int(lasts_s)),
        "rights": sorted(rights),
    }
    try:
        _identity(claims)
    except BadTokenError as error:
        raise ValueError(str(error)) from None
    signed = f"{_encode(_json(_HEADER))}.{_encode(_json(claims))}"
    token = f"{signed}.{_encode(_signature(key, signed))}"
    if len(token) > MAX_TOKEN_CHARS:
        raise ValueError(f"a token has at most {MAX_TOKEN_CHARS} characters; give fewer rights")
    return token


def read_token(secret: str | bytes, token: str, *, now_s: float | None = None) -> Identity:
    """Return the user that a token names.

    Args:
        secret: The secret it was signed with.
        token: The token, which may be anything.
        now_s: The current time, in seconds since the epoch; ``None`` reads the clock.

    Raises:
        BadTokenError: It was not signed with this secret, or has expired.
    """
    key = check_secret(secret)
    parts = token.split(".")
    if len(token) > MAX_TOKEN_CHARS or len(parts) != 3:
        raise BadTokenError("not a signed token")
    head, body, mark = parts
    expected = _signature(key, f"{head}.{body}")
    if not hmac.compare_digest(_decode(mark), expected):
        raise BadTokenError("not signed with this secret")
    if _object(head).get("alg") != "HS256":
        raise BadTokenError("only HS256")
    claims = _object(body)
    now = time.time() if now_s is None else now_s
    expires_s = _time(claims, "exp")
    if now >= expires_s:
        raise BadTokenError("expired")
    if expires_s - now > MAX_LIFE_S:
        raise BadTokenError("exp is too far ahead")
    if "nbf" in claims and now < _time(claims, "nbf"):
        raise BadTokenError("not valid yet")
    return _identity(claims)


def _identity(claims: dict[str, Any]) -> Identity:
    user, rights = claims.get("sub"), claims.get("rights", [])
    if not isinstance(user, str) or not 0 < len(user) <= MAX_USER_CHARS or not user.isprintable():
        raise BadTokenError(
            f"sub, the user, has 1 to {MAX_USER_CHARS} printable characters, not {user!r:.40}"
        )
    if (
        not isinstance(rights, list)
        or len(rights) > MAX_RIGHTS
        or not all(isinstance(one, str) and _RIGHT.fullmatch(one) for one in rights)
    ):
        raise BadTokenError(
            f"rights are up to {MAX_RIGHTS} words of a-z, 0-9 and _.:- that begin with a letter, "
            f"not {rights!r:.80}"
        )
    return Identity(user, frozenset(rights))


def _signature(key: bytes, signed: str) -> bytes:
    return hmac.digest(key, signed.encode(errors="replace"), "sha256")


def _time(claims: dict[str, Any], name: str) -> float:
    value = claims.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool):
        value = math.nan
    if not -MAX_TIME_S < value < MAX_TIME_S:  # which NaN is not
        raise BadTokenError(f"a token needs {name}, in seconds since the epoch")
    return float(value)


def _json(value: dict[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _object(part: str) -> dict[str, Any]:
    try:
        value = json.loads(_decode(part))
    except (ValueError, RecursionError):
        raise BadTokenError("no JSON in it") from None
    if not isinstance(value, dict):
        raise BadTokenError("no JSON object in it")
    return value


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    if not _BASE64URL.fullmatch(text):
        raise BadTokenError("no base64url")
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except binascii.Error:
        raise BadTokenError("no base64url") from None
