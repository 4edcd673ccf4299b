"""Reads a GGUF file: the sizes and weights of a Llama, and its vocabulary.

Source: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md; the order of rows of queries and
keys: llama.cpp, convert_hf_to_gguf.py, LlamaModel.permute.
"""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from backends.language_models.libraries import gguf, tokenizers
from backends.language_models.llama import Sizes
from simulator import gguf_header
from simulator.contract import Array, MissingLibrary, ModelError
from simulator.errors import one_line, shortened
from simulator.limits import POSITIONS

_CONTROL, _OWN = 3, 4
"""Kinds of tokens: of control, of the user."""


class GgufFile:
    """An open GGUF file; weights are dequantized when they are asked for.

    Args:
        path: the file.

    Raises:
        ModelError: it is no GGUF file, or is damaged.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            gguf_header.read(path)
            reader = gguf.GGUFReader(str(path))
        except MissingLibrary:
            raise
        except Exception as error:  # the library raises whatever bytes make it raise
            raise ModelError(f"{path}: not a GGUF file, or cut short: {one_line(error)}") from error
        self._fields = reader.fields
        self._tensors = {tensor.name: tensor for tensor in reader.tensors}

    def types(self) -> dict[str, int]:
        """Return the number of tensors of each type: ``{"Q4_1": 210, "F32": 61}``."""
        return dict(Counter(tensor.tensor_type.name for tensor in self._tensors.values()))

    def field(self, key: str, default: Any = None) -> Any:
        """Return a field's content.

        Raises:
            ModelError: it is missing, and there is no *default*.
        """
        if key in self._fields:
            return self._fields[key].contents()
        if default is None:
            raise ModelError(f"{self.path}: has no field {key}")
        return default

    def sizes(self, cache: bool = False) -> Sizes:
        """Return the sizes of the network.

        Args:
            cache: see :class:`Sizes`.

        Raises:
            ModelError: it is no Llama, or one with parts that our graph has not.
        """
        kind = self.field("general.architecture")
        if kind != "llama":
            raise ModelError(f"{self.path}: {kind} is not supported; llama is")
        width, heads = self._count("embedding_length"), self._count("attention.head_count")
        found = Sizes(
            layers=self._count("block_count"),
            width=width,
            heads=heads,
            kv_heads=self._count("attention.head_count_kv", heads),
            head_width=self._count("attention.key_length", width // heads),
            inner=self._count("feed_forward_length"),
            vocabulary=len(self.texts("tokenizer.ggml.tokens")),
            context=self._count("context_length"),
            epsilon=self._real("attention.layer_norm_rms_epsilon"),
            theta=self._real("rope.freq_base", 10000.0),
            tied="output.weight" not in self._tensors,
            cache=cache,
        )
        self._refuse_other_parts(found)
        return found

    def _count(self, key: str, default: int | None = None) -> int:
        """Return a field of the network, an integer of at least 1."""
        found = self.field(f"llama.{key}", default)
        if type(found) is not int or found < 1:
            raise ModelError(
                f"{self.path}: llama.{key} is {shortened(repr(found))}; a count of 1 or more "
                "expected"
            )
        return found

    def token(self, key: str, default: int | None = None) -> int:
        """Return the number of a token of the vocabulary.

        Raises:
            ModelError: it is missing, and there is no *default*; or it is none.
        """
        found = self.field(f"tokenizer.ggml.{key}", default)
        if type(found) is not int or not 0 <= found < len(self.texts("tokenizer.ggml.tokens")):
            raise ModelError(
                f"{self.path}: tokenizer.ggml.{key} is {shortened(repr(found))}; the number of a "
                "token expected"
            )
        return found

    def _real(self, key: str, default: float | None = None) -> float:
        """Return a field of the network, a finite number above 0."""
        found = self.field(f"llama.{key}", default)
        if type(found) not in (int, float) or not 0 < found < math.inf:
            raise ModelError(
                f"{self.path}: llama.{key} is {shortened(repr(found))}; a number above 0 expected"
            )
        return float(found)

    def texts(self, key: str) -> list[str]:
        """Return a field that is a list of texts.

        Raises:
            ModelError: it is missing, or something else.
        """
        found = self.field(key)
        if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
            raise ModelError(f"{self.path}: {key}: a list of texts expected")
        return found

    def weight(self, name: str) -> Array:
        """Return a weight, float32; rows of queries and keys in the order of halves.

        Raises:
            ModelError: it is missing, or of a type that ``gguf`` does not decode.
        """
        if name not in self._tensors:
            raise ModelError(f"{self.path}: has no tensor {name}")
        tensor = self._tensors[name]
        try:
            found = np.asarray(gguf.quants.dequantize(tensor.data, tensor.tensor_type), np.float32)
        except NotImplementedError as error:
            kind = tensor.tensor_type.name
            raise ModelError(f"{self.path}: {name} is {kind}, which gguf cannot decode") from error
        heads = {"attn_q": "attention.head_count", "attn_k": "attention.head_count_kv"}
        part = name.split(".")[-2]
        if part not in heads:
            return found
        number = self._count(heads[part])
        rows = found.reshape(number, found.shape[0] // number // 2, 2, *found.shape[1:])
        return np.ascontiguousarray(rows.swapaxes(1, 2).reshape(found.shape))

    def _refuse_other_parts(self, sizes: Sizes) -> None:
        if not 0 < sizes.layers <= len(self._tensors):
            raise ModelError(
                f"{self.path}: {sizes.layers:,} layers, and {len(self._tensors):,} tensors"
            )
        if sizes.context * sizes.head_width > POSITIONS:
            raise ModelError(
                f"{self.path}: {sizes.context:,} positions of {sizes.head_width:,} numbers; at "
                f"most {POSITIONS:,} numbers are allowed"
            )
        shapes = _shapes(sizes)
        if other := sorted(set(self._tensors) - set(shapes)):
            raise ModelError(
                f"{self.path}: has {len(other)} tensors that our Llama has not, the first is "
                f"{other[0]}"
            )
        for name, shape in shapes.items():
            if name in self._tensors:
                found = tuple(int(size) for size in reversed(self._tensors[name].shape))
                if found != shape:
                    raise ModelError(f"{self.path}: {name} has shape {found}; {shape} expected")
            elif name != "output.weight":
                raise ModelError(f"{self.path}: has no tensor {name}")
        rotated = self.field("llama.rope.dimension_count", sizes.head_width)
        scaling = self.field("llama.rope.scaling.type", "none")
        if rotated != sizes.head_width or scaling != "none":
            raise ModelError(f"{self.path}: rotary positions in part, or scaled, are not supported")
        if sizes.heads % sizes.kv_heads or sizes.head_width % 2:
            raise ModelError(
                f"{self.path}: {sizes.heads} heads of {sizes.head_width} numbers cannot share "
                f"{sizes.kv_heads} of keys; a divisor of the heads and an even width expected"
            )


def _shapes(sizes: Sizes) -> dict[str, tuple[int, ...]]:
    """The tensors of a Llama, (out, in), by name."""
    width, inner = sizes.width, sizes.inner
    queries, keys = sizes.heads * sizes.head_width, sizes.kv_heads * sizes.head_width
    parts: dict[str, tuple[int, ...]] = {
        "attn_norm": (width,), "attn_q": (queries, width), "attn_k": (keys, width),
        "attn_v": (keys, width), "attn_output": (width, queries), "ffn_norm": (width,),
        "ffn_gate": (inner, width), "ffn_up": (inner, width), "ffn_down": (width, inner),
    }  # fmt: skip
    words = (sizes.vocabulary, width)
    ends = {"token_embd.weight": words, "output_norm.weight": (width,), "output.weight": words}
    return ends | {
        f"blk.{layer}.{part}.weight": shape
        for layer in range(sizes.layers)
        for part, shape in parts.items()
    }


def tokenizer(file: GgufFile) -> Any:
    """Return the ``tokenizers.Tokenizer`` of a GGUF file: bytes merged by rank.

    ``tokenizer.ggml.pre: smollm`` is a Digits pre-tokenizer before GPT-2's expression. What
    ``transformers`` makes of such a file lacks it.

    Raises:
        ModelError: the vocabulary is of another kind.
    """
    kind = file.field("tokenizer.ggml.model")
    pre = file.field("tokenizer.ggml.pre", "default")
    steps = {"smollm": [tokenizers.pre_tokenizers.Digits(individual_digits=True)], "gpt-2": []}
    if kind != "gpt2" or pre not in steps:
        raise ModelError(
            f"{file.path}: a tokenizer {kind} with pre-tokenizer {pre} is not supported; "
            f"gpt2 with {' or '.join(steps)} is"
        )
    tokens, kinds = file.texts("tokenizer.ggml.tokens"), file.field("tokenizer.ggml.token_type")
    merges = [tuple(pair.split(" ", 1)) for pair in file.texts("tokenizer.ggml.merges")]
    if not isinstance(kinds, list) or len(kinds) != len(tokens):
        raise ModelError(f"{file.path}: tokenizer.ggml.token_type: a kind for each token expected")
    vocabulary = {token: number for number, token in enumerate(tokens)}
    try:
        made = tokenizers.Tokenizer(tokenizers.models.BPE(vocabulary, merges))
    except Exception as error:  # the library has no class for its errors
        raise ModelError(f"{file.path}: its vocabulary is none: {one_line(error, 200)}") from error
    own = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    made.pre_tokenizer = tokenizers.pre_tokenizers.Sequence([*steps[pre], own])
    made.decoder = tokenizers.decoders.ByteLevel()
    pairs = list(zip(tokens, kinds, strict=True))
    made.add_special_tokens(
        [
            tokenizers.AddedToken(t, special=True, normalized=False)
            for t, k in pairs
            if k == _CONTROL
        ]
    )
    made.add_tokens(
        [tokenizers.AddedToken(t, special=False, normalized=False) for t, k in pairs if k == _OWN]
    )
    return made
