"""The wires of Telnyx, Plivo, Vonage and Exotel keep the promises of a wire."""

import pytest
import trio

from bargein.fakes import FakeExotel, FakePlivo, FakeTelnyxMedia, FakeVonage
from bargein.phone import ExotelMedia, PlivoMedia, TelnyxMedia, VonageMedia
from bargein.wires import PeerRead, check_wire


class CarrierPeer:
    """A carrier, as the check of wires plays it."""

    path = ""
    calls = 0

    def __init__(self, fake):
        self.fake = fake
        self.call = self.token = ""
        self.frames = 0
        self.spelling = fake.spelling()
        self.plays_until_s = 0.0
        self.marks = []

    async def announce(self, dial):
        CarrierPeer.calls += 1
        self.call = f"call-{CarrierPeer.calls}"
        url = self.fake.voice_url.replace("voice.example.com", "localhost")
        _, body = await self.fake.post(dial, url, self.fake.fields(self.call, "+1555", "+1556"))
        told = self.fake.read_answer(body)
        self.token = told.parameters["token"]
        self.path = told.url.partition("localhost")[2]
        return {}

    def opening(self):
        parameters = {"token": self.token}
        return tuple(self.fake.spelling().opening(self.call, "+1555", "+1556", parameters))

    def sound(self, pcm):
        self.frames += 1
        sound = self.spelling.sound
        loud, quiet = (b"\x20", b"\xff") if sound.sample_bytes == 1 else (b"\0\x20", b"\0\0")
        coded = (loud if any(pcm) else quiet) * (sound.rate_hz // 50)
        return self.spelling.media(coded, 2 * self.frames - 1)

    def hang_up(self):
        return None

    def malformed(self):
        return (*self.opening(), '{"event": "media"}', '{"event": "mark", "mark": 3}')

    def messages(self):
        return (self.spelling.key("5"),)

    def read(self, data):
        read, now_s, pcm = self.spelling.read(data), trio.current_time(), b""
        sound = self.spelling.sound
        match read.kind:
            case "sound":
                size = sound.sample_bytes
                quiet = (b"\xff", b"\x7f") if size == 1 else (b"\0\0",)
                samples = (read.sound[n : n + size] for n in range(0, len(read.sound), size))
                pcm = b"".join(b"\0\0" if one in quiet else b"\0\x40" for one in samples)
                lasts_s = len(read.sound) / sound.bytes_per_ms / 1000
                self.plays_until_s = max(now_s, self.plays_until_s) + lasts_s
            case "mark":
                self.marks.append((self.plays_until_s, read.text))
            case "clear":
                self.plays_until_s = 0.0
                if not self.spelling.returns_marks_at_clear:
                    self.marks.clear()
        is_clear = read.kind == "clear"
        due = [name for at_s, name in self.marks if at_s <= now_s or is_clear]
        self.marks = [each for each in self.marks if each[1] not in due]
        return PeerRead(pcm, is_clear, tuple(self.spelling.played(name) for name in due))


def telnyx():
    fake = FakeTelnyxMedia()
    return fake, lambda: TelnyxMedia(public_key=fake.account.public_key)


def plivo():
    fake = FakePlivo()
    return fake, lambda: PlivoMedia(auth_token=fake.auth_token)


def vonage():
    fake = FakeVonage()
    return fake, lambda: VonageMedia(signature_secret=fake.signature_secret)


def exotel():
    fake = FakeExotel()
    return fake, lambda: ExotelMedia(secret=fake.secret)


@pytest.mark.proof
@pytest.mark.parametrize("carrier", [telnyx, plivo, vonage, exotel])
def test_it_keeps_the_promises_of_a_wire(carrier):
    """Malformed messages, a hang-up at each step and a transport that raises end one call."""
    fake, wire = carrier()
    report = check_wire(wire, lambda: CarrierPeer(fake), hang_ups=20)
    assert not report.failed, str(report)
