"""Print the tables of docs/decoders.md: how far decoders are from Pillow in each format.

python tools/format_table.py FOLDER [COUNT]
"""

import io
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image

from simulator import registry
from simulator.conditions.condition import CONDITIONS
from simulator.contract import Decoder, Encoded, Stage, inspect
from simulator.contract.encoded import read_image
from simulator.contract.image_formats import suffixes
from simulator.errors import SampleError
from simulator.profile.implementations import implementation
from simulator.testing.corpus import options_of

SWSCALE = ["bicubic", "accurate_rnd", "full_chroma_int", "full_chroma_inp", "bitexact"]
FIRST = {"heic": "pillow_heif", "jxl": "pillow_jxl"}
COLUMNS = (
    "opencv", "imagecodecs", "libvips", "ffmpeg", "dali", "nvimagecodec", "tensorflow"
)  # fmt: skip
LOSSY = ("jpeg:90", "webp:75", "avif:60", "heic:60", "jxl:80")
WHOLE = {
    "webp": ("WEBP", {"lossless": True}), "jpeg2000": ("JPEG2000", {}), "tiff": ("TIFF", {}),
    "bmp": ("BMP", {}), "gif": ("GIF", {}), "avif": ("AVIF", {"subsampling": "4:4:4"}),
}  # fmt: skip


def decoder(name: str, **more: object) -> Decoder:
    backend = registry.backend(name)
    own = {"swscale_flags": SWSCALE} if name == "ffmpeg" else {}
    return implementation(Stage.DECODE, backend, {**options_of(backend), **own, **more}).make()


def kinds(image: Encoded) -> Iterator[tuple[str, Encoded]]:
    for text in LOSSY:
        name, _, quality = text.partition(":")
        yield text, CONDITIONS[name].parse(quality).open()(image, np.random.default_rng(0))
    rgb = decoder("pillow").rgb(image).rgb
    for name, (codec, options) in WHOLE.items():
        file = io.BytesIO()
        Image.fromarray(rgb).save(file, codec, **options)
        yield " ".join((name, *map(str, options.values()))), inspect(image.name, file.getvalue())


def off(one: Decoder, other: Decoder, image: Encoded) -> np.ndarray | str:
    try:
        return np.abs(one.rgb(image).rgb.astype(int) - other.rgb(image).rgb)
    except SampleError:
        return "–"


def told(found: list[np.ndarray | str]) -> str:
    made = [one for one in found if not isinstance(one, str)]
    if not made:
        return "–"
    mean, most = np.mean([one.mean() for one in made]), max(int(one.max()) for one in made)
    less = f", {len(found) - len(made)} refused" if len(made) < len(found) else ""
    return f"{mean:.3f}, {most}{less}" if most else f"equal{less}"


def main(folder: str, count: str = "50") -> None:
    files = sorted(p for p in Path(folder).rglob("*") if p.suffix.lower() in suffixes())
    images = [read_image(path.name, path) for path in files[: int(count)]]
    rows: dict[str, list[list[np.ndarray | str]]] = {}
    tools = {name: decoder(name) for name in ("pillow", *FIRST.values(), *COLUMNS)}
    for image in images:
        for text, made in kinds(image):
            first = tools[FIRST.get(made.format, "pillow")]
            for at, name in enumerate(COLUMNS):
                cells = rows.setdefault(text, [[] for _ in COLUMNS])
                cells[at].append(off(tools[name], first, made))
    print(f"| {len(images)} images | {' | '.join(COLUMNS)} |\n|{' --- |' * (len(COLUMNS) + 1)}")
    for text, cells in rows.items():
        print(f"| {text} | {' | '.join(map(told, cells))} |")
    tagged = [one for one in images if b"ICC_PROFILE" in one.data[:4096]]
    to = {name: decoder(name, profile="to_srgb") for name in ("pillow", "libvips")}
    for name, other in (("pillow", tools["pillow"]), ("libvips", to["pillow"])):
        found = [off(to[name], other, one) for one in tagged]
        what = "ignored by" if other is tools["pillow"] else "applied by"
        print(f"to_srgb by {name} against {what} pillow, {len(tagged)} tagged: {told(found)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
