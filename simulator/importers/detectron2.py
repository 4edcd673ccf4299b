"""Detectron2: a network's YAML configuration, with its ``_BASE_`` files.

Sources, of facebookresearch/detectron2: ``config/defaults.py`` (the defaults below),
``data/transforms/augmentation_impl.py`` (``ResizeShortestEdge``: int(side + 0.5)), ``transform.py``
beside it (``ResizeTransform``: Pillow, bilinear), ``data/detection_utils.py`` (``read_image``:
Pillow, turned by EXIF), ``modeling/meta_arch/rcnn.py`` (``preprocess_image``: (x - mean) / std,
padded with 0), ``modeling/backbone/fpn.py`` (``size_divisibility``: 32).
"""

from __future__ import annotations

from fractions import Fraction

from simulator.errors import ProfileError
from simulator.importers import values
from simulator.importers.draft import Draft
from simulator.importers.image_steps import ImageSteps
from simulator.importers.importer import ConfigFile, Importer
from simulator.importers.keys import Keys
from simulator.importers.resizing import Kernel
from simulator.importers.values import Object, keys_by_reason

_MOST_BASES = 10
_MEAN = [Fraction("103.53"), Fraction("116.28"), Fraction("123.675")]
_ASIDE = keys_by_reason({
    "of training": "SOLVER DATALOADER MIN_SIZE_TRAIN MAX_SIZE_TRAIN MIN_SIZE_TRAIN_SAMPLING CROP "
                   "RANDOM_FLIP",
    "of the data": "DATASETS MASK_FORMAT",
    "of the run": "VERSION OUTPUT_DIR SEED CUDNN_BENCHMARK VIS_PERIOD GLOBAL _BASE_",
})  # fmt: skip


class Detectron2(Importer):
    """The input of a configuration, and the mean and std of its network."""

    name = tool = "detectron2"
    about = "Detectron2's YAML configuration, with its _BASE_ files"
    base = "pillow_fp32"
    line = r"^[ \t]+(META_ARCHITECTURE|MIN_SIZE_TEST|PIXEL_MEAN)\s*:|^_BASE_\s*:.*\.yaml"

    def read(self, file: ConfigFile, draft: Draft, stack: int) -> None:
        """Follow ``DefaultPredictor`` and ``preprocess_image``."""
        top = Keys(draft, _merged(file, 0), file.yaml.where)
        given, model, test = (top.inner(name) for name in ("INPUT", "MODEL", "TEST"))
        draft.whole |= {"decode"}
        draft.write("decode", "backend", "pillow", "read_image: Pillow")
        draft.write("decode", "exif", "apply", "read_image: turned by EXIF")
        draft.claim("decode", "native", "detectron2.data.detection_utils.read_image")
        order = given.choice("FORMAT", {"BGR": "bgr", "RGB": "rgb"}, "bgr")
        turned = given.origin("FORMAT", "BGR is the default")
        steps = ImageSteps(draft, "Detectron2", order, [turned])
        said = "ResizeTransform: Pillow, bilinear"
        size = (
            given.take("MIN_SIZE_TEST", values.pixels, 800),
            given.take("MAX_SIZE_TEST", values.pixels, 1333),
        )
        default = {"MIN_SIZE_TEST": "800, the default", "MAX_SIZE_TEST": "1333, the default"}
        given.values = {**default, **given.values}
        kernel = Kernel("pillow", "bilinear", said, said, said)
        steps.resize(given, "MIN_SIZE_TEST", "keep_ratio", size, kernel, "half_up", "MAX_SIZE_TEST")
        mean = model.take("PIXEL_MEAN", values.three, _MEAN)
        std = model.take("PIXEL_STD", values.three_above_zero, [Fraction(1)] * 3)
        defaults = {
            "PIXEL_MEAN": "ImageNet's, BGR, is the default",
            "PIXEL_STD": "1 is the default",
        }
        steps.normalize(mean, std, *(model.origin(key, one) for key, one in defaults.items()))
        backbone = model.inner("BACKBONE")
        name = backbone.take("NAME", values.text, "build_resnet_backbone")
        divisor = 32 if "fpn" in name else 1
        why = f"preprocess_image: zeros, to multiples of {divisor} for {values.plain(name)}"
        steps.pad_to_multiple(backbone, "NAME", divisor, [Fraction(0)] * 3, why)
        given.rest(_ASIDE)
        augmented = test.inner("AUG")
        augmented.only("ENABLED", False, "several inputs of one image; a profile has one")
        for keys in (top, model, test, backbone, augmented):
            keys.rest({key: _ASIDE.get(key, "the network itself") for key in keys.values})
        if not draft.problems:
            steps.finish(("divide", "preprocess_image: (x - mean) / std"), given)


def _merged(file: ConfigFile, depth: int) -> Object:
    """Return the keys of a file over those of its base.

    Raises:
        ProfileError: a base is not there or not one file, or bases go in a circle.
    """
    own = dict(file.yaml.values)
    name = own.get("_BASE_")
    if name is None:
        return own
    why = "one file expected; write several into one"
    if isinstance(name, str):
        beside = file.path.parent / name
        if beside.is_file() and depth <= _MOST_BASES:
            return _over(_merged(ConfigFile(beside), depth + 1), own)
        why = "not there, or in a circle; keep the files that it is based on beside it"
    raise ProfileError([f"{file.yaml.where(('_BASE_',))}: _BASE_={values.show(name)}: {why}"])


def _over(base: Object, own: Object) -> Object:
    merged = {
        key: _over(base[key], one) if isinstance(one, dict) and isinstance(base.get(key), dict)
        else one
        for key, one in own.items()
    }  # fmt: skip
    return {**base, **merged}


DETECTRON2 = Detectron2()
