"""What llama.cpp offers."""

from __future__ import annotations

from backends.llama_cpp import runtime
from backends.llama_cpp.library import llama
from backends.llama_cpp.tokenizer import TOKENIZE
from simulator.contract import Backend

BACKEND = Backend(
    name="llama_cpp",
    summary="llama.cpp: GGUF files on its own kernels, and their vocabulary",
    library=llama,
    offers=(TOKENIZE, *runtime.RUN),
    fields=runtime.FIELDS,
)
