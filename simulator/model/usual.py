"""The fields of a proposed card: what a source says, and the usual value of what none says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from simulator.importers.network import CardFields, NetworkFile, Shape
from simulator.model.draft import PIXELS, Field, words

IMAGENET = {"input.mean": [0.485, 0.456, 0.406], "input.std": [0.229, 0.224, 0.225]}
NORMALIZES = ("Sub", "Div", "Mul", "Add", "BatchNormalization")
"""What a graph begins with where normalization is inside it."""
_NOT_MINE = ("task", "labels")
_NONE = Field("", None)
FREE = "free"


def fields_of(
    network: NetworkFile, ends: tuple[str, str], found: Sequence[CardFields], labelled: bool
) -> list[Field]:
    """Return all fields; what no source says has its usual value, and a question."""
    assert network.image
    layout, height, width = network.image
    said = _merged(found)
    if None not in (height, width) and said.get("input.height", _NONE).value == FREE:
        said = {key: one for key, one in said.items() if _group(key) != "geometry"}
    seen, why = _task(network.outputs)
    guess = next((one for one in found if one.is_guess and "task" in one.said), None)
    asks = f"{guess.source}: is all below as in its training?" if guess else ""
    fields = [said["task"]] if "task" in said else [Field("task", seen, why, said=False)]
    fields = [replace(field, todo=asks) for field in fields]
    task = str(fields[0].value)
    for key, side in (("height", height), ("width", width)):
        at = f"input.{key}"
        free = Field(
            at, 224, todo="free in the file; the size of the training", said=False, usable=False
        )
        fields.append(said.get(at, free) if side is None else Field(at, side))
    fields.append(Field("input.layout", layout))
    for at, name in zip(("input.name", "input.mask"), network.masked or (), strict=False):
        fields.append(Field(at, name, "of its two inputs"))
    fields += _pixels(said, ends[0])
    if not any(key.startswith("geometry.") for key in said):
        fields += _geometry(task, height)
    kind = "probabilities" if ends[1] == "Softmax" else "logits"
    about = f"the graph ends with {ends[1]}" if ends[1] else "the usual one"
    output = _output(network, task, Field("output.kind", kind, about), height, said)
    fields += [said.get(field.key, field) for field in output]
    known = {field.key for field in fields}
    fields += [field for key, field in said.items() if key not in known and key not in _NOT_MINE]
    if not labelled and task != "classification":
        asks = "a file with a class a line, in the order of the scores"
        fields.append(Field("labels", "classes.txt", todo=asks, said=False, usable=False))
    elif not labelled:
        about = "optional: a file with a class a line"
        fields.append(Field("labels", "classes.txt", about, is_off=True))
    return fields


def _merged(found: Sequence[CardFields]) -> dict[str, Field]:
    """What is said of each field; geometry and numbers of a channel are of one source each."""
    said: dict[str, Field] = {}
    taken: set[str] = set()
    for one in found:
        groups = {_group(key) for key in one.said} - taken
        said |= {
            key: Field(key, says.value, says.origin, said=not one.is_guess)
            for key, says in one.said.items()
            if _group(key) in groups
        }
        taken |= groups
    return said


def _group(key: str) -> str:
    is_scale = key in ("input.top", "input.mean", "input.std")
    return "scale" if is_scale else "geometry" if key.startswith("geometry.") else key


def _task(outputs: Mapping[str, Shape]) -> tuple[str, str]:
    """Return what the shapes of the outputs are typical of, and the words for it."""
    shapes = list(outputs.values())
    if len(shapes) == 1 and len(shapes[0]) == 2:
        return "classification", "one row of scores looks like it"
    if len(shapes) == 1 and len(shapes[0]) == 4:
        return "segmentation", "one map of scores looks like it"
    return "detection", "these outputs look like it"


def _pixels(said: Mapping[str, Field], begins: str) -> Iterator[Field]:
    """How pixels become numbers: one question for all that no source says."""
    usual: dict[str, object] = {"input.order": "rgb", "input.top": 1, **IMAGENET}
    told = "these are ImageNet's, as torchvision and timm train; others: 0…1, -1…1, bgr 0…255"
    if begins in NORMALIZES:
        usual |= {"input.top": 255, "input.mean": [0.0] * 3, "input.std": [1.0] * 3}
        told = f"the graph begins with {begins}, so it may normalize by itself"
    left = [key for key in PIXELS if key not in said]
    asks = f"how pixels became numbers in training (order, top, mean, std); {told}"
    if left == ["input.order"]:
        asks = "the order of the channels in training, rgb or bgr"
    for key in PIXELS:
        todo = asks if left[:1] == [key] else ""
        yield said.get(key) or Field(key, usual[key], todo=todo, said=False)


def _geometry(task: str, height: int | None) -> Iterator[Field]:
    asks = "as in evaluation: short_side_crop (needs short_side), squash, or letterbox"
    kinds = {"classification": "short_side_crop", "detection": "letterbox"}
    yield Field("geometry.kind", kinds.get(task, "squash"), todo=asks, said=False)
    if task == "classification":
        side = round((height or 224) * 256 / 224)
        yield Field("geometry.short_side", side, "before the crop", said=False)


def _output(
    network: NetworkFile, task: str, kind: Field, height: int | None, said: Mapping[str, Field]
) -> Iterator[Field]:
    name, shape = next(iter(network.outputs.items()), ("", ()))
    if task == "classification" and "output.kind" not in said:
        yield kind
        if shape[-1:] == (1001,):
            yield Field("output.background", 1, "of 1001 scores, the first is of no class")
    elif task == "segmentation":
        layout = network.image[0] if network.image else "NCHW"
        rows = shape[2] if layout == "NCHW" else shape[1]
        stride = round((height or 224) / rows) if rows else 1
        resize = {"of": "labels", "mode": "nearest", "coordinate_transformation_mode": "half_pixel"}
        yield Field("output.scores", name)
        yield kind
        yield Field("output.layout", layout)
        asks = "argmax before or after the mask gets the image's size, and how (mask_resize)"
        yield Field("output.argmax", "after", todo=asks, said=False)
        yield Field("output.output_stride", stride, "network pixels from one score to the next")
        yield Field("output.mask_resize", resize, said=False)
    elif task == "detection" and "output.head" not in said:
        asks = f"how {words(network.outputs)} become boxes; see docs/model-cards.md#heads"
        yield Field("output.head", {}, todo=asks, said=False, usable=False)
