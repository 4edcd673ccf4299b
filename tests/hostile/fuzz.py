"""Hostile inputs from a seed, and what must come of each: an answer, or an error for the person.

``case(kind, seed, folder)`` makes one input and gives it to the code that reads it. The same seed
makes the same input on every machine. ``tools/fuzz.py`` runs more of them than the tests do.
"""

from __future__ import annotations

import contextlib
import io
import json
import random
import struct
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import tiny
import yaml
from damaged_png import animation
from PIL import Image

from simulator import registry
from simulator.audit.document import load_audit
from simulator.cli import main
from simulator.contract import Encoded, Frame, Stage
from simulator.contract.encoded import read_image
from simulator.data.card import read_card
from simulator.data.folder import load_folder
from simulator.data.labels import Labels
from simulator.data.recording import load_recording
from simulator.errors import SampleError, UserError
from simulator.importers import convert
from simulator.model.card import Card
from simulator.model.onnxfile import check
from simulator.pipeline.isolation import Isolation
from simulator.profile.implementations import implementation
from simulator.profile.load import load
from simulator.profile.lookup import builtin_folder
from simulator.profile.suite import load_suite
from simulator.results.read import read_manifest, read_run
from simulator.testing.formats import FOLDER

ODD = (
    b"", b"\0", b"\xff\xfe", b"-1", b"1e999", b"NaN", b"null", b"[]", b"{}", b'""', b"*a", b"&a",
    b"!!python/object:os.system", b"9" * 40, b"../" * 40, b"x" * 5000, b"\xed\xa0\x80", b"=1+1",
    b"[" * 200, b": ", b"\t", b"\r\n", b"%s%n", b"<!DOCTYPE a>", b"true", b"~", b"|\n",
)  # fmt: skip


def mutated(rng: random.Random, data: bytes) -> bytes:
    """Damage bytes once to four times: flip, cut, repeat, insert, or replace by something odd."""
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(data) + 1)
        end = min(len(data), at + rng.choice((1, 2, 4, 16, 64)))
        kind = rng.randrange(6)
        if kind == 0 and data:
            at = rng.randrange(len(data))
            data = data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]
        elif kind == 1:
            data = data[:at] + data[end:]
        elif kind == 2:
            data = data[:end] + data[at:]
        elif kind == 3:
            data = data[:at] + rng.randbytes(rng.choice((1, 2, 4, 8))) + data[at:]
        elif kind == 4:
            data = data[:at] + rng.choice(ODD) + data[end:]
        else:
            big = struct.pack(rng.choice((">I", "<I", ">H")), rng.choice((0, 1, 255, 32768, 65535)))
            data = data[:at] + big + data[at + len(big) :]
    return data


def mutated_lines(rng: random.Random, data: bytes) -> bytes:
    """Damage a text by lines: lose, repeat, move, indent, or give one another value."""
    lines = data.split(b"\n")
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(lines))
        kind = rng.randrange(5)
        if kind == 0 and len(lines) > 1:
            del lines[at]
        elif kind == 1:
            lines.insert(rng.randrange(len(lines)), lines[at])
        elif kind == 2:
            lines[at] = b"  " + lines[at]
        else:
            key, mark, _ = lines[at].partition(rng.choice((b":", b"=", b",")))
            lines[at] = key + mark + b" " + rng.choice(ODD)
    return b"\n".join(lines)


# --- images -----------------------------------------------------------------------------------


def _pictures() -> list[tuple[str, bytes]]:
    red = tiny.picture(tiny.COLORS["red"], (17, 11))
    gray = Image.fromarray(red[..., 0])
    tags = Image.Exif()
    tags[0x0112] = 6
    return [
        ("jpg", tiny.encoded(red)),
        ("jpg", tiny.encoded(red, progressive=True)),
        ("jpg", tiny.encoded(red, subsampling=0, quality=30)),
        ("jpg", tiny.encoded(gray)),
        ("jpg", tiny.encoded(Image.fromarray(red).convert("CMYK"))),
        ("jpg", tiny.encoded(red, exif=tags.tobytes())),
        ("png", tiny.encoded(red, "png")),
        ("png", animation(default_image=True)),
        ("png", animation("P")),
        ("png", tiny.encoded(Image.fromarray(red).quantize(16), "png")),
        ("png", tiny.encoded(gray, "png")),
        ("png", tiny.encoded(np.dstack([red, red[..., :1]]), "png")),
        ("png", tiny.encoded(Image.fromarray(red[..., 0].astype(np.uint16) * 200), "png")),
        *((place.suffix[1:], place.read_bytes()) for place in sorted(FOLDER.iterdir())),
    ]


def _with_checksums(data: bytes) -> bytes:
    """Make the checksum of every chunk of a PNG right, so that damage gets past the front door."""
    out, at = bytearray(data[:8]), 8
    while at + 8 <= len(data):
        (length,) = struct.unpack_from(">I", data, at)
        body = data[at + 4 : at + 8 + length]
        out += struct.pack(">I", max(0, len(body) - 4)) + body
        out += struct.pack(">I", zlib.crc32(body))
        at += 12 + length
    return bytes(out)


