"""Measures who answers: ``python -m tests.evaluation.answered``.

An agent that talks from the start is answered by prompts of Debian's packages of telephone sounds,
``asterisk-core-sounds-*-wav`` and ``asterisk-prompt-it-menardi-wav``, and by synthetic voices.  The
lists of texts, in the packages ``asterisk-core-sounds-*``, give the words of languages that Whisper
tiny does not know: a word is known as soon as it was said.  Everything runs in virtual time.

Nothing was tuned on the files whose names have an odd hash: these are the table.
"""

# ruff: noqa: RUF001 (there are Cyrillic words)

from __future__ import annotations

from bargein.cli import exit_code  # first: Ctrl+C is one line while the rest is loaded, too

# isort: split
import argparse
import gzip
import sys
import wave
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from statistics import quantiles

import structlog
import trio
import trio.testing

from bargein import App, Call
from bargein.bridge.audio.player import Player
from bargein.events import AnsweredBy, UserAudio
from bargein.nodes.evaluation._replay_engines import (
    EngineCache,
    EngineLoop,
    Engines,
    open_engine_loop,
)
from bargein.phone import WhoAnswered
from bargein.routes import Message
from bargein.speech import (
    EspeakVoice,
    SmartTurn,
    SpeechEngineError,
    Transcript,
    WhisperTiny,
    resample,
)

RATE_HZ = 16_000
AUDIBLE = 300
"""Of 32768; what is weaker at the ends of a sound has no words."""
FRAME = 640
"""Bytes in 20 ms."""
BEFORE_S, BEHIND_S = 0.4, 4.0
"""How long the line is silent before the prompt and behind it."""
GREETING = (
    "Hello, this is the practice of Doctor Lee. I am calling about your appointment on Friday at "
    "ten o'clock. Will you be able to make it?"
)

WHOS = ("person", "voicemail", "menu", "screening", "silence")

VOICES = {
    "en_US_f_Allison": "en",
    "es_MX_f_Allison": "es",
    "fr_CA_f_June": "fr",
    "it_IT_m_Carlo": "it",
    "it_IT_f_Menardi": "it",
    "ru_RU_f_IvrvoiceRU": "ru",
}
"""The folders of the packages, and their languages."""

PROMPTS: dict[str, tuple[str, ...]] = {
    "voicemail": (
        "vm-intro beep",
        "vm-nobodyavail vm-intro beep",
        "vm-theperson digits/4 digits/2 vm-isunavail vm-intro beep",
        "vm-theperson digits/1 digits/7 vm-isonphone vm-intro beep",
        "vm-isunavail beep",
        "vm-nobodyavail beep",
        "vm-mailboxfull",
    ),
    "menu": (
        "demo-instruct", "dir-intro", "dir-intro-fn", "dir-instr", "vm-options", "vm-opts",
        "vm-opts-full", "vm-instructions", "vm-msginstruct", "vm-review", "vm-saveoper",
        "vm-forward", "vm-forward-multiple", "vm-forwardoptions", "vm-leavemsg", "vm-reachoper",
        "vm-helpexit", "vm-starmain", "vm-tempgreeting", "vm-tempgreeting2", "vm-tohearenv",
        "vm-toreply", "vm-tomakecall", "vm-whichbox", "conf-adminmenu", "conf-usermenu",
        "conf-getconfno", "conf-getpin", "agent-user", "agent-pass", "followme/options",
        "priv-callee-options", "screen-callee-options", "demo-congrats", "demo-enterkeywords",
        "basic-pbx-ivr-main", "queue-periodic-announce", "queue-youarenext",
    ),
    "screening": ("priv-recordintro", "priv-recordintro beep", "privacy-unident", "privacy-prompt"),
    "person": ("hello",),
    "silence": ("silence/5", "silence/8"),
}  # fmt: skip
"""Files that are played one after the other, and who answers by them."""

