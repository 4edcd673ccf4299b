"""llama.cpp's own kernels, on a GGUF file as it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from backends.llama_cpp.library import check, llama, reason, started
from simulator import gguf_header
from simulator.contract import (
    Admits,
    Array,
    AtLeast,
    Effective,
    ModelError,
    Offer,
    Port,
    Runtime,
    Stage,
    Unsupported,
)

KINDS = {
    "F32": ("fp32", "fp32"), "F16": ("fp16", "fp16"), "BF16": ("bf16", "bf16"),
    "Q8_0": ("int8", "int8"), "Q6_K": ("int6", "int8"),
    "Q5_0": ("int5", "int8"), "Q5_1": ("int5", "int8"), "Q5_K": ("int5", "int8"),
    "Q4_0": ("int4", "int8"), "Q4_1": ("int4", "int8"), "Q4_K": ("int4", "int8"),
    "IQ4_NL": ("int4", "int8"), "IQ4_XS": ("int4", "int8"), "MXFP4": ("mxfp4", "int8"),
    "Q3_K": ("int3", "int8"), "IQ3_S": ("int3", "int8"), "Q2_K": ("int2", "int8"),
}  # fmt: skip
"""Storage of a type of tensor, and what its products are computed in: its ``vec_dot_type`` in
ggml-cpu.c (Q8_0, Q8_1 or Q8_K for integers: activations are rounded to blocks of 8 bits)."""


class LlamaCpp(Runtime):
    """``llama_decode`` on the CPU: logits of every position.

    A row's tokens are those whose mask is 1. Positions with mask 0 give zeros. Each row is computed
    alone, or with ``parallel`` all of a call in one batch. Keys and values of one batch are kept
    for calls that go on. The weights are used as the file stores them:
    ``use_extra_bufts`` is off, because the AMX kernels of 0.3.36 end the process.

    Source:
        https://github.com/ggml-org/llama.cpp/blob/master/include/llama.h
    """

    takes: ClassVar[str] = "gguf"
    one_at_a_time: ClassVar[bool] = True
    is_stateful = True
    moves: ClassVar[bool] = True

    def _open(self, artifact: Path) -> tuple[tuple[Port, ...], tuple[Port, ...]]:
        self._types = types_of(artifact)
        stored = storage_of(self._types)
        if stored != self.options["storage"]:
            raise Unsupported(
                f"{artifact}: most weights are {stored}; write storage: {stored} and its compute"
            )
        check(artifact)
        started()
        asked = llama.llama_model_default_params()
        asked.n_gpu_layers, asked.use_extra_bufts = 0, False
        self._model = llama.llama_model_load_from_file(str(artifact).encode(), asked)
        if self._model is None:
            raise ModelError(f"llama.cpp cannot load {artifact}{reason()}")
        self._context = llama.llama_init_from_model(self._model, self._settings())
        if self._context is None:
            kept, width = self.options["kv_cache"], self._head_width()
            raise ModelError(
                f"llama.cpp has no room for the texts of {artifact}, or cannot keep them in "
                f"{kept}: heads of {width} numbers, in blocks of 32"
            )
        self._seen: Array | None = None
        self._ids = llama.llama_vocab_n_tokens(llama.llama_model_get_vocab(self._model))
        whole = np.dtype(np.int64)
        inputs = (
            Port("input_ids", whole, (None, None)), Port("attention_mask", whole, (None, None)),
        )  # fmt: skip
        return inputs, (Port("logits", np.dtype(np.float32), (None, None, self._ids)),)

    def _settings(self) -> Any:
        asked = llama.llama_context_default_params()
        asked.n_seq_max = self.options.get("parallel", 1)
        asked.n_ctx = asked.n_batch = llama.llama_model_n_ctx_train(self._model) * asked.n_seq_max
        asked.n_threads = asked.n_threads_batch = self.options["threads"]
        asked.type_k = asked.type_v = getattr(
            llama, f"GGML_TYPE_{_KEPT[self.options['kv_cache']][0]}"
        )
        asked.flash_attn_type = int(self.options["flash_attention"])
        return asked

    def _run(self, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        ids, mask = feeds["input_ids"], feeds["attention_mask"] > 0
        logits = np.zeros((*ids.shape, self._ids), np.float32)
        begin = mask.shape[1] - ids.shape[1]
        every, together = range(len(ids)), self.options.get("parallel", 1)
        if together < len(ids) and (together > 1 or begin):
            raise ValueError(f"{len(ids)} texts go on at once, and runtime.parallel is {together}")
        for rows in [every] if together > 1 else [range(row, row + 1) for row in every]:
            own = slice(rows.start, rows.stop)
            starts = self._went_on(mask[own, :begin])
            new = mask[own, begin:]
            if new.any():
                logits[own][new] = self._decoded(ids[own], new, starts)
            self._seen = mask[own] if len(rows) == len(ids) else None
        return {"logits": logits}

    def _went_on(self, seen: Array) -> Array:
        """Forget what texts no longer have, or all where they begin; return how many are kept."""
        memory, kept = llama.llama_get_memory(self._context), self._seen
        self._seen = None
        if not seen.shape[1]:
            llama.llama_memory_clear(memory, True)
        elif kept is None or kept.shape != seen.shape or (seen & ~kept).any():
            places = "none" if kept is None else f"{kept.shape[1]} of {len(kept)}"
            raise ValueError(
                f"positions do not follow: kept places of texts are {places}, and the mask of "
                f"{len(seen)} goes on behind {seen.shape[1]}"
            )
        else:
            for row, (before, now) in enumerate(zip(kept, seen, strict=True)):
                places = before.cumsum() - 1
                for place in places[before & ~now][::-1].tolist():
                    llama.llama_memory_seq_rm(memory, row, place, place + 1)
                    llama.llama_memory_seq_add(memory, row, place + 1, -1, -1)
        counts: Array = seen.sum(1)
        return counts

    def _decoded(self, ids: Array, new: Array, starts: Array) -> Array:
        """The logits behind each new token, row by row."""
        tokens = ids[new]
        if tokens.min() < 0 or tokens.max() >= self._ids:
            raise ValueError(f"id {tokens.max()} is none of the {self._ids} of the GGUF file")
        (rows, _), positions = new.nonzero(), (new.cumsum(1) - 1 + starts[:, None])[new]
        count = len(tokens)
        batch = llama.llama_batch_init(count, 0, 1)
        try:
            batch.n_tokens = count
            for place, token in enumerate(tokens):
                batch.token[place], batch.pos[place] = int(token), int(positions[place])
                batch.n_seq_id[place], batch.seq_id[place][0] = 1, int(rows[place])
                batch.logits[place] = True
            failed = llama.llama_decode(self._context, batch)
        finally:
            llama.llama_batch_free(batch)
        if failed:
            raise ValueError(f"llama_decode gave {failed} for {count} tokens behind {starts}")
        found = llama.llama_get_logits(self._context)
        return np.ctypeslib.as_array(found, (count, self._ids))

    def _head_width(self) -> int:
        model = self._model
        return int(llama.llama_model_n_embd(model) // llama.llama_model_n_head(model))

    def _kept_as(self) -> str | None:
        """The type of keys and values, by the bytes that one more token takes of the state."""
        sizes = []
        for count in (1, 2):
            text = np.ones((1, count), bool)
            self._decoded(np.zeros(text.shape, np.int64), text, self._went_on(text[:, :0]))
            sizes.append(llama.llama_state_seq_get_size(self._context, 0))
        self._seen = None
        heads = llama.llama_model_n_head_kv(self._model) * self._head_width()
        numbers = 2 * heads * llama.llama_model_n_layer(self._model)
        each = (sizes[1] - sizes[0]) / numbers  # a cell's own few bytes come on top
        fits = [name for name, (_, size) in _KEPT.items() if size <= each]
        return max(fits, key=lambda name: _KEPT[name][1], default=None)

    def effective(self, feeds: Mapping[str, Array]) -> Effective:
        """Read back threads and cache; the precision of products follows from types of tensors."""
        products = Counter[str]()
        for kind, number in self._types.items():
            products[KINDS.get(kind, (kind, kind))[1]] += number
        return Effective(
            products=products,
            options={
                "device": "cpu",
                "threads": llama.llama_n_threads(self._context),
                "kv_cache": self._kept_as(),
                "parallel": llama.llama_n_seq_max(self._context),
            },
            details={
                "tensors": self._types,
                "n_ctx": llama.llama_n_ctx(self._context),
                "system": llama.llama_print_system_info().decode(errors="replace"),
            },
        )

    def _close(self) -> None:
        llama.llama_free(self._context)
        llama.llama_model_free(self._model)


def types_of(file: Path) -> dict[str, int]:
    """Count the matrices of each type.

    Raises:
        ModelError: it is no GGUF file, or has none.
    """
    try:
        found = Counter(gguf_header.read(file).matrices)
    except (ValueError, OSError) as error:
        raise ModelError(f"{file}: not a GGUF file: {str(error)[:200]}") from error
    if not found:
        raise ModelError(f"{file}: has no weights")
    return dict(found)


def storage_of(types: Mapping[str, int]) -> str:
    """Return the storage of most matrices.

    Raises:
        Unsupported: profiles have no word for it.
    """
    kind = max(types, key=lambda name: types[name])
    if kind not in KINDS:
        raise Unsupported(f"its weights are {kind}; supported: {', '.join(KINDS)}")
    return KINDS[kind][0]


_KEPT = {"fp32": ("F32", 4.0), "fp16": ("F16", 2.0), "q8_0": ("Q8_0", 34 / 32),
         "q4_0": ("Q4_0", 18 / 32)}  # fmt: skip
"""llama.cpp's name of each type of keys and values, and its bytes for a number."""
_RUN: dict[str, Admits] = {"device": ("cpu",), "threads": AtLeast(1)}
_ATTENTION: tuple[dict[str, Admits], ...] = (
    {"flash_attention": (False,), "kv_cache": ("fp16", "fp32")},
    {"flash_attention": (True,), "kv_cache": ("fp16", "q8_0", "q4_0")},
)
_SOURCE = "https://github.com/ggml-org/llama.cpp"
_PAIRS = (
    (("int8", "int6", "int5", "int4", "int3", "int2", "mxfp4"), "int8"),
    (("fp32",), "fp32"),
    (("fp16",), "fp16"),
    (("bf16",), "bf16"),
)
RUN = tuple(
    Offer(
        Stage.RUNTIME,
        {**_RUN, "parallel": parallel, **attention, "storage": storage, "compute": (compute,)},
        LlamaCpp,
        source=_SOURCE,
    )
    for parallel in ((1,), (2, 4, 8, 16, 32, 64))
    for storage, compute in _PAIRS
    for attention in _ATTENTION
)
"""One offer for each kind of arithmetic and of attention."""
FIELDS = {
    "flash_attention": "llama.cpp's fused attention",
    "parallel": "texts of a batch that are decoded together; 1: each alone",
    "kv_cache": "the type in which keys and values of attention are kept",
}
