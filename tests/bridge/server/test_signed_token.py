"""Signed tokens: whom they name, and every way in which they do not hold."""

import base64
import hashlib
import hmac
import json

import pytest

from bargein import Identity
from bargein.server import BadTokenError, read_token, sign_token

SECRET = "0123456789abcdef0123456789abcdef"
NOW_S = 1_800_000_000.0


def made(header, claims, *, secret=SECRET):
    """Sign anything, as somebody who has the secret and ill will could."""

    def part(value):
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        return base64.urlsafe_b64encode(data).rstrip(b"=").decode()

    signed = f"{part(header)}.{part(claims)}"
    mark = hmac.digest(secret.encode(), signed.encode(), hashlib.sha256)
    return f"{signed}.{part(mark)}"


HS256 = {"alg": "HS256", "typ": "JWT"}
ADA = {"sub": "ada", "exp": NOW_S + 60, "rights": ["watch"]}


def why_not(token, *, secret=SECRET):
    with pytest.raises(BadTokenError) as caught:
        read_token(secret, token, now_s=NOW_S)
    return str(caught.value)


def test_a_token_names_a_user_and_its_rights_until_it_expires():
    """It holds up to its last second, and no longer."""
    token = sign_token(SECRET, "ada", lasts_s=600, rights=["watch", "shop:buy"], now_s=NOW_S)
    ada = Identity("ada", frozenset({"watch", "shop:buy"}))
    assert read_token(SECRET, token, now_s=NOW_S) == ada
    assert read_token(SECRET, token, now_s=NOW_S + 599.9) == ada
    with pytest.raises(BadTokenError, match="expired"):
        read_token(SECRET, token, now_s=NOW_S + 600)


def test_a_token_of_any_other_maker_is_read():
    """It is a JSON Web Token; claims that we do not know are ignored."""
    token = made({"typ": "JWT", "alg": "HS256", "kid": "1"}, {**ADA, "iss": "shop", "nbf": NOW_S})
    assert read_token(SECRET, token, now_s=NOW_S).user == "ada"


@pytest.mark.parametrize("alg", ["none", "None", "HS512", "RS256", "", None, 1])
def test_a_token_cannot_choose_how_it_is_checked(alg):
    """Only HS256, whatever the header says, and also if it was signed well."""
    assert why_not(made({**HS256, "alg": alg}, ADA)) == "only HS256"


def test_a_token_without_signature_is_none():
    """The classic: alg none and nothing behind the last dot."""
    head, body, _ = made({"alg": "none"}, ADA).split(".")
    assert why_not(f"{head}.{body}.") == "no base64url"
    assert why_not(f"{head}.{body}") == "not a signed token"


def test_every_changed_character_breaks_it():
    """No character of header or claims can be changed."""
    token = sign_token(SECRET, "ada", lasts_s=60, now_s=NOW_S)
    for i in range(token.rindex(".")):
        if token[i] != ".":
            other = "A" if token[i] != "A" else "B"
            assert why_not(token[:i] + other + token[i + 1 :]) == "not signed with this secret"


@pytest.mark.parametrize(
    ("claims", "why"),
    [
        ({**ADA, "exp": None}, "needs exp"),
        ({"sub": "ada"}, "needs exp"),
        ({**ADA, "exp": "1900000000"}, "needs exp"),
        ({**ADA, "exp": True}, "needs exp"),
        (b'{"sub": "ada", "exp": NaN}', "needs exp"),
        (b'{"sub": "ada", "exp": Infinity}', "needs exp"),
        ({**ADA, "exp": NOW_S}, "expired"),
        ({**ADA, "exp": -1}, "expired"),
        ({**ADA, "exp": NOW_S + 400 * 86_400}, "too far ahead"),
        ({**ADA, "nbf": NOW_S + 1}, "not valid yet"),
        ({**ADA, "nbf": "x"}, "needs nbf"),
        ({**ADA, "sub": ""}, "sub, the user"),
        ({**ADA, "sub": "a\nb"}, "sub, the user"),
        ({**ADA, "sub": "x" * 257}, "sub, the user"),
        ({**ADA, "sub": 7}, "sub, the user"),
        ({**ADA, "rights": "watch"}, "rights"),
        ({**ADA, "rights": ["Watch"]}, "rights"),
        ({**ADA, "rights": [1]}, "rights"),
        ({**ADA, "rights": ["a"] * 33}, "rights"),
        ([], "no JSON object"),
        (b"\xff", "no JSON"),
        (b"[" * 2000, "no JSON"),
    ],
)
def test_claims_are_strict(claims, why):
    """A signature is not enough: expiry, user and rights must be what they should be."""
    assert why in why_not(made(HS256, claims))


@pytest.mark.parametrize("token", ["", ".", "..", "a.b", "a.b.c.d", "é.é.é", "\ud800.a.b", "=.=.="])
def test_what_is_no_token_is_refused(token):
    """Any text ends in the one error."""
    why_not(token)


def test_a_long_token_is_not_looked_at():
    """Above 4096 characters nothing is decoded or hashed."""
    assert why_not("a" * 4095 + ".b.c") == "not a signed token"


def test_another_secret_signs_other_tokens():
    """A token of another secret does not hold."""
    token = sign_token("x" * 32, "ada", lasts_s=60, now_s=NOW_S)
    assert why_not(token) == "not signed with this secret"


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"secret": "short"}, "at least 32 bytes"),
        ({"lasts_s": 0}, "more than 0"),
        ({"lasts_s": float("nan")}, "more than 0"),
        ({"lasts_s": 1e9}, "up to"),
        ({"user": ""}, "the user"),
        ({"rights": ["No"]}, "rights"),
    ],
)
def test_what_cannot_be_signed_says_why(options, why):
    """Mistakes are told where the token is made."""
    with pytest.raises(ValueError, match=why):
        sign_token(**{"secret": SECRET, "user": "ada", "lasts_s": 60, **options})
