"""Decoders: the formats that they say they read, their turns in each, and color profiles."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

from simulator.contract import U8, Array, Decoder, Encoded, inspect
from simulator.contract.image_formats import IMAGE_FORMATS
from simulator.contract.raw import mosaic
from simulator.testing import files
from simulator.testing.decoders import on_jpeg
from simulator.testing.subject import Subject, expect, refused, words
from simulator.testing.work import working

FOLDER = Path(__file__).parent / "images"
"""A picture in each format of ours, by ``tools/image_specimens.py``."""
MEAN = {"avif": 15.0, "heic": 15.0}
"""Levels from the picture where a specimen is lossy, and swscale may halve its chroma; the others
are exact."""
_GAMMA = 2.2
_RED, _GREEN = (0.4361, 0.2225, 0.0139), (0.3851, 0.7169, 0.0971)
_BLUE = (0.1431, 0.0606, 0.7141)
"""sRGB's primaries, adapted to D50 (IEC 61966-2-1; ICC.1:2010 annex D)."""


def picture() -> U8:
    """The picture of the specimens: four levels a channel, (16, 24, 3)."""
    return files.picture(16, 24) // 85 * 85


def specimen(format: str, stem: str = "plain") -> Encoded | None:
    """Return a file with the picture, or None where there is none: a format that never turns."""
    own = IMAGE_FORMATS[format].example
    if own is not None and stem == "plain":
        return inspect(format, own(picture()))
    file = FOLDER / f"{stem}.{format}"
    return inspect(format, file.read_bytes()) if file.is_file() else None


def formats_are_as_claimed(subject: Subject) -> str | None:
    """A file of each other format that it reads has the picture that was written."""
    decoder: Decoder = subject.make()
    told = [name for name in decoder.reads if name not in ("jpeg", "png")]
    for name in told:
        image = specimen(name)
        if image is None:
            return f"no specimen of {name}"
        off = _off(decoder, image, picture())
        expect(off <= MEAN.get(name, 0), f"a {name} is {off:.1f} levels off its picture")
    return f"reads {', '.join(told)}" if told else None


def turns_in_every_format(subject: Subject) -> None:
    """A turned file of each format is upright, or is not, as ``exif`` says; or it is refused."""
    for variant in working(subject):
        decoder: Decoder = variant.make()
        asked = variant.options["exif"]
        for name in decoder.reads:
            image = specimen(name, "turned")
            if image is None:
                continue
            if decoder.turns.get(name, asked) != asked:
                refused(f"a turned {name} with exif: {asked}", decoder.rgb, image)
                continue
            plain = picture()
            want = plain.swapaxes(0, 1)[:, ::-1] if asked == "apply" else plain
            right = _off(decoder, image, want) <= MEAN.get(name, 0)
            expect(right, f"{words(variant)}: a turned {name} is not as it should be")


@on_jpeg
def color_profiles_are_obeyed(subject: Subject) -> None:
    """A profile whose red is sRGB's blue: ``to_srgb`` exchanges the two, else nothing happens."""
    flat = np.full((17, 11, 3), (110, 160, 110), np.uint8)  # Y, Cb, Cr: R 85, G 112, B 167
    data = files.jpeg(flat).data
    tagged = data[:2] + files.segment(0xE2, b"ICC_PROFILE\0\x01\x01" + swapped_profile()) + data[2:]
    for variant in working(subject):
        decoder: Decoder = variant.make()
        plain, got = (_middle(decoder, one) for one in (data, tagged))
        applied = variant.options.get("profile") == "to_srgb"
        want = plain[::-1] if applied else plain
        off = np.abs(got - want).max()
        expect(
            off <= (8 if applied else 0),
            f"{words(variant)}: R, G, B of {want.tolist()} expected, got {got.tolist()}",
        )


def swapped_profile() -> bytes:
    """An ICC profile of a display with sRGB's primaries, red and blue exchanged, and gamma 2.2.

    Source:
        ICC.1:2001-04, 6.1 (header), 6.2 (tag table), 6.3.1.2 (matrix), 6.5 (types).
    """
    white = (0.9642, 1.0, 0.8249)
    gamma = struct.pack(">4sIIH", b"curv", 0, 1, round(_GAMMA * 256)) + bytes(2)
    text = b"text" + bytes(4) + b"none\0"
    name = b"desc" + bytes(4) + struct.pack(">I", 5) + b"swap\0" + bytes(78)
    tags = {
        b"desc": name, b"cprt": text, b"wtpt": _xyz(white), b"rXYZ": _xyz(_BLUE),
        b"gXYZ": _xyz(_GREEN), b"bXYZ": _xyz(_RED), b"rTRC": gamma, b"gTRC": gamma, b"bTRC": gamma,
    }  # fmt: skip
    at, table, body = 128 + 4 + 12 * len(tags), b"", b""
    for key, content in tags.items():
        table += struct.pack(">4sII", key, at + len(body), len(content))
        body += content + bytes(-len(content) % 4)
    head = struct.pack(
        ">I4sI4s4s4s12s4s4sII8sI12s", at + len(body), b"none", 0x02400000, b"mntr", b"RGB ",
        b"XYZ ", struct.pack(">6H", 2001, 4, 1, 0, 0, 0), b"acsp", bytes(4), 0, 0, bytes(8), 0,
        struct.pack(">3i", *(round(value * 65536) for value in white)),
    )  # fmt: skip
    return head.ljust(128, b"\0") + struct.pack(">I", len(tags)) + table + body


def _xyz(values: tuple[float, float, float]) -> bytes:
    numbers = (round(value * 65536) for value in values)
    return b"XYZ " + bytes(4) + struct.pack(">3i", *numbers)


def _off(decoder: Decoder, image: Encoded, want: U8) -> float:
    """Levels in the mean; 255 where the size is another. A raw plane has two by two pictures."""
    if decoder.gives_raw:
        got, want = (
            np.array(decoder.raw(image).plane, int),
            mosaic(np.tile(want, (2, 2, 1)), "RGGB"),
        )
    else:
        got = np.array(decoder.rgb(image).rgb, int)
    return float(np.abs(got - want).mean()) if got.shape == want.shape else 255.0


def _middle(decoder: Decoder, data: bytes) -> Array:
    return np.array(decoder.rgb(inspect("profile", data)).rgb[8, 5], int)
