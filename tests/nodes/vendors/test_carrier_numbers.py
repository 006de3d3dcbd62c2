"""Numbers of Plivo and Vonage are set to call an agent, told, and put back; Exotel says how."""

import pytest

from bargein.fakes import FakePlivo, FakeVonage
from bargein.phone import Exotel, PhoneNumberError, Plivo, Telnyx, Vonage
from bargein.vendors import VendorError

NUMBER = "+15550100"


def plivo(fake, **options):
    keys = {"auth_id": fake.auth_id, "auth_token": fake.auth_token, **options}
    return Plivo(**keys, transport=fake.transport())


def vonage(fake, **options):
    keys = {"api_key": fake.api_key, "api_secret": fake.api_secret, **options}
    return Vonage(**keys, signature_secret="x" * 32, transport=fake.transport())


async def test_a_number_of_plivo_is_claimed_and_restored():
    """Its application is ours, and then the old one again, however often it was claimed."""
    fake = FakePlivo(numbers={"15550100": "77", "15550101": ""})
    fake.applications["77"] = {"answer_url": "https://old.example.com"}
    phone = plivo(fake)
    assert await phone.claim(NUMBER, "https://one.example.com/") == "application 77"
    ours = fake.numbers["15550100"]
    assert fake.applications[ours]["answer_url"] == "https://one.example.com/plivo/voice?was=77"
    assert fake.applications[ours]["answer_method"] == "POST"
    assert await phone.claim(NUMBER, "https://two.example.com") == "application 77"
    assert fake.numbers["15550100"] == ours
    assert fake.applications[ours]["answer_url"] == "https://two.example.com/plivo/voice?was=77"
    assert await phone.restore(NUMBER) == "application 77"
    assert fake.numbers["15550100"] == "77"
    assert list(fake.applications) == ["77"]
    with pytest.raises(PhoneNumberError, match="nothing to restore; its application is 77"):
        await phone.restore(NUMBER)
    assert await phone.claim("+15550101", "https://two.example.com") == ""
    assert await phone.restore("+15550101") == ""


async def test_a_number_of_vonage_is_claimed_and_restored():
    """Its application asks us, signed, and keeps all else; then it asks what it asked before."""
    voice = {"webhooks": {"answer_url": {"address": "https://old.example.com/a"}}, "region": "eu"}
    told = {"id": "app-1", "name": "clerk", "capabilities": {"voice": voice, "rtc": {}}}
    fake = FakeVonage(numbers={"15550100": "app-1", "15550101": ""}, applications={"app-1": told})
    phone = vonage(fake)
    assert await phone.claim(NUMBER, "https://one.example.com") == "https://old.example.com/a"
    told = fake.applications["app-1"]
    voice = told["capabilities"]["voice"]
    assert voice["webhooks"]["answer_url"] == {
        "address": "https://one.example.com/vonage/voice?was=https%3A%2F%2Fold.example.com%2Fa",
        "http_method": "POST",
    }
    assert (told["name"], told["capabilities"]["rtc"]) == ("clerk", {})
    assert voice["region"] == "eu"
    assert voice["signed_callbacks"] is True
    assert await phone.claim(NUMBER, "https://two.example.com") == "https://old.example.com/a"
    assert await phone.restore(NUMBER) == "https://old.example.com/a"
    hooks = fake.applications["app-1"]["capabilities"]["voice"]["webhooks"]
    assert hooks["answer_url"]["address"] == "https://old.example.com/a"
    with pytest.raises(PhoneNumberError, match="nothing to restore"):
        await phone.restore(NUMBER)
    with pytest.raises(PhoneNumberError, match="linked to no application"):
        await phone.claim("+15550101", "https://two.example.com")
    with pytest.raises(PhoneNumberError, match=r"no number \+15550199"):
        await phone.claim("+15550199", "https://two.example.com")


async def test_exotel_says_what_to_set():
    """No request sets an applet, so the error has the address to be set, without the secret."""
    phone = Exotel(secret="hidden")
    with pytest.raises(PhoneNumberError, match="applet Voicebot") as told:
        await phone.claim(NUMBER, "https://one.example.com")
    assert "bargein:$EXOTEL_WEBHOOK_SECRET@one.example.com/exotel/voice" in str(told.value)
    assert "hidden" not in str(told.value) + repr(phone)
    with pytest.raises(PhoneNumberError, match="dashboard"):
        await phone.restore(NUMBER)


async def test_a_refusal_of_a_carrier_is_told():
    """Wrong credentials, and a number of another account, are the carrier's own refusal."""
    fake = FakePlivo(numbers={"15550100": ""})
    with pytest.raises(VendorError, match=r"has no number \+15550199"):
        await plivo(fake).claim("+15550199", "https://one.example.com")
    with pytest.raises(VendorError):
        await plivo(fake, auth_token="wrong").claim(NUMBER, "https://one.example.com")
    with pytest.raises(VendorError):
        await vonage(FakeVonage(), api_secret="wrong").claim(NUMBER, "https://one.example.com")
    for phone in (plivo(fake), vonage(FakeVonage())):
        with pytest.raises(ValueError, match=r"write https://one\.example\.com"):
            await phone.claim(NUMBER, "http://one.example.com")


@pytest.mark.parametrize(
    ("make", "names"),
    [
        (Plivo, "PLIVO_AUTH_ID and PLIVO_AUTH_TOKEN"),
        (Vonage, "VONAGE_API_KEY and VONAGE_API_SECRET and VONAGE_SIGNATURE_SECRET"),
        (Exotel, "EXOTEL_WEBHOOK_SECRET"),
    ],
)
def test_an_account_must_be_named(monkeypatch, make, names):
    """Without credentials the error names the variables; with them, nothing shows them."""
    for name in names.split(" and "):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ValueError, match=names):
        make()
    for name in names.split(" and "):
        monkeypatch.setenv(name, "a secret of mine")
    (wire,) = make().wires(None)
    assert wire.signals.carries_audio
    if make is Exotel:
        assert "a secret" not in repr(make())
    with pytest.raises(TypeError, match=rf"{make.__name__}\(speech=\)"):
        make(speech="piper")


def test_telnyx_has_two_wires():
    """With ears and a voice sound travels; attributes of the relay are then left over."""
    key = "A" * 43 + "="
    speech = type("Voice", (), {"open": lambda self: None, "attach": lambda self, call: None})()
    phone = Telnyx(api_key="K", public_key=key, speech=speech)
    assert [wire.name for wire in phone.wires(None)] == ["telnyx-media"]
    assert [wire.name for wire in Telnyx(api_key="K", public_key=key).wires(None)] == ["telnyx"]
    with pytest.raises(ValueError, match="leave them out"):
        Telnyx(api_key="K", public_key=key, speech=speech, attributes={"voice": "x"})
