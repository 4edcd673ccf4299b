"""Ultralytics: ``metadata.yaml``, which its exporters write beside a model, or the same inside it.

Sources, of ultralytics/ultralytics: ``engine/exporter.py`` (``self.metadata``), ``data/augment.py``
(``LetterBox``: cv2.INTER_LINEAR, 114, sides rounded, the smaller half of the padding above and to
the left; ``classify_transforms``: torchvision's Resize and CenterCrop), ``engine/predictor.py``
(BGR to RGB, / 255), ``utils/ops.py`` (``scale_boxes``), ``utils/patches.py`` (``imread``),
``models/rtdetr/predict.py`` (``pre_transform``: LetterBox with scale_fill, a squash).
"""

from __future__ import annotations

from fractions import Fraction

from simulator.importers import ultralytics_heads as heads
from simulator.importers import values
from simulator.importers.draft import Draft
from simulator.importers.importer import ConfigFile, Importer
from simulator.importers.keys import Keys
from simulator.importers.network import CardFields, NetworkFile, of_draft
from simulator.importers.values import keys_by_reason
from simulator.profile.load import load

_TASKS = {"detect": "detection", "segment": "detection", "obb": "other", "pose": "other",
          "classify": "classification", "semantic": "segmentation"}  # fmt: skip
_ASIDE = keys_by_reason({
    "says nothing about pixels": "description author date version license docs",
    "the classes: the model card's labels": "names",
    "the network itself; the model card names an ONNX file":
        "stride end2end kpt_shape kpt_names head model_name",
    "samples run one at a time": "batch",
})  # fmt: skip


class Ultralytics(Importer):
    """The metadata of an export."""

    name = tool = "ultralytics"
    about = "the metadata.yaml of an Ultralytics export"
    base = "pillow_fp32"
    stems = ("metadata",)
    line = r"^imgsz\s*:"

    beside = ("metadata.yaml",)

    def read(self, file: ConfigFile, draft: Draft, stack: int) -> None:
        """Follow the library's own predictor for the task and size of the file."""
        keys = file.yaml_keys(draft)
        _front_end(keys)
        _arguments(keys)
        keys.rest(_ASIDE, passed_over="Ultralytics", named=("imgsz", "args"))

    def of_network(self, network: NetworkFile) -> CardFields | None:
        """Return the whole card: front end, head and labels; None: the network is another's."""
        metadata, source = heads.metadata(network.metadata), "Ultralytics' metadata in the file"
        path = next(network.beside(self.beside), None)
        if metadata is None and path and self.recognises(file := ConfigFile(path)):
            metadata, source = file.yaml.values, f"{path.name} beside it"
        is_guess = metadata is None
        if metadata is None:
            metadata, source = heads.by_shape(network), "the number of boxes, which is a YOLO's"
        if metadata is None:
            return None
        draft = Draft(load(self.base), self.tool)
        size = network.image[1:] if network.image else (None,)
        imgsz = {"imgsz": list(size), "args": {}} if all(size) else {}
        keys = Keys(draft, {**metadata, **imgsz}, lambda _: str(network.path))
        task = _front_end(keys)
        made = of_draft(draft, source)
        made.is_guess = is_guess
        if "geometry.multiple_of" in made.said:
            made.said["input.multiple_of"] = made.said["geometry.multiple_of"]
        heads.add(made, network, metadata, task)
        return made


def _front_end(keys: Keys) -> str:
    """Write what the predictor does with images; return our task."""
    draft = keys.draft
    task = keys.choice("task", _TASKS, "detection")
    draft.card.append(f"task: {task} ({keys.origin('task', 'detect')})")
    size: tuple[int, int] = keys.need("imgsz", values.sides, (0, 0), "it is the network's size")
    keys.only("channels", 3, "a profile's images are in color", values.whole)
    rect = task != "classification" and _varies(keys) and not heads.is_rtdetr(keys.values)
    if not rect:
        draft.network(size, keys.origin("imgsz"))
    draft.whole |= {"decode", "resize", "geometry"}
    draft.color("OpenCV's BGR is reversed")
    draft.write("decode", "backend", "opencv", "cv2.imdecode, IMREAD_COLOR")
    draft.write("decode", "exif", "apply", "cv2.imdecode turns images by their EXIF orientation")
    draft.claim("decode", "native", "ultralytics/utils/patches.py imread")
    if task == "classification":
        _crop(keys, size)
    else:
        _boxed(draft, heads.is_rtdetr(keys.values))
    if rect:
        _rectangles(keys, size)
    said = "predictor.py: im /= 255"
    draft.normalize([Fraction(0)] * 3, [Fraction(255)] * 3, ("divide", said), lambda _: said)
    return task


