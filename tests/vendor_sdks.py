"""The fakes of vendors, proven by the vendors' own SDKs over real sockets (`make nightly`).

Each SDK gets an environment of its own, as their pins do not fit ours, and talks to our fake as it
talks to its vendor.  Without a registry to install them from, nothing is proven and that is said.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import trio

from bargein.fakes import (
    FakeAnthropic,
    FakeAssemblyAIEar,
    FakeAzureChat,
    FakeCartesiaEar,
    FakeCartesiaVoice,
    FakeDeepgramAura,
    FakeDeepgramFlux,
    FakeDeepgramFluxVoice,
    FakeDeepgramNova,
    FakeElevenLabsEar,
    FakeElevenLabsVoice,
    FakeGeminiChat,
    FakeOpenAIChat,
    FakeOpenAIEar,
    FakeOpenAIRealtime,
    FakeOpenAIVoice,
    FakeReasoningChat,
    FakeSonioxEar,
    FakeTranscription,
)

LIMIT_S = 60.0
INSTALL_S = 600.0

SOUND = 'sound = b"\\x10\\x00" * 1600\n'

FLUX = """
import sys
from deepgram import DeepgramClient
from deepgram.environment import DeepgramClientEnvironment
here = "ws://127.0.0.1:" + sys.argv[1]
env = DeepgramClientEnvironment(base=here, production=here, agent=here, agent_rest=here)
client = DeepgramClient(api_key="any", environment=env)
with client.listen.v2.connect(
    model="flux-general-en", encoding="linear16", sample_rate=16000
) as line:
    for _ in range(5):
        line.send_media(sound)
    line.send_force_end_turn()
    while True:
        message = line.recv()
        if message.type == "TurnInfo" and message.event == "EndOfTurn":
            print(message.transcript)
            break
"""

NOVA = """
import sys
from deepgram import DeepgramClient
from deepgram.environment import DeepgramClientEnvironment
here = "ws://127.0.0.1:" + sys.argv[1]
env = DeepgramClientEnvironment(base=here, production=here, agent=here, agent_rest=here)
client = DeepgramClient(api_key="any", environment=env)
with client.listen.v1.connect(model="nova-3", encoding="linear16", sample_rate=16000) as line:
    for _ in range(5):
        line.send_media(sound)
    line.send_finalize()
    while True:
        message = line.recv()
        if message.type == "Results" and message.is_final:
            print(message.channel.alternatives[0].transcript)
            break
"""

SPEAK = """
import sys
from deepgram import DeepgramClient
from deepgram.environment import DeepgramClientEnvironment
from deepgram.speak.v1.types import SpeakV1Text
from deepgram.speak.v2.types import SpeakV2Speak
here = "ws://127.0.0.1:" + sys.argv[1]
env = DeepgramClientEnvironment(base=here, production=here, agent=here, agent_rest=here)
client = DeepgramClient(api_key="any", environment=env)
"""

AURA = """
with client.speak.v1.connect(
    model="aura-2-thalia-en", encoding="linear16", sample_rate=24000
) as line:
    first, audio = line.recv().model_name, 0
    line.send_text(SpeakV1Text(type="Speak", text="Two lattes."))
    line.send_flush()
    while isinstance(message := line.recv(), bytes):
        audio += len(message)
    print(first, audio, message.type, message.sequence_id)
"""

FLUX_VOICE = """
with client.speak.v2.connect(
    model="flux-haley-en", encoding="linear16", sample_rate=24000
) as line:
    types, audio = [], 0
    line.send_speak(SpeakV2Speak(type="Speak", text="Two lattes."))
    line.send_flush()
    while types[-1:] != ["SpeechMetadata"]:
        message = line.recv()
        if isinstance(message, bytes):
            audio += len(message)
        else:
            types.append(message.type)
    line.send_speak(SpeakV2Speak(type="Speak", text="One large latte with oat milk."))
    line.send_flush()
    while not isinstance(line.recv(), bytes):
        pass
    line.send_interrupt()
    while isinstance(message := line.recv(), bytes):
        pass
    print(*types, audio, message.type, message.metadata.controls_applied.breaks_applied)
"""

SCRIBE = """
import asyncio, base64, sys
from elevenlabs.realtime.scribe import AudioFormat, CommitStrategy, ScribeRealtime
from elevenlabs.realtime.connection import RealtimeEvents

