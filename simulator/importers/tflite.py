"""TFLite Metadata in a ``.tflite``, and MediaPipe's ``.task`` bundles of such files.

Sources: tensorflow/tflite-support, ``metadata_schema.fbs`` (NormalizationOptions: (x - mean) / std
on 0-255, for quantized networks too); tensorflow, ``lite/schema/schema.fbs``;
google-ai-edge/mediapipe, ``tasks/cc/metadata/metadata_extractor.cc`` and
``tasks/cc/components/processors/image_preprocessing_graph.cc``.
"""

from __future__ import annotations

import ast
import io
import json
import lzma
import math
import struct
import zipfile
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from simulator.errors import ProfileError
from simulator.importers import flat
from simulator.importers.draft import Draft, Order
from simulator.importers.importer import ConfigFile, Importer
from simulator.importers.network import CardFields, NetworkFile, Shape, of_draft
from simulator.importers.values import PIXELS, exact, plain, show
from simulator.profile.load import load

MOST = 2**30
"""Bytes of a network, unpacked."""
_DAMAGE = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, NotImplementedError,
           RuntimeError, OSError, EOFError, ValueError)  # fmt: skip
MARK = b"TFL3"
_IMAGE_TO_TENSOR = "MediaPipe's ImageToTensor: cv::Mat::convertTo(scale, offset)"
_FLOATS: Order = ("fused_multiply_add", _IMAGE_TO_TENSOR)
_BYTES: Order = ("multiply", "bytes are fed; the network takes (x - zero point) * scale")
_IMAGE, _NORMALIZATION, _RGB, _GRAY = 2, 1, 1, 2


@dataclass(slots=True)
class Network:
    """What one file says of its input.

    Attributes:
        name: of the file.
        shape: of the input.
        ports: the names and shapes of inputs and of outputs.
        kind: the input's element type.
        image: whether its metadata says that it is an image.
        color: the color space, as a number of the schema.
        mean, std: of NormalizationOptions; empty without them.
        scale, zero: of the input's quantization, 0 without one.
        title, summary: of the network.
        files: names of the associated files.
        has_metadata: whether there is any.
    """

    name: str
    shape: tuple[int, ...] = ()
    ports: tuple[dict[str, Shape], dict[str, Shape]] = field(default_factory=lambda: ({}, {}))
    kind: str = ""
    image: bool = False
    color: int = 0
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    scale: float = 0
    zero: int = 0
    title: str = ""
    summary: str = ""
    files: list[str] = field(default_factory=list)
    has_metadata: bool = False


class Tflite(Importer):
    """The metadata of one network, or of those of a bundle, of which each is a stack."""

    name = tool = "tflite"
    about = "TFLite Metadata of a .tflite, or of those in MediaPipe's .task"
    base = "mediapipe_fp32"

    def of_network(self, network: NetworkFile) -> CardFields | None:
        """Return what the metadata of the network itself says."""
        if (
            network.path.suffix != ".tflite"
            or not _networks(ConfigFile(network.path))[0].has_metadata
        ):
            return None
        file, draft = ConfigFile(network.path), Draft(load(self.base), self.tool)
        self.read(file, draft, 0)
        made = of_draft(draft, "its TFLite Metadata")
        made.name(dict(enumerate(_classes(file.whole(MOST)))))
        if made.labels[:1] in (("background",), ("unused",)):
            made.labels = made.labels[1:]
            made.say("the first label is of no class", output__background=1)
        return made

    def recognises(self, file: ConfigFile) -> bool:
        """Whether a file begins as a ``.tflite`` or a zip file."""
        is_zip = file.head[:4] == b"PK\x03\x04" and file.path.suffix != ".keras"
        return file.head[4:8] == MARK or is_zip

    def stacks(self, file: ConfigFile) -> list[str]:
        """Name the networks."""
        return [show(network.name) for network in _networks(file)]

    def read(self, file: ConfigFile, draft: Draft, stack: int) -> None:
        """Take the numbers of one network; resize and crop are MediaPipe's own."""
        found = _networks(file)
        network = found[stack]
        draft.name = Path(network.name).stem if len(found) > 1 else ""
        said = _problem(network) or _statistics(network)
        if isinstance(said, str):
            draft.problems.append(f"{file.path}: {show(network.name)}: {said}")
        else:
            _write(draft, network, *said)


