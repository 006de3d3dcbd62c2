"""Strangers: what a public server asks of them, and what it lets them do."""

import re

import pytest
import trio

from bargein import App, Identity, Refusal
from bargein.client import CallRefusedError, ErrorMessage, VerbReceipt
from bargein.server import UnguardedError, open_server, sign_token

SECRET = "a secret of thirty-two bytes or more"
TOKEN = "0123456789abcdef"


async def silent(call):
    pass


async def test_a_public_server_does_not_start_unguarded():
    """On an address of others it refuses to start, and says what would do."""
    with pytest.raises(UnguardedError, match=r"--token.*admit=.*--insecure"):
        async with open_server(App(silent), host="0.0.0.0", port=0):
            pass
    with pytest.raises(UnguardedError, match=r"voice\.example"):
        async with open_server(App(silent), port=0, host_names=["voice.example"]):
            pass


@pytest.mark.parametrize(
    "name",
    ["https://voice.example", "voice.example:443", "voice.example/", "*.example", "[::1]", ""],
)
async def test_a_host_name_that_no_host_equals_is_an_error(name: str):
    """The server would refuse every caller, and the operator would not know why."""
    with pytest.raises(ValueError, match=rf"is a bare name .*, not {re.escape(repr(name))}$"):
        async with open_server(App(silent), port=0, host_names=[name], insecure=True):
            pass


@pytest.mark.parametrize(
    "name", ["voice.example", "voice.example.", "localhost", "::1", "10.0.0.1"]
)
async def test_a_host_name_may_be_an_address(name: str):
    """A name, with or without a dot at its end, or an address."""
    async with open_server(App(silent), port=0, host_names=[name], insecure=True):
        pass


@pytest.mark.parametrize("name", ["token", "metrics_token"])
@pytest.mark.parametrize("empty", ["", " "])
async def test_an_empty_token_keeps_nobody_out(name: str, empty: str):
    """A variable that is not set must not open a server to everybody."""
    with pytest.raises(ValueError, match=f"^{name} is empty"):
        async with open_server(App(silent), host="0.0.0.0", port=0, **{name: empty}):
            pass


@pytest.mark.parametrize("name", ["token", "metrics_token"])
@pytest.mark.parametrize("short", ["s3cret", TOKEN[:-1], f"{TOKEN[:-1]} ", "a" * 40])
@pytest.mark.parametrize("public", [{"host": "0.0.0.0"}, {"trusted_proxies": ["127.0.0.1"]}])
async def test_a_public_server_needs_tokens_that_nobody_guesses(name: str, short: str, public):
    """Under 16 characters, or one character repeated, only where it is said to be insecure."""
    options = {"port": 0, "token_secret": SECRET, **public, name: short}
    with pytest.raises(ValueError, match=rf"{name}=\), of a public server .* 16 characters"):
        async with open_server(App(silent), **options):
            pass
    async with open_server(App(silent), insecure=True, **options):
        pass
    async with open_server(App(silent), port=0, **{name: short.strip()}):
        pass


@pytest.mark.parametrize(
    "options",
    [
        {"second_token_secret": SECRET},
        {"audience": "voice"},
        {"issuer": "shop"},
        {"calls_expire": True},
    ],
)
async def test_what_is_for_signed_tokens_needs_their_secret(options):
    """An option that would do nothing is told."""
    with pytest.raises(ValueError, match=r"is for signed tokens.*BARGEIN_TOKEN_SECRET"):
        async with open_server(App(silent), port=0, **options):
            pass


@pytest.mark.parametrize("bad", ["short", "x" * 64])
async def test_a_second_secret_is_as_good_as_the_first(bad):
    """Too short, or one character repeated, is refused for both."""
    for options in ({"token_secret": bad}, {"token_secret": SECRET, "second_token_secret": bad}):
        with pytest.raises(ValueError, match="the secret of signed tokens"):
            async with open_server(App(silent), port=0, **options):
                pass


@pytest.mark.parametrize(
    "options", [{"token": TOKEN}, {"token_secret": SECRET}, {"insecure": True}, {"app": True}]
)
async def test_a_guard_lets_a_public_server_start(options):
    """A token, a secret, an app that decides, or the word that everybody may."""
    app = App(silent, admit=(lambda request: True) if options.pop("app", False) else None)
    async with open_server(app, host="0.0.0.0", port=0, **options) as server:
        assert server.port


async def test_a_server_of_this_machine_needs_nothing():
    """A loopback address starts as it is."""
    async with open_server(App(silent), port=0):
        pass


