"""Behind a proxy: whose word about a caller's address is believed."""

import pytest
from websockets.datastructures import Headers

from bargein.bridge.server._proxies import TrustedProxies

TRUSTED = TrustedProxies(["10.0.0.0/8", "::1"])


def seen(peer="10.0.0.1", *, secure=False, **headers):
    fields = Headers()
    for name, values in headers.items():
        for value in [values] if isinstance(values, str) else values:
            fields[name.replace("_", "-")] = value
    return TRUSTED.look(peer, secure, fields)


@pytest.mark.parametrize(
    ("forwarded_for", "peer"),
    [
        ("203.0.113.7", "203.0.113.7"),
        ("6.6.6.6, 203.0.113.7", "203.0.113.7"),
        ("6.6.6.6, 203.0.113.7, 10.0.0.9", "203.0.113.7"),
        (["6.6.6.6", "203.0.113.7, 10.0.0.9"], "203.0.113.7"),
        ("10.0.0.8, 10.0.0.9", "10.0.0.8"),
        ("203.0.113.7:4711", "203.0.113.7"),
        ("[2001:db8::7]:4711", "2001:db8::7"),
        ("2001:db8::7", "2001:db8::7"),
        ("::ffff:203.0.113.7", "203.0.113.7"),
        ("203.0.113.7, unknown", "10.0.0.1"),
        ("203.0.113.7, nonsense, 10.0.0.9", "10.0.0.9"),
        ("", "10.0.0.1"),
    ],
)
def test_the_last_address_that_no_proxy_has_is_the_callers(forwarded_for, peer):
    """What stands before it was written by the caller, and is not believed."""
    assert seen(X_Forwarded_For=forwarded_for).peer == peer


@pytest.mark.parametrize(
    ("forwarded", "expected"),
    [
        ("for=203.0.113.7;proto=https", ("203.0.113.7", True)),
        ('For="[2001:db8::7]:4711";Proto=HTTPS;by=10.0.0.1', ("2001:db8::7", True)),
        ("for=6.6.6.6, for=203.0.113.7;proto=http", ("203.0.113.7", False)),
        ("for=_hidden", ("10.0.0.1", False)),
    ],
)
def test_forwarded_is_read_as_well(forwarded, expected):
    """The header of RFC 7239, with ports, quotes and upper case."""
    assert seen(Forwarded=forwarded) == expected


def test_a_stranger_is_not_believed():
    """From any other address the headers count for nothing."""
    assert seen("203.0.113.9", X_Forwarded_For="1.2.3.4", X_Forwarded_Proto="https") == (
        "203.0.113.9",
        False,
    )
    assert seen("", X_Forwarded_For="1.2.3.4").peer == ""


def test_the_last_proto_counts():
    """What the trusted proxy has added, behind what the caller has written."""
    assert seen(X_Forwarded_Proto="https").secure
    assert not seen(X_Forwarded_Proto="https, http").secure
    assert seen(secure=True).secure


@pytest.mark.parametrize("net", ["", "proxy.example", "10.0.0.1/8", "10.0.0.0/40"])
def test_a_trusted_proxy_is_an_address_or_a_net(net):
    """Anything else is refused before the server starts."""
    with pytest.raises(ValueError, match="trusted proxy"):
        TrustedProxies([net])