def _networks(file: ConfigFile) -> list[Network]:
    path, raw = file.path, file.whole(MOST)
    files = [(path.name, raw)] if raw[4:8] == MARK else _unpacked(path, raw)
    found = []
    for name, data in files:
        try:
            found.append(network_of(name, data))
        except flat.Broken as error:
            raise ProfileError([f"{path}: {plain(name)}: a damaged .tflite: {error}"]) from error
    return found


def _unpacked(path: Path, raw: bytes) -> list[tuple[str, bytes]]:
    found, total = [], 0
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as bundle:
            for entry in bundle.infolist():
                total += entry.file_size if entry.filename.endswith(".tflite") else 0
                if total > MOST:
                    raise ProfileError([f"{path}: its networks have more than {MOST:,} bytes"])
                if entry.filename.endswith(".tflite"):
                    with bundle.open(entry) as file:
                        found.append((entry.filename, file.read(entry.file_size)))
    except _DAMAGE as error:
        raise ProfileError([f"{path}: a damaged bundle: {plain(str(error))}"]) from error
    if not found:
        raise ProfileError([f"{path}: a bundle without a .tflite"])
    return found


def network_of(name: str, data: bytes) -> Network:
    """Return what a file says of its first input, and of itself.

    Raises:
        Broken: it is no such file, or a damaged one.
    """
    if data[4:8] != MARK:
        raise flat.Broken("its first bytes are another file's")
    model = flat.Table.root(data)
    graphs, buffers = model.tables(2), model.tables(4)
    made = Network(name)
    if graphs and (inputs := graphs[0].numbers(1, "<i")):
        tensors = graphs[0].tables(0)
        outputs = graphs[0].numbers(2, "<i")
        if not all(0 <= at < len(tensors) for at in (*inputs, *outputs)):
            raise flat.Broken("an input or output is no tensor")
        made.ports = _ports(tensors, inputs), _ports(tensors, outputs)
        tensor = tensors[int(inputs[0])]
        made.shape = tuple(int(side) for side in tensor.numbers(0, "<i"))
        made.kind = flat.type_of(tensor)
        quantization = tensor.table(4)
        if quantization and (scales := quantization.numbers(2, "<f")):
            made.scale = scales[0]
            made.zero = int(next(iter(quantization.numbers(3, "<q")), 0))
    for table in model.tables(6):
        if table.text(0) == "TFLITE_METADATA":
            at = table.integer(1, "<I")
            if at >= len(buffers):
                raise flat.Broken("the metadata's buffer is missing")
            _describe(made, flat.Table.root(buffers[at].raw(0)))
    return made


def _ports(tensors: Sequence[flat.Table], places: Iterable[float]) -> dict[str, Shape]:
    """Return name and shape of some tensors; a free dimension is -1 in the signature."""
    found: dict[str, Shape] = {}
    for tensor in (tensors[int(at)] for at in places):
        shape = tensor.numbers(7, "<i") or tensor.numbers(0, "<i")
        found[tensor.text(3)] = tuple(None if side < 0 else int(side) for side in shape)
    return found


def network_file(path: Path) -> NetworkFile:
    """Return a ``.tflite`` as it describes itself, with what Ultralytics packs behind it.

    Raises:
        ProfileError: it cannot be read.
    """
    file = ConfigFile(path)
    (network,) = _networks(file)
    weights = "fp32" if network.kind.startswith("float") else "int8"
    return NetworkFile(path, *network.ports, packed_behind(file.whole(MOST)), weights)


def _classes(raw: bytes) -> list[str]:
    """The lines of the one text that is packed behind a network with metadata."""
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as packed:
            (name,) = (name for name in packed.namelist() if name.endswith(".txt"))
            return packed.read(name).decode().splitlines()
    except _DAMAGE:
        return []


