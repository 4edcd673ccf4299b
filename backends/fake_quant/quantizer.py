"""DoReFa, PACT and LSQ after training, at 8, 6, 4 and 2 bits, computed in floating point."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from backends.fake_quant.formulas import dorefa_factor, dorefa_weights
from backends.fake_quant.layers import Rounding, chosen, insert
from backends.fake_quant.observed import Observed, observe
from backends.fake_quant.starts import activation_grid, weight_grid
from backends.opsets import for_quantization
from backends.ort.library import ort
from backends.stored_weights.nodes import drop_unused
from simulator.contract import (
    Admits,
    Array,
    Backend,
    Evidence,
    KeepList,
    ModelError,
    Offer,
    Quantizer,
    Stage,
)


class FakeQuantizer(Quantizer):
    """Rounds the weights and the activations of every convolution and product to a few bits.

    The file computes in FP32: weights are stored as the rounded values, and before each layer
    stand the nodes that round its activations, with one step for the tensor. An activation that
    calibration never saw below 0 has no sign bit. The layers before and after all others keep
    ``first_last_bits``; biases stay in FP32.

    LSQ at 8 bits is what QuantizeLinear and DequantizeLinear compute. Its layers of 8 bits have
    such pairs and INT8 weights, which runtimes may multiply in INT8. DoReFa's 256 weights lie
    around zero without it, so that no INT8 zero point fits: they never become pairs.

    Post-training, two methods need what training would learn. PACT's clip and, with
    ``step: least_error``, LSQ's steps have the least squared error on the calibration inputs.
    DoReFa's formulas map weights to [-1, 1] and activations to [0, 1], whatever they were, so that
    a network that was trained without them answers at random. Here each rounded weight tensor is
    multiplied by the constant of least squared error, and activations are divided by their largest
    value before, and multiplied by it afterwards. PACT rounds weights as DoReFa does.
    """

    def quantize(self, source: Path, target: Path, feeds: Iterator[Mapping[str, Array]]) -> None:
        """Calibrate on *feeds*, then write the file.

        Raises:
            ModelError: the model has no layers outside the keep list, or a value is not finite.
        """
        import onnx

        model, added = for_quantization(source), Rounding()
        held, every = chosen(model, self.options["keep"])
        seen = observe(model, {layer.node.input[layer.data]: None for layer in every}, feeds)
        made: dict[tuple[str, int, int], str] = {}
        for layer in every:
            bits = self.options["first_last_bits" if layer.outer else "bits"]
            data, weight = (layer.node.input[at] for at in (layer.data, layer.weight))
            places = {(data, bits, 0): layer.data, (weight, bits, 1 + layer.axis): layer.weight}
            for key, at in places.items():
                if key not in made:
                    if at == layer.data:
                        made[key] = self._activation(added, data, seen[data], bits)
                    else:
                        made[key] = self._weights(added, weight, held[weight], layer.axis, bits)
                layer.node.input[at] = made[key]
        drop_unused(model.graph, {name for name, _, _ in made} & set(held))
        insert(model.graph, added.nodes, added.constants)
        onnx.save(model, str(target))

    def _activation(self, added: Rounding, name: str, seen: Observed, bits: int) -> str:
        """Round an activation; return the name of the result."""
        grid, part = activation_grid(self.options, seen, bits), f"{name}.{bits}bit"
        if bits == 8 and self.options["method"] == "lsq":
            return added.paired(name, grid, part)
        return added.rounded(name, grid, part)

    def _weights(self, added: Rounding, name: str, weights: Array, axis: int, bits: int) -> str:
        """Round the weights of a layer; return the name of the result."""
        if not np.isfinite(weights).all():
            raise ModelError(f"weight {name!r} has values that are not finite")
        part = f"{name}.{bits}bit.{axis}"
        if self.options["method"] != "lsq":
            made = dorefa_weights(weights, bits) * dorefa_factor(weights, bits)
            return added.stored(made.astype(np.float32), part)
        grid = weight_grid(self.options, weights, axis, bits)
        if bits == 8:
            codes = grid.codes(weights).astype(np.int8)
            return added.coded(codes, grid.step.reshape(-1), axis, part)
        return added.stored(grid.rounded(weights), part)


_BITS: dict[str, Admits] = {"bits": (8, 6, 4, 2), "first_last_bits": (8,), "keep": KeepList()}
_LSQ: dict[str, Admits] = {
    "method": ("lsq",),
    "weights": ("per_tensor", "per_channel"),
    "step": ("initial", "least_error"),
}
_OTHERS: dict[str, Admits] = {"method": ("dorefa", "pact"), "weights": ("per_tensor",)}

BACKEND = Backend(
    name="fake_quant",
    summary="DoReFa, PACT and LSQ at 8, 6, 4 and 2 bits, simulated in FP32",
    library=ort,
    offers=tuple(
        Offer(
            Stage.QUANTIZE,
            {**_BITS, **method},
            FakeQuantizer,
            Evidence.EMULATED,
            "arXiv 1606.06160, 1805.06085, 1902.08153; rounded in FP32, after training",
        )
        for method in (_LSQ, _OTHERS)
    ),
    fields={
        "first_last_bits": "of the layers before and after all others",
        "step": "LSQ's first step, or the one of least squared error around it",
    },
)