async def main():
    client = ScribeRealtime("any", base_url="ws://127.0.0.1:" + sys.argv[1])
    line = await client.connect({
        "model_id": "scribe_v2_realtime", "audio_format": AudioFormat.PCM_16000,
        "sample_rate": 16000, "commit_strategy": CommitStrategy.MANUAL,
    })
    over = asyncio.get_running_loop().create_future()
    line.on(RealtimeEvents.COMMITTED_TRANSCRIPT, over.set_result)
    await line.send({"audio_base_64": base64.b64encode(sound).decode()})
    await line.commit()
    print((await over)["text"])
    await line.close()

asyncio.run(main())
"""

INK = """
import sys
from cartesia import Cartesia
client = Cartesia(api_key="any", websocket_base_url="ws://127.0.0.1:" + sys.argv[1])
with client.stt.auto_finalize.websocket(
    model="ink-2", encoding="pcm_s16le", sample_rate=16000
) as line:
    for _ in range(5):
        line.send_raw(sound)
    for _ in range(10):
        line.send_raw(bytes(3200))
    while True:
        message = line.recv()
        if message.type == "turn.end":
            print(message.transcript)
            break
"""

UNIVERSAL = """
import sys, threading
from assemblyai.streaming.v3 import (
    Encoding, RealTimeEvents, RealTimeParameters, RealTimeTranscriber, RealTimeTranscriberOptions,
)
here = "ws://127.0.0.1:" + sys.argv[1]
client = RealTimeTranscriber(RealTimeTranscriberOptions(api_key="any", api_host=here))
seen, turns, over = [], [], threading.Event()

def note(client, message):
    seen.append(message.type)
    if message.type == "Turn" and message.end_of_turn:
        turns.append((message.transcript, message.turn_is_formatted))
        if message.turn_is_formatted:
            over.set()

for event in RealTimeEvents:
    client.on(event, note)
client.connect(RealTimeParameters(sample_rate=16000, encoding=Encoding.pcm_s16le))
for _ in range(5):
    client.stream(sound)
client.force_endpoint()
assert over.wait(20), seen
client.disconnect(terminate=True)
print(*turns, seen[0], seen[1], seen[-1])
"""

SONIC = """
import sys
from cartesia import Cartesia
client = Cartesia(api_key="any", websocket_base_url="ws://127.0.0.1:" + sys.argv[1])
voice, sound = {"mode": "id", "id": "joe"}, {"container": "raw", "encoding": "pcm_s16le"}
with client.tts.websocket_connect() as line:
    said = line.context(
        "mine", model_id="sonic-3", voice=voice, output_format={**sound, "sample_rate": 24000},
        add_timestamps=True, max_buffer_delay_ms=0,
    )
    cut = line.context(
        "cut", model_id="sonic-3", voice=voice, output_format={**sound, "sample_rate": 24000},
    )
    cut.push("Never heard.")
    cut.cancel()
    said.push("Two ")
    said.push("lattes.", flush=True)
    said.no_more_inputs()
    audio, words, ends = 0, [], []
    for message in said.receive():
        if message.type == "chunk":
            audio += len(message.audio)
        elif message.type == "timestamps":
            words += message.word_timestamps.words
        else:
            ends.append(message.type)
    print(audio, *words, *ends)
"""

MULTI = """
import json, sys
from elevenlabs.types import *
from websockets.sync.client import connect
here = "ws://127.0.0.1:" + sys.argv[1]
where = here + "/v1/text-to-speech/joe/multi-stream-input?output_format=pcm_24000"

def send(message):
    assert not message.model_extra, message
    line.send(json.dumps(message.dict()))

with connect(where, additional_headers={"xi-api-key": "any"}) as line:
    send(InitializeConnectionMulti(text=" ", context_id="mine"))
    send(SendTextMulti(text="Two lattes. ", context_id="mine", flush=True))
    send(CloseContext(context_id="mine", close_context=True))
    audio, letters, is_final = 0, "", False
    while not is_final:
        message = json.loads(line.recv())
        is_final = bool(message.get("isFinal"))
        kind = FinalOutputMulti if is_final else AudioOutputMulti
        read = kind.model_validate(message, strict=True)
        assert not read.model_extra and read.context_id == "mine", read
        if not is_final:
            assert not read.alignment.model_extra
            letters, audio = letters + "".join(read.alignment.chars), audio + len(read.audio)
    print(letters, audio * 3 // 4)
    send(CloseSocket(close_socket=True))
"""

DEPLOYED = """
import sys
from openai import AzureOpenAI, OpenAI
here = "http://127.0.0.1:" + sys.argv[1]
dated = AzureOpenAI(azure_endpoint=here, api_key="any", api_version="2024-10-21")
one = OpenAI(base_url=here + "/openai/v1/", api_key="any")
ask = [{"role": "user", "content": "Hi"}]
for client in (dated, one):
    text = ""
    for chunk in client.chat.completions.create(model="mine", messages=ask, stream=True):
        for choice in chunk.choices:
            text += choice.delta.content or ""
    print(text)
"""

SIGNED = """
import sys
from openai import BadRequestError, OpenAI
client = OpenAI(api_key="any", base_url="http://127.0.0.1:" + sys.argv[1] + "/v1beta/openai/")
tools = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]

