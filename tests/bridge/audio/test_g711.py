"""G.711: each code against numbers of the standard."""

from __future__ import annotations

from array import array
from collections.abc import Callable

import pytest

from bargein.bridge.audio.g711 import decode_a_law, decode_mu_law, encode_a_law, encode_mu_law

Code = Callable[[bytes], bytes]

MU_LAW_OUTPUTS = {
    0: "0 2 4 6 8 10 12 14 16 18 20 22 24 26 28 30",
    1: "33 37 41 45 49 53 57 61 65 69 73 77 81 85 89 93",
    2: "99 107 115 123 131 139 147 155 163 171 179 187 195 203 211 219",
    3: "231 247 263 279 295 311 327 343 359 375 391 407 423 439 455 471",
    4: "495 527 559 591 623 655 687 719 751 783 815 847 879 911 943 975",
    5: "1023 1087 1151 1215 1279 1343 1407 1471 1535 1599 1663 1727 1791 1855 1919 1983",
    6: "2079 2207 2335 2463 2591 2719 2847 2975 3103 3231 3359 3487 3615 3743 3871 3999",
    7: "4191 4447 4703 4959 5215 5471 5727 5983 6239 6495 6751 7007 7263 7519 7775 8031",
}
"""The values at the decoder's output, y0 to y127 of table 2a of the standard, by segment; they have
14 bits, a quarter of ours."""

A_LAW_OUTPUTS = {
    0: "1 3 5 7 9 11 13 15 17 19 21 23 25 27 29 31",
    1: "33 35 37 39 41 43 45 47 49 51 53 55 57 59 61 63",
    2: "66 70 74 78 82 86 90 94 98 102 106 110 114 118 122 126",
    3: "132 140 148 156 164 172 180 188 196 204 212 220 228 236 244 252",
    4: "264 280 296 312 328 344 360 376 392 408 424 440 456 472 488 504",
    5: "528 560 592 624 656 688 720 752 784 816 848 880 912 944 976 1008",
    6: "1056 1120 1184 1248 1312 1376 1440 1504 1568 1632 1696 1760 1824 1888 1952 2016",
    7: "2112 2240 2368 2496 2624 2752 2880 3008 3136 3264 3392 3520 3648 3776 3904 4032",
}
"""The same of table 1a, y1 to y128; they have 13 bits, an eighth of ours."""

MU_LAW_DIGITAL_MILLIWATT = "1e 0b 0b 1e 9e 8b 8b 9e"
A_LAW_DIGITAL_MILLIWATT = "34 21 21 34 b4 a1 a1 b4"
"""A sine of 1 kHz at 0 dBm0: tables 5 and 6 of the standard."""


def numbers(outputs: dict[int, str]) -> list[int]:
    return [int(value) for row in outputs.values() for value in row.split()]


def values(pcm: bytes) -> list[int]:
    return list(array("h", pcm))


def coded(encode: Code, *samples: int) -> str:
    return encode(array("h", samples).tobytes()).hex(" ")


def test_mu_law_bytes_have_the_values_of_the_standard() -> None:
    """0xFF to 0x80 are the positive values from zero on, 0x7F to 0x00 the negative ones."""
    expected = [4 * value for value in numbers(MU_LAW_OUTPUTS)]
    assert len(expected) == 128
    assert values(decode_mu_law(bytes(range(0xFF, 0x7F, -1)))) == expected
    assert values(decode_mu_law(bytes(range(0x7F, -1, -1)))) == [-value for value in expected]


def test_a_law_bytes_have_the_values_of_the_standard() -> None:
    """The same, with every second bit inverted: 0xD5 is the smallest positive value."""
    expected = [8 * value for value in numbers(A_LAW_OUTPUTS)]
    assert len(expected) == 128
    assert values(decode_a_law(bytes((0x80 | n) ^ 0x55 for n in range(128)))) == expected
    negative = values(decode_a_law(bytes(n ^ 0x55 for n in range(128))))
    assert negative == [-value for value in expected]


@pytest.mark.parametrize(
    ("sample", "mu_law", "a_law"),
    [
        (0, "ff", "d5"), (-1, "7f", "55"), (3, "ff", "d5"), (4, "fe", "d5"), (-4, "7f", "55"),
        (-5, "7e", "55"), (8, "fe", "d5"), (-8, "7e", "55"), (15, "fd", "d5"), (16, "fd", "d4"),
        (-16, "7d", "55"), (-17, "7d", "54"), (1_000, "ce", "fa"), (-1_000, "4e", "7a"),
        (8_031, "a0", "8a"), (32_767, "80", "aa"), (-32_768, "00", "2a"),
    ],
)  # fmt: skip
def test_a_sample_has_the_code_of_the_standards_software(
    sample: int, mu_law: str, a_law: str
) -> None:
    """On a decision value, at zero and at full scale; negative ones mirror at -0.5, as in G.191."""
    assert (coded(encode_mu_law, sample), coded(encode_a_law, sample)) == (mu_law, a_law)


@pytest.mark.parametrize(
    ("decode", "milliwatt", "peak"),
    [
        (decode_mu_law, MU_LAW_DIGITAL_MILLIWATT, 4 * 5_215),
        (decode_a_law, A_LAW_DIGITAL_MILLIWATT, 8 * 2_624),
    ],
)
def test_the_digital_milliwatt_is_a_sine(decode: Code, milliwatt: str, peak: int) -> None:
    """The sequence that the standard defines the level of a line by."""
    heard = values(decode(bytes.fromhex(milliwatt)))
    assert max(heard) == peak
    assert heard[:4] == heard[3::-1] == [-value for value in heard[4:]]


@pytest.mark.parametrize(
    ("encode", "decode"), [(encode_mu_law, decode_mu_law), (encode_a_law, decode_a_law)]
)
def test_every_byte_and_every_sample_comes_back(encode: Code, decode: Code) -> None:
    """A byte as itself, but for mu-law's second zero; a sample within half a step, in order."""
    again = encode(decode(bytes(range(256))))
    assert [n for n in range(256) if again[n] != n] in ([], [0x7F])
    every = array("h", range(-32_768, 32_768))
    back = values(decode(encode(every.tobytes())))
    assert all(abs(a - b) <= max(16, (abs(b) + 132) / 32) for a, b in zip(back, every, strict=True))
    assert back == sorted(back)


def test_half_a_sample_is_dropped() -> None:
    """A piece cut inside a sample has a byte for each whole one."""
    assert encode_mu_law(b"\0\0\0") == b"\xff"
    assert encode_a_law(b"") == decode_a_law(b"") == b""
