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
    """It holds up to its last second, and ten seconds for clocks that differ."""
    token = sign_token(SECRET, "ada", lasts_s=600, rights=["watch", "shop:buy"], now_s=NOW_S)
    ada = Identity("ada", frozenset({"watch", "shop:buy"}))
    assert read_token(SECRET, token, now_s=NOW_S) == ada
    assert read_token(SECRET, token, now_s=NOW_S + 609.9) == ada
    with pytest.raises(BadTokenError, match="expired"):
        read_token(SECRET, token, now_s=NOW_S + 610)


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


def test_a_token_has_one_text():
    """The unused bits at the end of base64url are zero, so no second text is the same token."""
    token = sign_token(SECRET, "ada", lasts_s=60, now_s=NOW_S)
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    valid = [end for end in alphabet if _is_valid(token[:-1] + end)]
    assert valid == [token[-1]]


def _is_valid(token):
    try:
        read_token(SECRET, token, now_s=NOW_S)
    except BadTokenError:
        return False
    return True


@pytest.mark.parametrize("crit", [["b64"], ["exp"], [], None, "exp", {}])
def test_an_extension_that_must_be_understood_makes_it_invalid(crit):
    """`crit` in the header, whatever it lists (RFC 7515, section 4.1.11)."""
    assert why_not(made({**HS256, "crit": crit, "b64": False}, ADA)).startswith("crit")


@pytest.mark.parametrize(
    ("header", "claims"),
    [
        (b'{"alg":"none","alg":"HS256"}', ADA),
        (b'{"alg":"HS256","alg":"none"}', ADA),
        (b'{"alg":"HS256","crit":["x"],"crit":[]}', ADA),
        (HS256, b'{"sub":"ada","sub":"root","exp":1800000060}'),
        (HS256, b'{"sub":"ada","exp":1,"exp":1800000060}'),
        (HS256, b'{"sub":"ada","exp":1800000060,"x":{"y":1,"y":2}}'),
    ],
)
def test_a_name_that_is_repeated_has_two_readings(header, claims):
    """Other readers may take the other one, so the token is invalid."""
    assert why_not(made(header, claims)) == "a name in it is repeated"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-8-sig", "utf-16-le", "latin-1"])
def test_claims_are_utf_8(encoding):
    """As RFC 7519 says; no other encoding is guessed."""
    claims = json.dumps({**ADA, "sub": "äda"}, ensure_ascii=False)
    why_not(made(HS256, claims.encode(encoding)))


@pytest.mark.parametrize(
    ("claims", "holds"),
    [
        ({"exp": NOW_S - 9.5}, True),
        ({"exp": NOW_S - 10}, False),
        ({"exp": 1_800_000_060.25}, True),
        ({"nbf": NOW_S + 10}, True),
        ({"nbf": NOW_S + 10.5}, False),
        ({"nbf": 1e11}, False),
        ({"iat": NOW_S + 9}, True),
    ],
)
def test_clocks_may_be_ten_seconds_apart(claims, holds):
    """Neither more at `exp` nor at `nbf`; both may be fractions."""
    assert _is_valid(made(HS256, {**ADA, **claims})) == holds


@pytest.mark.parametrize(
    ("claims", "audience", "holds"),
    [
        ({}, None, True),
        ({"aud": "voice"}, "voice", True),
        ({"aud": ["shop", "voice"]}, "voice", True),
        ({"aud": "voice"}, None, False),
        ({"aud": []}, None, False),
        ({}, "voice", False),
        ({"aud": "shop"}, "voice", False),
        ({"aud": "voices"}, "voice", False),
        ({"aud": []}, "voice", False),
        ({"aud": None}, "voice", False),
        ({"aud": None}, None, False),
        ({"aud": ["voice", 7]}, "voice", False),
        ({"aud": {"voice": 1}}, "voice", False),
    ],
)
def test_a_token_for_another_service_is_invalid(claims, audience, holds):
    """With an audience it must be named, and without one a token that names any is refused."""
    token = made(HS256, {**ADA, **claims})
    if holds:
        assert read_token(SECRET, token, audience=audience, now_s=NOW_S).user == "ada"
        return
    with pytest.raises(BadTokenError, match="aud"):
        read_token(SECRET, token, audience=audience, now_s=NOW_S)


@pytest.mark.parametrize(
    ("claims", "holds"),
    [({"iss": "shop"}, True), ({}, False), ({"iss": "sho"}, False), ({"iss": ["shop"]}, False)],
)
def test_a_token_of_another_issuer_is_invalid(claims, holds):
    """With an issuer, exactly that one."""
    token = made(HS256, {**ADA, **claims})
    if holds:
        assert read_token(SECRET, token, issuer="shop", now_s=NOW_S).user == "ada"
        return
    with pytest.raises(BadTokenError, match="another issuer"):
        read_token(SECRET, token, issuer="shop", now_s=NOW_S)


def test_what_is_signed_for_an_audience_is_read_by_it():
    """`sign_token` writes what `read_token` asks for."""
    token = sign_token(SECRET, "ada", lasts_s=60, audience="voice", issuer="shop")
    assert read_token(SECRET, token, audience="voice", issuer="shop").user == "ada"


@pytest.mark.parametrize(
    ("claims", "why"),
    [
        ({**ADA, "exp": None}, "needs exp"),
        ({"sub": "ada"}, "needs exp"),
        ({**ADA, "exp": "1900000000"}, "needs exp"),
        ({**ADA, "exp": True}, "needs exp"),
        (b'{"sub": "ada", "exp": NaN}', "no JSON"),
        (b'{"sub": "ada", "exp": Infinity}', "no JSON"),
        (b'{"sub": "ada", "exp": 1e999}', "needs exp"),
        (b'{"sub": "ada", "exp": 1' + b"0" * 2000 + b"}", "needs exp"),
        (b'{"sub": "ada", "exp": -1e999}', "needs exp"),
        ({**ADA, "exp": [NOW_S + 60]}, "needs exp"),
        ({**ADA, "nbf": None}, "needs nbf"),
        (b'{"sub": "ada", "exp": 1800000060, "nbf": NaN}', "no JSON"),
        ({**ADA, "sub": "a\ud800"}, "sub, the user"),
        ({**ADA, "exp": NOW_S - 10}, "expired"),
        ({**ADA, "exp": -1}, "expired"),
        ({**ADA, "exp": NOW_S + 400 * 86_400}, "too far ahead"),
        ({**ADA, "nbf": NOW_S + 11}, "not valid yet"),
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
    token = sign_token("abcdefgh" * 4, "ada", lasts_s=60, now_s=NOW_S)
    assert why_not(token) == "not signed with this secret"


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"secret": "short"}, "at least 32 bytes"),
        ({"secret": "x" * 64}, "one character repeated"),
        ({"secret": bytes(32)}, "one character repeated"),
        ({"audience": ""}, "audience"),
        ({"issuer": "a\nb"}, "issuer"),
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
