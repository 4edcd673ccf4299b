"""Networks and model cards that a program in Python has in hand, as files in the user's cache."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import yaml

from simulator import cache, registry
from simulator.contract import Array, NetworkWriter, Stage
from simulator.errors import ModelError, ProfileError, unknown
from simulator.model.card import Card, not_filled_in, of_onnx_alone
from simulator.model.draft import unfinished
from simulator.model.onnxfile import PROTOBUF
from simulator.model.proposed import PART
from simulator.profile.document import Values, inside, read

_CARD, _CONFIG = "model.yaml", "config.json"
_NEEDED = {"task", "input", "geometry", "output"}
"""The keys of a whole card, besides :data:`_IDENTITY`."""
_SIZE = ("height", "width", "layout")
_IDENTITY: Values = {"schema": 1, "name": "from Python"}
_EXAMPLE = "write card=CARD, or input=(1, 3, 224, 224) or an example of its input"


def written(
    network: Any, card: str | Path | Mapping[str, object] | None = None, given: Any = None
) -> Path:
    """Write a network to the cache, in a folder that is named after its content.

    Args:
        network: an ``onnx.ModelProto``, a network of a library with a
            :class:`simulator.contract.NetworkWriter` (``torch.nn.Module``), or the path of a file.
        card: a model card, or what one would say; the files that it names for the network are left
            out. A dictionary of a network in memory may say a part: the rest is proposed.
        given: the shape of the network's input with the batch, or an example of it; by default
            float32 in the shape that the card says, or the network, as those of timm and
            Transformers do.

    Returns:
        The path of the card; without a whole one, that of the ONNX file.

    Raises:
        ModelError: the network or the card cannot be used; or the network's input is not known.
        RunError: the cache cannot be written.
    """
    values: Values = {} if card is None else _values(card)
    here = not isinstance(network, str | Path)
    whole = values.keys() >= _NEEDED or not (here and isinstance(card, Mapping | None))

    def write(folder: Path) -> None:
        file = folder / f"{_name(network)}.onnx" if here else Path(network).absolute()
        if here:
            file.touch()
        if whole:
            shape = _card(_IDENTITY | values | {"model": file.name if here else str(file)}, folder)
        else:
            shape = _proposing(network, values, folder)
        if here:
            _write(network, file, shape if given is None else given)

    folder = cache.by_content("models", write)
    return folder / _CARD if whole else next(folder.glob("*.onnx"))


def _proposing(network: Any, part: Values, folder: Path) -> tuple[int, ...] | None:
    """Write what is known of a network without a whole card; return the shape of its input."""
    for key in part.keys() - {*_NEEDED, *_IDENTITY, "summary", "labels"}:
        raise ModelError(f"card: {unknown('key', key, [*_NEEDED, 'labels'])}")
    known = {key: value for key, value in part.items() if key not in (*_IDENTITY, "summary")}
    (folder / PART).write_text(yaml.safe_dump(known), encoding="utf-8")
    if config := _config(network):
        (folder / _CONFIG).write_text(json.dumps(config, default=str), encoding="utf-8")
    height, width, layout = (inside(known, ("input", key)) for key in _SIZE)
    if isinstance(height, int) and isinstance(width, int):
        return (1, height, width, 3) if layout == "NHWC" else (1, 3, height, width)
    return _shape(config)


def _config(network: Any) -> Values:
    """What a network of timm or Transformers says of itself, as the file beside its weights."""
    if isinstance(found := getattr(network, "pretrained_cfg", None), Mapping):
        return {"pretrained_cfg": dict(found)}
    told: object = getattr(getattr(network, "config", None), "to_dict", dict)()
    return told if isinstance(told, dict) else {}


def _shape(config: Values) -> tuple[int, ...] | None:
    """The shape of an image network's input, as such a file has it."""
    size = inside(config, ("pretrained_cfg", "input_size"))
    if size is None and (side := config.get("image_size")):
        size = [
            config.get("num_channels", 3),
            *(side if isinstance(side, Sequence) else [side] * 2),
        ]
    return (1, *size) if isinstance(size, Sequence) else None


def _write(network: Any, target: Path, given: Any) -> None:
    """Write a network, of which nothing is asked that an ONNX graph says itself."""
    if isinstance(network, onnx.ModelProto):
        large = network.ByteSize() >= PROTOBUF
        onnx.save_model(network, target, save_as_external_data=large, location="weights")
        return
    for backend in registry.serving(Stage.NETWORK):
        writer: NetworkWriter = backend.of(Stage.NETWORK)[0].make({})
        if writer.takes(network):
            writer.write(network, _example(type(network).__name__, given), target)
            return
    kind = f"{type(network).__module__}.{type(network).__name__}"
    raise ModelError(
        f"model: {kind} is no network; give a path, an onnx.ModelProto or a torch.nn.Module"
    )


def _example(name: str, given: Any) -> Array:
    """An input of a network; of a shape alone, normal numbers of a fixed seed."""
    if isinstance(given, Sequence) and given and all(isinstance(one, int) for one in given):
        if min(given) < 1:
            raise ModelError(f"input: {tuple(given)}: sides of at least 1 expected")
        return np.random.default_rng(0).standard_normal(given).astype(np.float32)
    if not hasattr(given, "__array__"):
        raise ModelError(f"model: what {name} takes is not known; {_EXAMPLE}")
    return np.asarray(given)


def _values(card: str | Path | Mapping[str, object]) -> Values:
    """What a card says, with whole paths and without the network's files."""
    if isinstance(card, Mapping):
        values, folder = dict(card), Path()
    else:
        path = Path(card)
        try:
            values, folder = read(path).values, path.parent
        except ProfileError as error:
            raise ModelError(str(error)) from error
        if todo := unfinished(path.read_text(encoding="utf-8")):
            raise ModelError(not_filled_in(path, todo))
    found: Values = _located(of_onnx_alone(values), folder)
    return found


def _located(value: Any, folder: Path) -> Any:
    """A part of a card in which names of files beside it are whole paths."""
    if isinstance(value, Mapping):
        return {key: _located(inner, folder) for key, inner in value.items()}
    if isinstance(value, str) and Path(value).suffix and os.path.isfile(folder / value):
        return str((folder / value).absolute())
    return value


def _card(values: Values, folder: Path) -> tuple[int, ...] | None:
    """Write a card; return the shape of the network's one input, None where it leaves it open."""
    place = folder / _CARD
    place.write_text(yaml.safe_dump(values, sort_keys=False, allow_unicode=True), "utf-8")
    try:
        feeds = Card(place).feeds
    except ModelError as error:
        raise ModelError(re.sub(rf"{re.escape(str(place))}(:\d+)?", "card", str(error))) from error
    shape = feeds[0].shape if len(feeds) == 1 else (None,)
    return None if None in shape else tuple(side for side in shape if side is not None)


def _name(network: Any) -> str:
    """The name of a file: of the graph, or of the module's class."""
    named = network.graph.name if isinstance(network, onnx.ModelProto) else type(network).__name__
    return re.sub(r"[^\w.-]+", "_", named).strip("._")[:80] or "model"
