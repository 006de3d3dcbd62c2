"""The tokens by which an application of Vonage's says who it is (RFC 7519, RS256).

Source: Vonage's page on authentication, and its Python package ``vonage-jwt``.
"""

from __future__ import annotations

import base64
import json
import time
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, final

from bargein.bridge import CallActionError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

VONAGE_APPLICATION_VARIABLE = "VONAGE_APPLICATION_ID"
VONAGE_PRIVATE_KEY_VARIABLE = "VONAGE_PRIVATE_KEY"  # the name of a variable, not a key

LASTS_S = 15 * 60
"""How long a token is good, in seconds: as long as those of Vonage's package."""

_BEGIN = "-----BEGIN"


@final
class ApplicationTokens:
    """Makes the tokens of one application."""

    __slots__ = ("_application", "_given", "_key")

    def __init__(self, application: str, private_key: str) -> None:
        """Keep the application; nothing is read before the first token.

        Args:
            application: Its id; empty for none.
            private_key: Its private key in PEM, or the path of a file that has it; empty for none.
        """
        self._application = application
        self._given = private_key
        self._key: RSAPrivateKey | None = None

    def make(self) -> str:
        """Return a token that is good from now on.

        Raises:
            CallActionError: There is no application, or its key is none; ``advice`` says which.
            ImportError: ``cryptography`` is not installed (extra ``phone``).
        """
        from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
        from cryptography.hazmat.primitives.hashes import SHA256

        if not self._application or not self._given:
            raise _unable(
                f"calls need {VONAGE_APPLICATION_VARIABLE} and {VONAGE_PRIVATE_KEY_VARIABLE}, or "
                "application_id= and private_key="
            )
        if self._key is None:
            self._key = self._read_key()
        now_s = int(time.time())
        claims = {
            "application_id": self._application,
            "iat": now_s,
            "exp": now_s + LASTS_S,
            "jti": token_hex(16),
        }
        signed = f"{_part({'alg': 'RS256', 'typ': 'JWT'})}.{_part(claims)}"
        return f"{signed}.{_base64url(self._key.sign(signed.encode(), PKCS1v15(), SHA256()))}"

    def _read_key(self) -> RSAPrivateKey:
        from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        try:
            key = load_pem_private_key(self._pem(), None)
        except (OSError, ValueError, TypeError) as error:
            raise _unable(
                f"{VONAGE_PRIVATE_KEY_VARIABLE} is neither the private key of the application in "
                f"PEM, nor a file that has it ({type(error).__name__})"
            ) from None
        if not isinstance(key, RSAPrivateKey):
            raise _unable(f"{VONAGE_PRIVATE_KEY_VARIABLE} is no RSA key")
        return key

    def _pem(self) -> bytes:
        if _BEGIN in self._given:
            return self._given.replace("\\n", "\n").encode()
        return Path(self._given).read_bytes()


def _unable(advice: str) -> CallActionError:
    return CallActionError("calls cannot be made now", cause="unable", advice=advice)


def _part(fields: dict[str, object]) -> str:
    return _base64url(json.dumps(fields, separators=(",", ":")).encode())


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
