"""NNCF's compression of weights, as OpenVINO runs language models."""

from __future__ import annotations

import logging
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any, ClassVar

from backends.intel.libraries import nncf, ov
from backends.quiet import quiet
from simulator.contract import Admits, Cast, KeepList, ModelError, Offer, Stage, kept

_MODES = {
    "int8": {False: "INT8_ASYM", True: "INT8_SYM"},
    "int4": {False: "INT4_ASYM", True: "INT4_SYM"},
    "fp8_e4m3": {True: "FP8_E4M3"},
    "mxfp8_e4m3": {True: "MXFP8_E4M3"},
    "mxfp4": {True: "MXFP4"},
    "nvfp4": {True: "NVFP4"},
    "nf4": {True: "NF4"},
}


class NncfWeights(Cast):
    """``nncf.compress_weights`` on the model as OpenVINO reads it, saved in OpenVINO's own format.

    Without data. INT8 has a scale for each output channel, embeddings included. Others have one
    for each block of a channel; embeddings, convolutions and the last layer then have 8 bits,
    NNCF's default (``all_layers`` false). MX, and FP8 in blocks, it refuses for convolutions.
    """

    gives: ClassVar[str | None] = "openvino_ir"
    portable: ClassVar[bool] = False
    proved_on: ClassVar[str] = "wide"

    def cast(self, source: Path, target: Path) -> None:
        """Write *source* with compressed weights to *target* (XML) and a .bin beside it."""
        import onnx

        spared = kept(onnx.load(str(source)), self.options["keep"]) if self._keeps else set()
        logging.getLogger("nncf").setLevel(logging.ERROR)
        mode = _MODES[self.options["storage"]][self.options["symmetric"]]
        block = {"group_size": self.options["block_size"]} if "block_size" in self.options else {}
        if self.options["granularity"] == "per_channel" and self.options["storage"] != "int8":
            block = {"group_size": -1}
        model = ov.Core().read_model(str(source))
        try:
            with quiet():
                model = nncf.compress_weights(
                    model,
                    mode=getattr(nncf.CompressWeightsMode, mode),
                    ignored_scope=ignored(model, spared),
                    **block,
                )
        except (nncf.UnsupportedModelError, nncf.InvalidGroupSizeError) as error:
            raise ModelError(
                f"{str(error).splitlines()[0]} NNCF makes blocks of the inputs of matrix products "
                "that they divide; name convolutions and other layers under precision.cast.keep"
            ) from error
        renamed(model)
        ov.save_model(model, str(target), compress_to_fp16=False)

    @property
    def _keeps(self) -> bool:
        keep = self.options["keep"]
        return bool(keep["nodes"] or keep["op_types"])


def ignored(model: Any, spared: Collection[str]) -> Any:
    """Return NNCF's scope of ONNX nodes; of one with a bias OpenVINO makes two, with new names."""
    known = {node.get_friendly_name() for node in model.get_ordered_ops()}
    both = {name for one in spared for name in (one, f"{one}/WithoutBiases")}
    return nncf.IgnoredScope(names=sorted(both & known))


def renamed(model: Any) -> None:
    """Number the nodes that OpenVINO names by a counter of the process: files stay the same."""
    for number, node in enumerate(model.get_ordered_ops()):
        kind = node.get_type_name()
        folded = "[A-Z][A-Za-z]+" if kind == "Constant" else kind
        if re.fullmatch(rf"{folded}_\d+", node.get_friendly_name()):
            node.set_friendly_name(f"{kind}.{number}")


_ASKS: dict[str, Admits] = {"symmetric": (False, True), "keep": KeepList()}
_BLOCK: dict[str, Admits] = {"granularity": ("block",)}
_FLOATS: tuple[tuple[tuple[str, ...], dict[str, Admits]], ...] = (
    (("mxfp8_e4m3", "mxfp4"), {**_BLOCK, "block_size": (32,)}),
    (("nvfp4",), {**_BLOCK, "block_size": (16,)}),
    (("nf4",), {**_BLOCK, "block_size": (16, 32, 64, 128, 256)}),
    (("fp8_e4m3",), {**_BLOCK, "block_size": (16, 32)}),
    (("fp8_e4m3", "nf4"), {"granularity": ("per_channel",)}),
)
"""OpenVINO 2026.4 cannot compile E4M3 in blocks of 64."""
_SOURCE = "https://docs.openvino.ai/ LLM Weight Compression"

OFFERS = (
    Offer(
        Stage.CAST,
        {**_ASKS, "storage": ("int8",), "granularity": ("per_channel",)},
        NncfWeights,
        source=_SOURCE,
    ),
    Offer(
        Stage.CAST,
        {
            **_ASKS,
            "storage": ("int4",),
            "granularity": ("block",),
            "block_size": (32, 64, 128, 256),
        },
        NncfWeights,
        source=_SOURCE,
    ),
    *(
        Offer(
            Stage.CAST,
            {**_ASKS, "symmetric": (True,), "storage": (storage,), **form},
            NncfWeights,
            source=_SOURCE,
        )
        for storages, form in _FLOATS
        for storage in storages
    ),
)