def _arguments(keys: Keys) -> None:
    """Take ``args``, the export's own arguments."""
    draft, inner = keys.draft, keys.inner("args")
    inner.skip("dynamic")
    if inner.take("int8", values.boolean, False) and draft.base.spec.precision.compute != "int8":
        why = "the exporter calibrated by itself; import with an INT8 profile as the base"
        inner.refuse("int8", f"{why}, for example --base ort_int8")
    if inner.take("half", values.boolean, False) and draft.base.spec.precision.storage == "fp32":
        draft.half(inner.origin("half"), "the exporter's own cast to FP16 is not run here")
    inner.rest(dict.fromkeys(inner.values, "of the export; the network is the card's ONNX file"))


def _varies(keys: Keys) -> bool:
    """Whether an export takes rectangles: the predictor's ``rect`` is true."""
    args = keys.values.get("args")
    return isinstance(args, dict) and args.get("dynamic") is True


def _rectangles(keys: Keys, size: tuple[int, int]) -> None:
    """Write what ``LetterBox`` does with ``auto=True``, of an export with ``dynamic=True``."""
    draft, why = keys.draft, "args.dynamic=true: LetterBox, auto=True"
    stride = keys.take("stride", values.pixels, 32)
    if size[0] != size[1]:
        keys.refuse("imgsz", "with dynamic=True a rectangle of a long side; a square expected")
    draft.write("geometry", "kind", "rect_letterbox", why)
    draft.write("geometry", "rounding", "albumentations", "LetterBox: round(side * r)")
    draft.write("geometry", "long_side", max(size[0], 1), keys.origin("imgsz"))
    draft.write("geometry", "multiple_of", stride, keys.origin("stride", "32 is YOLO's"))
    draft.network(("free", "free"), why)


def _boxed(draft: Draft, is_rtdetr: bool) -> None:
    draft.write("resize", "backend", "opencv", "LetterBox: cv2.resize")
    draft.write("resize", "interpolation", "bilinear", "LetterBox: cv2.INTER_LINEAR")
    draft.write("resize", "domain", "rgb", "the decoder gives no YUV")
    draft.claim("resize", "native", "ultralytics/data/augment.py LetterBox: cv2.INTER_LINEAR")
    if is_rtdetr:
        draft.write("geometry", "kind", "squash", "RTDETRPredictor: LetterBox with scale_fill")
        draft.claim("geometry", "emulated", "ultralytics/models/rtdetr/predict.py pre_transform")
        return
    draft.write("geometry", "kind", "letterbox", "LetterBox, auto=False for an exported model")
    draft.write("geometry", "rounding", "dali", "round(side * r); halves go up here")
    draft.write("geometry", "position", "center", "LetterBox: center=True; round(half - 0.1)")
    draft.write("geometry", "value", 114, "LetterBox: padding_value=114")
    draft.claim("geometry", "emulated", "ultralytics/data/augment.py LetterBox")
    back = {"scale": "ratio", "offset": "integer"}
    draft.write("postprocess", "unletterbox", back, "ops.scale_boxes: gain, and round(half - 0.1)")


def _crop(keys: Keys, size: tuple[int, int]) -> None:
    draft = keys.draft
    if size[0] != size[1]:
        keys.refuse("imgsz", "classify_transforms resizes to two sizes; a profile has one")
    draft.write("resize", "backend", "pillow", "classify_transforms: torchvision on a PIL image")
    draft.write("resize", "interpolation", "bilinear", "classify_transforms: BILINEAR")
    draft.write("resize", "domain", "rgb", "PIL images are RGB")
    draft.claim("resize", "native", "torchvision.transforms.Resize on a PIL image")
    draft.write("geometry", "kind", "short_side_crop", "classify_transforms: Resize, CenterCrop")
    draft.write("geometry", "rounding", "torchvision", "torchvision's Resize and CenterCrop")
    draft.write("geometry", "short_side", max(size[0], 1), keys.origin("imgsz"))
    draft.claim("geometry", "emulated", "ultralytics/data/augment.py classify_transforms")


ULTRALYTICS = Ultralytics()