def ask(messages):
    text, calls = "", {}
    asked = {"model": "gemini", "messages": messages, "tools": tools, "stream": True}
    for chunk in client.chat.completions.create(**asked):
        for choice in chunk.choices:
            text += choice.delta.content or ""
            for piece in choice.delta.tool_calls or ():
                call = calls.setdefault(piece.index, {"type": "function", "function": {}})
                call.update({k: v for k, v in piece.to_dict().items() if k not in ("function",)})
                for name, value in piece.function.to_dict().items():
                    call["function"][name] = call["function"].get(name, "") + value
    return text, list(calls.values())

chat = [{"role": "user", "content": "Rome?"}]
_, (call,) = ask(chat)
result = {"role": "tool", "tool_call_id": call["id"], "content": "sunny"}
print(ask([*chat, {"role": "assistant", "content": None, "tool_calls": [call]}, result])[0])
call.pop("extra_content")
try:
    ask([*chat, {"role": "assistant", "content": None, "tool_calls": [call]}, result])
except BadRequestError as error:
    print(error.status_code)
"""

MESSAGES = """
import sys
from anthropic import Anthropic
client = Anthropic(api_key="any", base_url="http://127.0.0.1:" + sys.argv[1])
ask = [{"role": "user", "content": "Hi"}]
with client.messages.stream(model="any", max_tokens=100, messages=ask) as stream:
    text = "".join(stream.text_stream)
    assert stream.get_final_message().stop_reason == "end_turn"
print(text)
"""

TRANSCRIBE = """
import base64, sys
from openai import OpenAI
here = "127.0.0.1:" + sys.argv[1] + "/v1"
client = OpenAI(api_key="any", base_url="http://" + here, websocket_base_url="ws://" + here)
with client.realtime.connect(extra_query={"intent": "transcription"}) as line:
    heard = {"format": {"type": "audio/pcm", "rate": 24000}}
    line.session.update(session={"type": "transcription", "audio": {"input": heard}})
    audio = base64.b64encode(b"\\x00\\x10" * 4800).decode()
    for _ in range(5):
        line.input_audio_buffer.append(audio=audio)
    line.input_audio_buffer.commit()
    types = []
    for message in line:
        types.append(type(message).__name__)
        if message.type.endswith("completed"):
            print(message.transcript, types[1], types[2], types[-2])
            break
"""

REALTIME = """
import base64, sys
from openai import OpenAI
here = "127.0.0.1:" + sys.argv[1] + "/v1"
client = OpenAI(api_key="any", base_url="http://" + here, websocket_base_url="ws://" + here)
with client.realtime.connect(model="gpt-realtime-2") as line:
    hearing = {
        "transcription": {"model": "gpt-transcribe"},
        "turn_detection": {"type": "server_vad", "create_response": False},
    }
    line.session.update(session={
        "type": "realtime", "output_modalities": ["audio"], "audio": {"input": hearing}
    })
    for sound in [b"\\x00\\x10" * 2400] * 5 + [bytes(4800)] * 8:
        line.input_audio_buffer.append(audio=base64.b64encode(sound).decode())
    for message in line:
        assert type(message).__name__ != "BaseModel", message
        if message.type == "conversation.item.input_audio_transcription.completed":
            heard = message.transcript
            break
    hi = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]}
    line.conversation.item.create(item=hi)
    line.response.create(response={})
    text, audio = "", 0
    for message in line:
        assert type(message).__name__ != "BaseModel", message
        if message.type == "response.output_audio_transcript.delta":
            text += message.delta
        elif message.type == "response.output_audio.delta":
            audio += len(base64.b64decode(message.delta))
        elif message.type == "response.done":
            usage = message.response.usage
            print(heard, text.strip(), audio, message.response.status, usage.total_tokens)
            break
