"""What llama.cpp offers."""

from __future__ import annotations

from backends.llama_cpp import quantizer, runtime
from backends.llama_cpp.library import llama
from backends.llama_cpp.tokenizer import TOKENIZE
from simulator.contract import Backend

BACKEND = Backend(
    name="llama_cpp",
    summary="llama.cpp: GGUF files on its own kernels, their vocabulary, their quantization",
    library=llama,
    offers=(TOKENIZE, *quantizer.CASTS, *runtime.RUN),
    may_be_left_out=("parallel",),
    fields={**quantizer.FIELDS, **runtime.FIELDS},
)
