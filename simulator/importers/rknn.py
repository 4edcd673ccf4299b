"""Rockchip RKNN-Toolkit2: ``model_config.yml`` of ``rknn.api.rknn_convert``.

Sources: airockchip/rknn-toolkit2, ``doc`` ("RKNN Toolkit API Reference": ``rknn.config``, its
values and defaults; mean and std are per channel, in the order of the network's input) and
``rknn_convert``'s own example.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from simulator.importers import values
from simulator.importers.draft import Draft, Order, together
from simulator.importers.importer import ConfigFile, Importer
from simulator.importers.keys import Keys

_MODEL = "the network itself; the model card names an ONNX file"
_TOP = {"platform": _MODEL, "model_file_path": _MODEL, "pt_file_path": _MODEL,
        "dataset": "images for calibration; a profile names its own"}  # fmt: skip
_CONFIGS = {"optimization_level": "how operators are merged", "target_platform": "which chip",
            "custom_string": "text", "compress_weight": "how weights are stored"}  # fmt: skip
_ORDER: Order = ("divide", "rknn.config: (x - mean) / std; the NPU's own order is not published")
_METHODS = {"channel": "per_channel", "layer": "per_tensor"}


class Rknn(Importer):
    """A configuration of rknn_convert."""

    name = tool = "rknn"
    about = "RKNN-Toolkit2's model_config.yml (rknn_convert)"
    base = "rknn_model_zoo_int8"
    stems = ("model_config",)
    beside = ("model_config.yml",)
    line = r"^[ \t]+quantized_dtype\s*:|^[ \t]+model_file_path\s*:"

    def read(self, file: ConfigFile, draft: Draft, stack: int) -> None:
        """Take mean, std, order and quantizer."""
        top = file.yaml_keys(draft)
        none: values.Object = {}
        top.need("models", values.mapping, none, "it names the network")
        keys = top.inner("models")
        top.rest(named=("models",))
        if not draft.problems:
            _read(keys)


def _read(keys: Keys) -> None:
    draft = keys.draft
    draft.name = keys.take("name", values.text, "")
    graphs: values.Object = keys.take("subgraphs", values.mapping, {})
    if graphs:
        draft.card.append(f"input and outputs (models.subgraphs={values.show(graphs)})")
    configs = keys.inner("configs")
    mean = configs.take("mean_values", _channels, [Fraction(0)] * 3)
    std = configs.take("std_values", _channels, [Fraction(1)] * 3)
    if min(std) <= 0:
        configs.refuse("std_values", "numbers above 0 expected: pixels are divided by them")
    defaults = {"mean": "0 is the default", "std": "1 is the default"}
    draft.normalize(mean, std, _ORDER, lambda key: configs.origin(f"{key}_values", defaults[key]))
    if configs.take("quant_img_RGB2BGR", values.boolean, False):
        draft.write("color", "order", "bgr", configs.origin("quant_img_RGB2BGR"))
    _precision(keys, configs)
    keys.rest(_TOP, named=("name", "configs", "subgraphs"))
    configs.rest(_CONFIGS)


def _channels(value: Any) -> list[Fraction]:
    """Check three numbers, or a list of one such list: one per input of the network."""
    inner = value[0] if isinstance(value, list) and len(value) == 1 else value
    if isinstance(inner, list) and len(inner) == 1:
        inner = inner[0]
    return values.three(inner)


def _precision(keys: Keys, configs: Keys) -> None:
    draft, base = keys.draft, keys.draft.base
    if not keys.take("quantize", values.boolean, False):
        origin = f"{keys.origin('quantize', 'false is the default')}; the NPU computes in FP16 then"
        draft.half(origin, "RKNN's own cast to FP16 is not run here")
        configs.aside(dict.fromkeys(configs.values, "of quantization, and quantize is not true"))
        return
    configs.choice("quantized_dtype", dict.fromkeys(("asymmetric_quantized-8", "w8a8"), 8), 8)
    configs.choice("quantized_algorithm", {"normal": "minmax"}, "minmax")
    weights = configs.choice("quantized_method", _METHODS, "per_channel")
    if base.spec.precision.quantizer is None:
        why = f"{base.name} has no quantizer; import with an INT8 profile as base"
        keys.refuse("quantize", why)
        return
    quantizer = base.spec.precision.quantizer.model_dump(exclude_none=True, mode="json")
    said = [configs.origin("quantized_dtype", "asymmetric_quantized-8 is the default"),
            configs.origin("quantized_algorithm", "normal is the default"),
            configs.origin("quantized_method", "channel is the default")]  # fmt: skip
    draft.write("precision", "quantizer", {**quantizer, "weights": weights}, together(*said))
    source = f"RKNN's quantizer, as {base.name} rebuilds it: MinMax, INT8 activations"
    draft.claim("precision", "emulated", source)


RKNN = Rknn()