"""

SPEECH = """
import sys
from openai import OpenAI
client = OpenAI(api_key="any", base_url="http://127.0.0.1:" + sys.argv[1] + "/v1")
with client.audio.speech.with_streaming_response.create(
    model="gpt-4o-mini-tts", voice="marin", input="Two lattes.", response_format="pcm"
) as response:
    print(response.headers["content-type"], sum(len(piece) for piece in response.iter_bytes()))
"""

UTTERANCE = """
import sys
from openai import OpenAI
client = OpenAI(api_key="any", base_url="http://127.0.0.1:" + sys.argv[1] + "/v1")
wav = b"RIFF" + bytes(4) + b"WAVEfmt " + bytes(28) + b"\\x10\\x00" * 800
file = ("utterance.wav", wav, "audio/wav")
for form in ("json", "verbose_json"):
    heard = client.audio.transcriptions.create(model="any", file=file, response_format=form)
print(heard.text, heard.language, heard.segments[0].avg_logprob)
"""

COMPLETIONS = """
import sys
from openai import OpenAI
client = OpenAI(api_key="any", base_url="http://127.0.0.1:" + sys.argv[1] + "/v1")
ask = [{"role": "user", "content": "Hi"}]
text, reasons = "", []
for chunk in client.chat.completions.create(model="any", messages=ask, stream=True):
    for choice in chunk.choices:
        text += choice.delta.content or ""
        reasons += [choice.finish_reason] if choice.finish_reason else []
assert reasons == ["stop"], reasons
print(text)
"""

TOKENS = """
import sys
from soniox import SonioxClient
from soniox.types import RealtimeSTTConfig
client = SonioxClient(api_key="any", websocket_base_url="ws://127.0.0.1:" + sys.argv[1])
config = RealtimeSTTConfig(
    model="stt-rt-v5", audio_format="pcm_s16le", sample_rate=16000, num_channels=1,
    enable_endpoint_detection=True,
)
with client.realtime.stt.connect(config=config) as line:
    for _ in range(5):
        line.send_byte_chunk(sound)
    line.finalize()
    text = ""
    for event in line.receive_events():
        text += "".join(token.text for token in event.tokens if token.is_final)
        if "<fin>" in text and not event.finished:
            line.finish()
    print(text.strip(), event.finished)
