"""llama.cpp's own quantization of a GGUF file: legacy types, K-quants, MXFP4."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import ClassVar

from backends.llama_cpp.library import check, llama, reason, started
from backends.llama_cpp.runtime import KINDS, storage_of, types_of
from simulator.contract import Cast, ModelError, Offer, Stage

_FILES = {
    "F16": 1, "BF16": 32, "Q8_0": 7, "Q6_K": 18, "Q5_K_M": 17, "Q5_K_S": 16, "Q5_1": 9, "Q5_0": 8,
    "Q4_K_M": 15, "Q4_K_S": 14, "Q4_1": 3, "Q4_0": 2, "IQ4_NL": 25, "IQ4_XS": 30, "Q3_K_L": 13,
    "Q3_K_M": 12, "Q3_K_S": 11, "Q2_K": 10, "MXFP4": 38,
}  # fmt: skip
"""Types of files by their ``llama_ftype``, of those that need no importance matrix. That of MXFP4
has it for experts only, Q8_0 elsewhere: here all matrices of the layers get it."""
_FLOATS = ("F32", "F16", "BF16")


class GgufCast(Cast):
    """``llama_model_quantize``: what ``llama-quantize`` does with a file.

    Where a row does not fill the blocks of a type, llama.cpp takes another one; if most matrices
    then have another storage than the profile says, the file is refused.
    """

    format: ClassVar[str] = "gguf"
    sets_compute: ClassVar[bool] = True

    def cast(self, source: Path, target: Path) -> None:
        """Write the file with its matrices in the type.

        Raises:
            ModelError: its matrices are quantized already, or llama.cpp refuses it.
        """
        before, kind = types_of(source), self.options["type"]
        quantized = [name for name in before if name not in _FLOATS]
        if quantized and not self.options["requantize"]:
            raise ModelError(
                f"{source}: its matrices are {', '.join(quantized)} already; name a file of F32, "
                "F16 or BF16 as gguf in the model card, or write requantize: true"
            )
        check(source)
        started()
        asked = llama.llama_model_quantize_default_params()
        asked.ftype, asked.allow_requantize = _FILES[kind], bool(quantized)
        every = llama.llama_model_tensor_override
        layers = (every * 2)(every(rb"^blk\.", llama.GGML_TYPE_MXFP4), every(None, 0))
        if kind == "MXFP4":
            asked.tt_overrides = ctypes.cast(layers, ctypes.POINTER(every))
        names = str(source).encode(), str(target).encode()
        if llama.llama_model_quantize(*names, ctypes.byref(asked)):
            raise ModelError(f"llama.cpp makes no {kind} of {source}{reason()}")
        made = types_of(target)
        if storage_of(made) != self.options["storage"]:
            counts = ", ".join(f"{number} {name}" for name, number in made.items())
            raise ModelError(
                f"{kind} of {source} has matrices of {counts} (rows that do not fill blocks of 256 "
                f"get another type): write storage: {storage_of(made)}"
            )


_SOURCE = "https://github.com/ggml-org/llama.cpp/tree/master/tools/quantize"
_FLOAT = {"F16": "fp16", "BF16": "bf16"}
CASTS = (
    *(
        Offer(
            Stage.CAST,
            {"storage": (storage,), "type": (kind,), "requantize": (False, True)},
            GgufCast,
            source=_SOURCE,
        )
        for kind, storage in _FLOAT.items()
    ),
    Offer(
        Stage.CAST,
        {
            "storage": tuple(
                dict.fromkeys(one for one, compute in KINDS.values() if compute == "int8")
            ),
            "type": tuple(kind for kind in _FILES if kind not in _FLOAT),
            "requantize": (False, True),
        },
        GgufCast,
        source=_SOURCE,
    ),
)
FIELDS = {
    "type": "the type of a GGUF file, as llama-quantize names it",
    "requantize": "whether matrices that are quantized already may be quantized again",
}
