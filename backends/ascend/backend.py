"""Huawei Ascend (CANN): models compiled by ATC and run by pyACL, DVPP decoding and resizing."""

from __future__ import annotations

from backends.ascend.device import CANN, soc
from backends.ascend.dvpp import INTERPOLATION, DvppDecoder, VpcResizer
from backends.ascend.model import AscendRuntime
from simulator.contract import Admits, Backend, Offer, Stage

_RUN: dict[str, Admits] = {
    "device": ("npu",),
    "threads": (1,),
    "soc_version": (
        "Ascend310", "Ascend310P1", "Ascend310P3", "Ascend310B1", "Ascend310B4", "Ascend910A",
        "Ascend910B1", "Ascend910B2", "Ascend910B3", "Ascend910B4",
    ),
    "storage": ("fp32",),
}  # fmt: skip
_HALF = ("force_fp32", "allow_fp32_to_fp16", "allow_mix_precision", "force_fp16")
_SOURCE = "https://www.hiascend.com/document (CANN: pyACL API, ATC Instructions)"

BACKEND = Backend(
    name="ascend",
    summary="Huawei Ascend through CANN's acl: ATC models, DVPP decode to NV12, VPC resize",
    library=CANN,
    device=soc,
    offers=(
        Offer(Stage.DECODE, {"exif": ("apply",)}, DvppDecoder, source=_SOURCE),
        Offer(
            Stage.RESIZE,
            {"interpolation": tuple(INTERPOLATION), "antialias": (False,)},
            VpcResizer,
            source=_SOURCE,
        ),
        Offer(
            Stage.RUNTIME,
            {**_RUN, "compute": ("fp16",), "precision_mode": _HALF},
            AscendRuntime,
            source=_SOURCE,
        ),
        Offer(
            Stage.RUNTIME,
            {**_RUN, "compute": ("fp32",), "precision_mode": ("must_keep_origin_dtype",)},
            AscendRuntime,
            source=_SOURCE,
        ),
    ),
    fields={
        "soc_version": "the chip that the model is compiled for",
        "precision_mode": "of ATC: which types it may compute in",
    },
)