SYNTHETIC: dict[str, dict[str, tuple[str, ...]]] = {
    "en": {
        "person": (
            "Hello?", "Yes?", "Hi, this is Tom.", "Smith residence.", "Who is this?",
            "Yeah, hello?",
            "Good afternoon, Miller and Sons, Karen speaking, how may I help you?",
        ),
        "voicemail": (
            "Hi, it's Tom. I'm probably driving. Talk to me after the beep.",
            "You've reached the Millers. We can't come to the phone, so leave your name.",
            "The mailbox of two zero seven is full. Goodbye.",
            "Hey, you know what to do. Do it, and I will call you back as soon as I possibly can.",
        ),
        "menu": (
            "Welcome to Northern Gas. For billing, press one. To report a leak, press two.",
            "Thank you for calling. In a few words, tell me what you are calling about.",
        ),
        "screening": (
            "Hi. The person you're calling is using a screening service, and will get a copy of "
            "this conversation. Go ahead and say your name, and why you're calling.",
            "If you record your name and reason for calling, I'll see if this person is available.",
        ),
    },
    "de": {
        "person": ("Hallo?", "Ja, bitte?", "Müller, guten Tag.", "Wer ist denn da?"),
        "voicemail": (
            "Hier ist der Anschluss von Familie Müller. Wir sind leider nicht zu Hause. Bitte "
            "sprechen Sie nach dem Piepton.",
            "Der Teilnehmer ist zurzeit nicht erreichbar. Bitte hinterlassen Sie eine Nachricht.",
        ),
        "menu": (
            "Willkommen bei den Stadtwerken. Für Fragen zur Rechnung drücken Sie die Eins, für "
            "Störungen die Zwei.",
            "Bitte geben Sie Ihre Kundennummer ein, und bestätigen Sie mit der Rautetaste.",
        ),
        "screening": (
            "Bevor ich Sie verbinde, nennen Sie bitte Ihren Namen und den Grund Ihres Anrufs.",
        ),
    },
    "es": {
        "person": ("¿Diga?", "¿Bueno?", "Sí, ¿quién habla?", "Hola, soy Marta."),
        "voicemail": ("Hola, soy Marta. Ahora no puedo atenderte. Deja tu mensaje tras la señal.",),
        "menu": ("Bienvenido. Si desea hablar con ventas, marque uno. Para soporte, marque dos.",),
        "screening": ("Antes de pasar su llamada, diga su nombre y el motivo de la llamada.",),
    },
    "fr": {
        "person": ("Allô ?", "Oui, allô ?", "Martin, bonjour.", "C'est qui ?"),
        "voicemail": ("Bonjour, vous êtes bien chez Martin. Laissez-moi un message après le bip.",),
        "menu": ("Bienvenue. Pour un conseiller, tapez un. Pour vos factures, tapez deux.",),
        "screening": ("Avant de vous passer votre correspondant, dites votre nom et le motif de "
                      "votre appel.",),
    },
    "it": {
        "person": ("Pronto?", "Sì, pronto, chi parla?", "Casa Rossi, buongiorno."),
        "voicemail": ("Siamo la famiglia Rossi. Non siamo in casa. Lasciate un messaggio dopo il "
                      "segnale.",),
        "menu": ("Benvenuti. Per l'assistenza, premere uno. Per le vendite, premere due.",),
        "screening": ("Prima di passare la chiamata, dica il suo nome e il motivo.",),
    },
    "ru": {
        "person": ("Алло?", "Да, слушаю.", "Здравствуйте, кто это?"),
        "voicemail": ("Я сейчас не могу ответить. Оставьте сообщение после сигнала.",),
        "menu": ("Добро пожаловать. Для связи с отделом продаж нажмите один.",),
        "screening": ("Прежде чем соединить вас, представьтесь и назовите цель звонка.",),
    },
}  # fmt: skip
"""Greetings of synthetic voices."""

ESPEAK = {"en": "en-us", "de": "de", "es": "es", "fr": "fr", "it": "it", "ru": "ru"}

MISSING = (
    "no telephone sounds in {0}: install Debian's asterisk-core-sounds-{{en,es,fr,it,ru}}-wav, the "
    "packages asterisk-core-sounds-{{en,es,fr,it,ru}} for their texts, and "
    "asterisk-prompt-it-menardi-wav, or give --sounds and --texts"
)


@dataclass(frozen=True)
class Answering:
    """A call and who answers it."""

    name: str
    voice: str
    language: str
    who: str
    pcm: bytes = field(repr=False)
    """PCM16 mono, 16 kHz."""
    words: tuple[tuple[float, str], ...]
    """Each word, and when it is over, in seconds."""

    @property
    def is_held_out(self) -> bool:
        """Whether it belongs to the half that nothing was tuned on."""
        return sha256(self.name.encode()).digest()[0] % 2 == 1


class PatientRecogniser:
    """Whisper, asked again where a busy machine made it late."""

    def __init__(self, whisper: WhisperTiny) -> None:
        """Wrap an open recogniser."""
        self._whisper = whisper

    async def transcribe(self, pcm: bytes) -> Transcript:
        """Return the words of a sound."""
        for _ in range(10):
            try:
                return await self._whisper.transcribe(pcm)
            except SpeechEngineError:
                await trio.sleep(5.0)
        return await self._whisper.transcribe(pcm)