def packed_behind(raw: bytes) -> dict[str, str]:
    """The values of a zip file behind a network: of JSON, or of a Python dictionary as text."""
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as packed:
            text = packed.read(packed.namelist()[0]).decode()
        found = json.loads(text) if text.startswith('{"') else ast.literal_eval(text)
    except (*_DAMAGE, IndexError, SyntaxError, MemoryError, RecursionError):
        return {}
    return {str(key): str(one) for key, one in found.items()} if isinstance(found, dict) else {}


def _describe(made: Network, metadata: flat.Table) -> None:
    """Take the metadata of the first input."""
    made.has_metadata = True
    made.title, made.summary = metadata.text(0), metadata.text(1)
    graphs = metadata.tables(3)
    tensors = [*graphs[0].tables(2), *graphs[0].tables(3)] if graphs else []
    holders = [metadata, *graphs[:1], *tensors]
    fields = (5, 4, *[6] * len(tensors)) if graphs else (5,)
    for holder, place in zip(holders, fields, strict=True):
        made.files += [table.text(0) for table in holder.tables(place)]
    inputs = graphs[0].tables(2) if graphs else []
    if not inputs:
        return
    content = inputs[0].table(3)
    if content and content.integer(0, "<B") == _IMAGE:
        made.image = True
        properties = content.table(1)
        made.color = properties.integer(0, "<b") if properties else 0
    for unit in inputs[0].tables(4):
        options = unit.table(1)
        if options and unit.integer(0, "<B") == _NORMALIZATION:
            made.mean, made.std = options.numbers(0, "<f"), options.numbers(1, "<f")


def _problem(network: Network) -> str:
    """Why this input is no image of one size; empty if it is."""
    if not network.has_metadata:
        return "no TFLITE_METADATA, so it says nothing of its preprocessing"
    if network.color == _GRAY or network.shape[3:] == (1,):
        return "a gray image; a profile's images are in color"
    if len(network.shape) != 4 or network.shape[3] != 3:
        return f"its input is {show(list(network.shape))}, and no color image of NHWC"
    if not all(0 < side <= PIXELS for side in network.shape[1:3]):
        return f"its input is {show(list(network.shape))}: one size expected"
    return ""


def _statistics(one: Network) -> tuple[list[Fraction], list[Fraction], str] | str:
    """Mean and std on 0-255 and their origin, or what is wrong with them."""
    if one.mean or one.std:
        if not {len(one.mean), len(one.std)} <= {1, 3}:
            return "NormalizationOptions: one or three numbers each expected"
        if not all(math.isfinite(v) for v in (*one.mean, *one.std)) or min(one.std) <= 0:
            return "NormalizationOptions: finite numbers and a std above 0 expected"
        mean, std = ([exact(v) for v in one_of] * (3 // len(one_of))
                     for one_of in (one.mean, one.std))  # fmt: skip
        return mean, std, "NormalizationOptions"
    if one.kind == "uint8" and 0 < one.scale < math.inf:
        mean, std = [Fraction(one.zero)] * 3, [1 / exact(one.scale)] * 3
        return mean, std, f"no NormalizationOptions: bytes are fed; (x - {one.zero}) * {one.scale}"
    return "no NormalizationOptions, which a network of this type needs"


def _write(
    draft: Draft, one: Network, mean: list[Fraction], std: list[Fraction], said: str
) -> None:
    order = "rgb" if one.color == _RGB else "model"
    origin = f"from tflite: color_space={one.color} (1 is RGB)"
    draft.color("images are fed as RGB", order, origin)
    for section in ("resize", "geometry"):
        why = f"the metadata names no resizer and no crop; {draft.base.name} has MediaPipe's"
        draft.claim(section, "assumed", why)
    how = _FLOATS if one.kind == "float32" else _BYTES
    draft.normalize(mean, std, how, lambda _: f"from tflite: {said}")
    draft.network(one.shape[1:3], "the tensor's shape", "NHWC")
    for name in dict.fromkeys(one.files):
        draft.aside.append(f"associated file {show(name)}: labels are the model card's")
    if one.kind != "float32":
        draft.claim("precision", "assumed", f"the network takes {one.kind} and is quantized as the "
                    f"file has it; {draft.base.spec.precision.compute} is {draft.base.name}'s: "
                    "import with an INT8 --base, or name the file in the card")  # fmt: skip


TFLITE = Tflite()