DECODERS = {
    "pillow": {},
    "pillow_heif": {},
    "pillow_jxl": {},
    "imagecodecs": {},
    "libvips": {},
    "opencv": {},
    "dali": {"device": "cpu"},
    "nvimagecodec": {"device": "cpu"},
}
ISOLATION = Isolation()


@cache
def _decoder(name: str) -> Callable[[Encoded], Frame]:
    """A library's decoder as runs use it: what kills it kills a worker."""
    options = {"exif": "ignore", "idct": "islow", "chroma_upsampling": "fancy", **DECODERS[name]}
    choice = implementation(Stage.DECODE, registry.backend(name), options)
    return ISOLATION.guarded(choice, choice.make().rgb)


def an_image(rng: random.Random, folder: Path) -> None:
    """A damaged image file: refused with a reason, or decoded to the size of its header."""
    suffix, whole = rng.choice(_pictures())
    data = mutated(rng, whole)
    if suffix == "png" and rng.random() < 0.7:
        data = _with_checksums(data)
    place = folder / f"image.{suffix}"
    place.write_bytes(data)
    try:
        image = read_image("image", place)
    except SampleError as error:
        _one_line(error)
        return
    if image.width * image.height > 2**22:
        return
    for name in DECODERS:
        try:
            frame = _decoder(name)(image)
        except SampleError as error:
            _one_line(error)
            continue
        assert frame.rgb.shape == (image.height, image.width, 3), name
        assert frame.rgb.dtype == np.uint8, name


# --- documents --------------------------------------------------------------------------------

CARD_OF_DATA = b"""schema: 1
name: boxes
task: detection
format: coco
images: images
annotations: boxes.json
"""
COCO = {
    "images": [{"id": 1, "file_name": "a.jpg", "height": 17, "width": 11}],
    "categories": [{"id": 1, "name": "red"}, {"id": 2, "name": "green"}],
    "annotations": [
        {"id": 1, "image_id": 1, "category_id": 1, "bbox": [1, 2, 3, 4], "area": 12, "iscrowd": 0}
    ],
}
AUDIT = b"""schema: 1
name: release
train: pillow_fp32
deploy:
  board: opencv_fp32
models:
  tiny: {card: card.yaml, data: images}
rules:
  - fail_on: flip_rate > 1%
    because: the release note promises it
"""
SUITE = b"""schema: 1
name: small
summary: two resizers
train: pillow_fp32
columns:
  resize:
    nearest: {resize: pil-nearest}
    area: {resize: opencv-area}
"""
RECORDING = b"""schema: 1
name: board
device: a board
kind: predictions
file: predictions.csv
match: name
model: "%s"
""" % (b"ab" * 32)
DEEPSTREAM = b"""[property]
net-scale-factor=0.0039215697906911373
offsets=123.675;116.28;103.53
model-color-format=0
onnx-file=model.onnx
infer-dims=3;224;224
network-mode=0
network-type=1
maintain-aspect-ratio=0
"""
HUGGING_FACE = b"""{"image_processor_type": "ViTImageProcessor", "do_resize": true, "resample": 2,
"size": {"height": 224, "width": 224}, "do_rescale": true, "rescale_factor": 0.00392156862745098,
"do_normalize": true, "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]}
"""
CHECKER = b"""models:
  - name: one
    launchers:
      - framework: openvino
        adapter: classification
    datasets:
      - name: imagenet
        preprocessing:
          - type: resize
            size: 256
            aspect_ratio_scale: greater
          - type: crop
            size: 224
          - type: normalization
            mean: 123.675, 116.28, 103.53
            std: 58.395, 57.12, 57.375
"""
LABELS = Labels(("red", "green", "blue"))


def beside(folder: Path) -> None:
    """Write what the documents refer to."""
    (folder / "images").mkdir()
    (folder / "images" / "a.jpg").write_bytes(tiny.encoded(tiny.picture((9, 9, 9), (17, 11))))
    (folder / "boxes.json").write_text(json.dumps(COCO, indent=1))
    (folder / "predictions.csv").write_text("image,prediction\na.jpg,1\n")
    tiny.card(folder)


def _manifest(place: Path) -> object:
    (place.parent / "manifest.json").write_bytes(place.read_bytes())
    with contextlib.suppress(UserError):  # there is no summary
        read_run(place.parent)
    return read_manifest(place.parent)


def _table(place: Path) -> object:
    (place.parent / "images" / "labels.csv").write_bytes(place.read_bytes())
    return load_folder(place.parent / "images", LABELS)


def _boxes(place: Path) -> object:
    if place.suffix == ".json":
        (place.parent / "boxes.json").write_bytes(place.read_bytes())
        place = place.with_name("data.yaml")
        place.write_bytes(CARD_OF_DATA)
    return read_card(place).load(LABELS)