class TextRecogniser:
    """Knows the words of prompts by where in them a sound is."""

    def __init__(self) -> None:
        """Start without a prompt."""
        self.playing: Answering | None = None

    async def transcribe(self, pcm: bytes) -> Transcript:
        """Return the words that are over in a sound."""
        call = self.playing
        assert call is not None
        place = call.pcm.find(pcm[: 8 * FRAME])
        if place < 0:  # it begins before the call, with silence
            place = call.pcm.find(pcm[-8 * FRAME :]) + 8 * FRAME - len(pcm)
        begins_s, ends_s = place / 2 / RATE_HZ, (place + len(pcm)) / 2 / RATE_HZ
        said = [word for over_s, word in call.words if begins_s < over_s <= ends_s]
        return Transcript(" ".join(said))


class _Loudspeaker:
    """A transport that plays in virtual time."""

    audio, sample_rate_hz = True, 24_000

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self._player = Player(24_000, prebuffer_s=0.0)

    def send(self, message: Message) -> None:
        self.messages.append(message)

    def play(self, utterance: int, pcm: bytes) -> None:
        self._player.feed(utterance, pcm, trio.current_time())

    def clear(self, utterance: int, reason: str) -> None:
        self._player.clear(utterance, trio.current_time())

    def hold(self, on: bool) -> None:
        self._player.hold(on, trio.current_time())


def call(engines: Engines, answering: Answering) -> list[AnsweredBy]:
    """Make a call in virtual time, and return the verdicts."""
    loudspeaker = _Loudspeaker()

    async def answer(call: Call) -> None:
        WhoAnswered(call, languages=[answering.language])
        call.say(GREETING)

    async def run() -> None:
        app = App(answer, speech=engines.speech())
        async with app.open(), app.open_call(loudspeaker) as call:
            for at in range(0, len(answering.pcm) - FRAME + 1, FRAME):
                await trio.testing.wait_all_tasks_blocked()
                call.publish(UserAudio(pcm=answering.pcm[at : at + FRAME]))
                await trio.sleep(0.02)

    trio.run(run, clock=trio.testing.MockClock(autojump_threshold=0))
    engines.check()
    events = [message.event for message in loudspeaker.messages]
    return [event for event in events if isinstance(event, AnsweredBy)]


# --- what answers -------------------------------------------------------------------------------


def _sound(path: Path) -> bytes:
    with wave.open(str(path)) as file:
        return resample(file.readframes(file.getnframes()), file.getframerate(), RATE_HZ)


def _texts(folder: Path, language: str) -> dict[str, str]:
    name = f"core-sounds-{language}.txt.gz"
    path = folder / f"asterisk-core-sounds-{language}" / name
    with gzip.open(path, "rt", encoding="utf-8", errors="replace") as lines:
        pairs = (line.split(":", 1) for line in lines if ":" in line and line[0] != ";")
        return {file.strip(): text.strip() for file, text in pairs}


def _silence(seconds: float) -> bytes:
    return bytes(2 * round(seconds * RATE_HZ))


def _spread(text: str, pcm: bytes, at_s: float) -> Iterator[tuple[float, str]]:
    """Yield each word of a sound, and when it can be known: each takes as long as its letters."""
    import numpy as np

    audible = np.flatnonzero(abs(np.frombuffer(pcm, "<i2").astype(int)) > AUDIBLE)
    if not len(audible):
        return
    begins_s, ends_s = (at_s + place / RATE_HZ for place in (audible[0], audible[-1]))
    whole = text.partition("(")[0]
    if whole.startswith("["):
        return
    words, done = whole.split(), 0
    for word in words:
        done += len(word) + 1
        known = done - (len(word) + 1) / 4
        yield begins_s + (ends_s - begins_s) * known / (len(whole.rstrip()) + 1), word


def prompts(sounds: Path, texts: Path, languages: Sequence[str]) -> Iterator[Answering]:
    """Yield the calls that recordings answer."""
    for voice, language in VOICES.items():
        folder = sounds / voice
        if not folder.is_dir() or language not in languages:
            continue
        said = _texts(texts, language)
        for who, lists in PROMPTS.items():
            for names in lists:
                parts = [(name, folder / f"{name}.wav") for name in names.split()]
                if not all(path.exists() for _, path in parts):
                    continue
                pcm = _silence(BEFORE_S)
                words: list[tuple[float, str]] = []
                for name, path in parts:
                    begins_s = len(pcm) / 2 / RATE_HZ
                    sound = _sound(path)
                    pcm += sound
                    words += _spread(said.get(name, ""), sound, begins_s)
                pcm += _silence(BEHIND_S)
                yield Answering(names, voice, language, who, pcm, tuple(words))


async def _speak(language: str, text: str) -> bytes:
    async with EspeakVoice(ESPEAK[language]).open() as voice:
        pieces = [piece async for piece in voice.synthesize(text)]
        return resample(b"".join(p.pcm for p in pieces), voice.sample_rate_hz, RATE_HZ)