"""

TURN, ANSWER = "a large latte please", "Two lattes, please wait."


@dataclass(frozen=True, slots=True)
class Proof:
    """What an SDK does, and what it has to hear of our fake."""

    package: str
    """The pinned package of the vendor, and others that the program needs."""
    program: str
    """Prints what it heard; is given the port."""
    serve: Callable[[], AbstractAsyncContextManager[int]]
    expected: str


PROOFS = {
    "DeepgramFlux": Proof("deepgram-sdk==7.17.0", SOUND + FLUX, FakeDeepgramFlux(TURN).serve, TURN),
    "DeepgramNova": Proof("deepgram-sdk==7.17.0", SOUND + NOVA, FakeDeepgramNova(TURN).serve, TURN),
    "DeepgramAura": Proof(
        "deepgram-sdk==7.17.0", SPEAK + AURA, FakeDeepgramAura().serve, "fake 28800 Flushed 0"
    ),
    "DeepgramFluxVoice": Proof(
        "deepgram-sdk==7.17.0",
        SPEAK + FLUX_VOICE,
        FakeDeepgramFluxVoice().serve,
        "Connected Flushed SpeechStarted SpeechMetadata 28800 SpeechInterrupted 0",
    ),
    "ElevenLabsEar": Proof(
        "elevenlabs==2.78.0", SOUND + SCRIBE, FakeElevenLabsEar(TURN).serve, TURN
    ),
    "CartesiaEar": Proof(
        "cartesia[websockets]==4.2.0", SOUND + INK, FakeCartesiaEar(TURN).serve, TURN
    ),
    "AssemblyAIEar": Proof(
        "assemblyai==1.8.2",
        SOUND + UNIVERSAL,
        FakeAssemblyAIEar(TURN).serve,
        f"('{TURN}', False) ('{TURN}', True) Begin SpeechStarted Termination",
    ),
    "CartesiaVoice": Proof(
        "cartesia[websockets]==4.2.0",
        SONIC,
        FakeCartesiaVoice().serve,
        "28800 Two lattes. flush_done done",
    ),
    "ElevenLabsVoice": Proof(
        "elevenlabs==2.78.0", MULTI, FakeElevenLabsVoice().serve, "Two lattes.  28800"
    ),
    "OpenAIEar": Proof(
        "openai[realtime]==3.54.0",
        TRANSCRIBE,
        FakeOpenAIEar(TURN).serve,
        f"{TURN} SessionUpdatedEvent InputAudioBufferSpeechStartedEvent"
        " ConversationItemInputAudioTranscriptionDeltaEvent",
    ),
    "OpenAIRealtime": Proof(
        "openai[realtime]==3.54.0",
        REALTIME,
        FakeOpenAIRealtime("Two lattes.", words="A latte.").serve,
        "A latte. Two lattes. 28800 completed 70",
    ),
    "OpenAIVoice": Proof(
        "openai[realtime]==3.54.0", SPEECH, FakeOpenAIVoice().serve, "audio/pcm 28800"
    ),
    "SonioxEar": Proof(
        "soniox==2.10.0", SOUND + TOKENS, FakeSonioxEar(TURN).serve, f"{TURN}<fin> True"
    ),
    "Transcription": Proof(
        "openai[realtime]==3.54.0", UTTERANCE, FakeTranscription(TURN).serve, f"{TURN} english -0.2"
    ),
    "OpenAIChat": Proof("openai[realtime]==3.54.0", COMPLETIONS, FakeOpenAIChat().serve, ANSWER),
    "AzureChat": Proof(
        "openai[realtime]==3.54.0", DEPLOYED, FakeAzureChat().serve, f"{ANSWER}\n{ANSWER}"
    ),
    "GeminiChat": Proof(
        "openai[realtime]==3.54.0",
        SIGNED,
        FakeGeminiChat(calls={"weather": {"city": "Rome"}}).serve,
        f"{ANSWER}\n400",
    ),
    "ReasoningChat": Proof(
        "openai[realtime]==3.54.0", COMPLETIONS, FakeReasoningChat().serve, ANSWER
    ),
    "Anthropic": Proof("anthropic==2.12.0", MESSAGES, FakeAnthropic().serve, ANSWER),
}


WITHOUT_SDK = {
    "RimeVoice",
    *("Exotel", "Phone", "Plivo", "Telnyx", "TelnyxMedia", "Twilio", "TwilioCall", "Vonage"),
    *("StreamCall", "StreamCarrier"),
    *("LineCall", "LineHarness", "Retell", "RetellCall", "Vapi", "VapiCall"),
}
"""What no program here speaks: Rime publishes none for its WebSockets, and the others play the side
of a carrier or a platform, for which it publishes none; their requests go by httpx2."""


def installed(package: str, folder: Path) -> Path | None:
    """Return the Python of an environment that has a package; None if there is no registry."""
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    command = [str(python), "-m", "pip", "install", "-q", *package.split()]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=INSTALL_S
        )
    except subprocess.TimeoutExpired:
        return None
    return python if done.returncode == 0 else None


async def prove(proof: Proof, python: Path) -> str:
    """Return what was wrong, or nothing."""
    with trio.move_on_after(LIMIT_S):
        async with proof.serve() as port:
            command = [str(python), "-c", proof.program, str(port)]
            env = {k: v for k, v in os.environ.items() if "proxy" not in k.lower()}
            env.pop("PYTHONPATH", None)
            done = await trio.run_process(
                command, capture_stdout=True, capture_stderr=True, check=False, env=env
            )
        heard = done.stdout.decode().strip()
        if done.returncode:
            return done.stderr.decode()[-2000:]
        return "" if heard == proof.expected else f"it heard {heard!r}, not {proof.expected!r}"
    return f"nothing within {LIMIT_S:g} s"


def run_proofs(proofs: Mapping[str, Proof], module: str, about: str | None) -> int:
    """Make proofs as the command line says, and return 1 if one fails."""
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=about)
    parser.add_argument("--only", action="extend", nargs="+", choices=[*proofs])
    parser.add_argument("--python", type=Path, help="has all packages: nothing is installed")
    parser.add_argument("--seed", help="ignored")
    options = parser.parse_args()
    failed = 0
    with TemporaryDirectory() as folder:
        for name, proof in proofs.items():
            if options.only is not None and name not in options.only:
                continue
            place = Path(folder) / proof.package.partition("=")[0].partition("[")[0]
            python = options.python or installed(proof.package, place)
            if python is None:
                print(f"{name}: skipped, {proof.package} cannot be installed here", flush=True)
                continue
            wrong = trio.run(prove, proof, python)
            failed |= bool(wrong)
            print(f"{name}: {wrong or f'proven by {proof.package}'}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(run_proofs(PROOFS, "tests.vendor_sdks", __doc__))