def documents() -> list[tuple[str, bytes, Callable[[Path], object]]]:
    """Return whole documents: each name, content, and what reads it."""
    card = yaml.safe_dump(tiny.SPEC, sort_keys=False).encode()
    manifest = {
        "status": "complete", "schema": 1, "command": "run", "created": "x", "seed": 0,
        "request": {"command": "run", "arguments": {"train": "pillow_fp32"}},
    }  # fmt: skip
    profiles = [
        (place.name, place.read_bytes(), lambda found: load(str(found)))
        for place in sorted(builtin_folder().glob("*.yaml"))
    ]
    return [
        *profiles[:: max(1, len(profiles) // 4)],
        ("card.yaml", card, Card),
        ("suite.yaml", SUITE, lambda found: load_suite(str(found))),
        ("audit.yaml", AUDIT, load_audit),
        ("recording.yaml", RECORDING, load_recording),
        ("data.yaml", CARD_OF_DATA, _boxes),
        ("coco.json", json.dumps(COCO, indent=1).encode(), _boxes),
        ("table.csv", b"file,label\na.jpg,red\n", _table),
        ("deepstream.txt", DEEPSTREAM, convert),
        ("preprocessor_config.json", HUGGING_FACE, convert),
        ("checker.yml", CHECKER, convert),
        ("run.json", json.dumps(manifest, indent=1).encode(), _manifest),
    ]


def a_document(rng: random.Random, folder: Path) -> None:
    """A damaged document: read, or refused in lines that a person understands."""
    name, whole, read = rng.choice(documents())
    damage = mutated_lines if rng.random() < 0.6 else mutated
    beside(folder)
    place = folder / f"{name}"
    place.write_bytes(damage(rng, whole))
    try:
        read(place)
    except UserError as error:
        _one_line(error, several=True)


# --- models -----------------------------------------------------------------------------------

TYPES = (0, 1, 2, 7, 8, 9, 10, 16, 21, 999, -1, 2**31 - 1)


def _damaged_model(rng: random.Random) -> bytes:
    model = rng.choice((tiny.classifier, tiny.pooled))()
    graph = model.graph
    if rng.random() < 0.3:
        return mutated(rng, model.SerializeToString())
    node = rng.choice(graph.node)
    ports = rng.choice((graph.input, graph.output))[0].type.tensor_type
    match rng.randrange(10):
        case 0:
            ports.elem_type = rng.choice(TYPES)
        case 1:
            rng.choice(ports.shape.dim).dim_value = rng.choice((-1, 0, 1, 2**31, 2**62))
        case 2:
            node.op_type = rng.choice(("", "Nothing", "Loop", "If", "Conv", "x" * 5000, "\u00e9"))
        case 3:
            node.input[0] = rng.choice(("", "y", "nowhere", node.output[0]))
        case 4:
            graph.initializer[0].data_type = rng.choice(TYPES)
        case 5:
            graph.initializer[0].dims[0] = rng.choice((-1, 0, 2, 2**40))
        case 6:
            weights = graph.initializer[0]
            weights.data_location = 1
            entry = weights.external_data.add()
            entry.key, entry.value = (
                "location",
                rng.choice(("a\0b", "../x", "x" * 5000, "/etc", "")),
            )
        case 7:
            model.opset_import[0].version = rng.choice((-1, 0, 1, 10**6))
        case 8:
            del rng.choice((graph.node, graph.input, graph.output, graph.initializer))[:]
        case _:
            ports.ClearField(rng.choice(("shape", "elem_type")))
    return model.SerializeToString()


def a_model(rng: random.Random, folder: Path) -> None:
    """A damaged network: refused in a line, or it goes through a whole run."""
    card = tiny.card(folder / "model")
    (card.parent / "model.onnx").write_bytes(_damaged_model(rng))
    try:
        check(Card(card))
    except UserError as error:
        _one_line(error, several=True)
        return
    data = tiny.data(folder / "data", each=1)
    words = ["--train", "pillow_fp32", "--deploy", "pillow_fp32", "--model", card, "--data", data]
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        code = main([str(word) for word in (*words, "--out", folder / "run")])
    assert code in (0, 2), said.getvalue()
    assert "Traceback" not in said.getvalue()


def _one_line(error: Exception, several: bool = False) -> None:
    """An error says something, in printable characters, on one line a problem."""
    lines = str(error).split("\n")
    assert several or len(lines) == 1, str(error)
    assert all(line.strip() for line in lines), str(error)
    assert not any(ord(char) < 32 for line in lines for char in line if char != "\t"), str(error)


KINDS = {"image": an_image, "document": a_document, "model": a_model}


def case(kind: str, seed: int, folder: Path) -> None:
    """Make one hostile input in an empty folder and give it to its reader.

    Raises:
        Exception: whatever the reader raised besides an error for the person.
    """
    KINDS[kind](random.Random(f"{kind} {seed}"), folder)