def synthetic(loop: EngineLoop, languages: Sequence[str]) -> Iterator[Answering]:
    """Yield the calls that synthetic voices answer."""
    for language in languages:
        kinds = SYNTHETIC[language]
        for who, texts in kinds.items():
            for text in texts:
                said = loop.ask(_speak, language, text)
                pcm = _silence(BEFORE_S) + said + _silence(BEHIND_S)
                words = tuple(_spread(text, said, BEFORE_S))
                yield Answering(text, f"espeak {language}", language, who, pcm, words)


# --- the table ----------------------------------------------------------------------------------


@dataclass
class Figures:
    """The verdicts of some calls."""

    confusion: Counter[tuple[str, str]] = field(default_factory=Counter)
    delays_s: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    revised: int = 0
    wrong: list[str] = field(default_factory=list)

    def add(self, answering: Answering, verdicts: Sequence[AnsweredBy]) -> None:
        """Count a call."""
        found = verdicts[-1].who if verdicts else "none"
        self.confusion[answering.who, found] += 1
        self.revised += len({event.who for event in verdicts} - {"silence"}) > 1
        if found == answering.who:
            self.delays_s[answering.who].append(verdicts[-1].after_ms / 1000)
        else:
            story = " ".join(f"{v.who}/{v.basis}@{v.after_ms / 1000:.1f}" for v in verdicts)
            self.wrong.append(f"{answering.voice}: {answering.name[:60]}: {story or 'none'}")

    def lines(self, title: str) -> Iterator[str]:
        """Yield the table."""
        columns = (*WHOS, "none")
        yield f"\n{title}"
        yield (
            "is, told as ".ljust(12)
            + "".join(f"{who:>11}" for who in columns)
            + "   delay p50, p95"
        )
        right = 0
        for who in WHOS:
            counts = [self.confusion[who, found] for found in columns]
            right += self.confusion[who, who]
            at = sorted(self.delays_s[who])
            cuts = quantiles(at, n=20, method="inclusive") if len(at) > 1 else [*at] * 19
            delay = f"{cuts[9]:.2f} s, {cuts[18]:.2f} s" if at else "-"
            yield f"{who:<12}" + "".join(f"{n:>11}" for n in counts) + f"   {delay}"
        total = sum(self.confusion.values())
        yield f"{right} of {total} right; {self.revised} changed from one verdict to another"


def measure(arguments: argparse.Namespace) -> int:
    """Make all calls, and print the tables."""
    if not any((arguments.sounds / voice).is_dir() for voice in VOICES):
        print(MISSING.format(arguments.sounds))
        return 2
    halves = {True: Figures(), False: Figures()}
    recorded, voices = Figures(), Figures()
    text = TextRecogniser()
    with open_engine_loop(whisper := WhisperTiny(), ends := SmartTurn(), text) as loop:
        cache = EngineCache(arguments.answers)
        by_sound = Engines(loop, PatientRecogniser(whisper), ends, cache)
        by_text = Engines(loop, text, ends, EngineCache(None))
        languages = arguments.language or list(SYNTHETIC)
        calls = [
            *prompts(arguments.sounds, arguments.texts, languages),
            *synthetic(loop, languages),
        ]
        for number, answering in enumerate(calls, start=1):
            if arguments.half is not None and answering.is_held_out != (
                arguments.half == "held-out"
            ):
                continue
            text.playing = answering
            engines = by_sound if answering.language == "en" else by_text
            verdicts = call(engines, answering)
            halves[answering.is_held_out].add(answering, verdicts)
            if answering.is_held_out:
                kind = voices if answering.voice.startswith("espeak") else recorded
                kind.add(answering, verdicts)
            print(f"\r{number} of {len(calls)}", end="", file=sys.stderr, flush=True)
    for half, title in ((False, "the half for tuning"), (True, "the held-out half")):
        if not halves[half].confusion:
            continue
        print("\n".join(halves[half].lines(title)))
        if not half:  # nobody tunes on the other one
            print("\n".join(halves[half].wrong))
    if recorded.confusion or voices.confusion:
        print("\n".join(recorded.lines("of the held-out half, recordings of Debian's packages")))
        print("\n".join(voices.lines("of the held-out half, synthetic voices")))
    return 0


def main(given: Sequence[str] | None = None) -> int:
    """Run the command, and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.evaluation.answered",
                                     description=__doc__)  # fmt: skip
    parser.add_argument("--sounds", type=Path, default=Path("/usr/share/asterisk/sounds"))
    parser.add_argument("--texts", type=Path, default=Path("/usr/share/doc"))
    parser.add_argument("--answers", type=Path, help="keeps what the models answered")
    parser.add_argument("--language", action="append", choices=sorted(ESPEAK))
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    parser.add_argument("--half", choices=("tuning", "held-out"), help="only that one")
    return measure(parser.parse_args(given))


if __name__ == "__main__":
    sys.exit(exit_code(main))