async def test_the_app_is_asked_with_what_the_client_sent(serving, autojump_clock):
    """`admit` sees headers, query, address and token, and the call sees what it decided."""
    asked, calls = [], []

    async def admit(request):
        asked.append(request)
        await trio.sleep(0.1)
        return Identity("ada", frozenset({"shop:buy"}))

    async def answer(call):
        calls.append(call)

    async with (
        serving(answer, app={"admit": admit}) as place,
        place.call(mode="text", token="t0k"),
    ):
        pass
    assert (asked[0].token, asked[0].query["mode"], asked[0].peer) == ("t0k", "text", "")
    assert asked[0].identity == Identity("", frozenset({"watch", "control"}))
    assert not any(each in repr(asked[0]) for each in ("t0k", "Bearer", "headers", "query", "Sec-"))
    assert calls[0].request.identity == Identity("ada", frozenset({"shop:buy"}))
    assert calls[0].caller == "ada"


@pytest.mark.parametrize(
    ("verdict", "code", "text"),
    [
        (Refusal("not on Sundays"), "forbidden", "not on Sundays"),
        (False, "forbidden", "you may not call"),
        (None, "agent_error", "could not decide"),
        (ValueError("pii"), "agent_error", "could not decide"),
        (SystemExit(1), "agent_error", "could not decide"),
    ],
)
async def test_the_app_refuses_with_a_reason(serving, verdict, code, text):
    """A refused caller is told why; what the function raises refuses, and nobody is told of it."""

    def admit(request):
        if isinstance(verdict, BaseException):
            raise verdict
        return verdict

    async with serving(silent, app={"admit": admit}) as place:
        with pytest.raises(CallRefusedError, match=text) as refused:
            async with place.call(mode="text"):
                pass
        assert refused.value.code == code
        assert place.server.calls == 0
        assert place.server.metrics.rejected[code] == 1


async def test_an_app_that_cannot_decide_delays_nobody(serving, autojump_clock):
    """After 5 seconds its caller is refused."""

    async def admit(request):
        await trio.sleep_forever()

    async with serving(silent, app={"admit": admit}) as place:
        with pytest.raises(CallRefusedError, match="could not decide"):
            async with place.call(mode="text"):
                pass
    assert trio.current_time() == pytest.approx(5, abs=3)


async def test_a_signed_token_names_the_caller(serving):
    """Its user and rights are the call's identity; without one nobody gets in."""
    calls = []

    async def answer(call):
        calls.append(call.request.identity)

    async with serving(answer, token_secret=SECRET, host_names=["voice.example"]) as place:
        token = sign_token(SECRET, "ada", lasts_s=60, rights=["watch"])
        async with place.call(mode="text", token=token) as caller:
            assert caller.hello.watch == "events"
        with pytest.raises(CallRefusedError) as refused:
            async with place.call(mode="text", token="x"):
                pass
    assert calls == [Identity("ada", frozenset({"watch"}))]
    assert refused.value.code == "unauthorized"


async def test_strangers_stop_their_own_call_and_see_nothing(serving):
    """Without rights: no watch, of the verbs only those that stop, and the rest is forbidden."""

    async def answer(call):
        call.bridge(name="clerk")

    options = {"insecure": True, "host_names": ["voice.example"]}
    async with serving(answer, **options) as place, place.call(mode="text") as caller:
        assert caller.hello.watch == "off"
        for verb in ("cancel", "emergency_stop"):
            caller.control(verb)
            receipt = await caller.wait_for(VerbReceipt, lambda m, verb=verb: m.verb == verb)
            assert receipt.message.reason != ""
        for verb in ("pause", "background", "shutdown", "resume"):
            caller.control(verb)
            refused = await caller.wait_for(
                ErrorMessage, lambda m, verb=verb: m.message.startswith(verb)
            )
            assert refused.message.code == "forbidden"


@pytest.mark.parametrize(("rights", "allowed"), [((), False), (("control",), True)])
async def test_an_app_gives_strangers_the_handle(serving, rights, allowed):
    """With the right `control` a caller of a public server has every verb."""

    async def answer(call):
        call.bridge(name="clerk")

    app = {"admit": lambda request: Identity("ada", frozenset(rights))}
    async with (
        serving(answer, app=app, host_names=["voice.example"]) as place,
        place.call(mode="text") as caller,
    ):
        caller.control("pause")
        answered = await caller.wait_for(VerbReceipt if allowed else ErrorMessage)
        assert allowed or answered.message.code == "forbidden"


def test_admit_must_take_the_request():
    """A function that cannot is refused when the app is made."""
    with pytest.raises(TypeError, match=r"App\(admit="):
        App(silent, admit=lambda: True)
    with pytest.raises(TypeError, match=r"App\(admit="):
        App(silent, admit="everybody")
