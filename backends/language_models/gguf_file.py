"""Reads a GGUF file: the sizes and weights of a Llama, and its vocabulary.

Source: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md; the order of rows of queries and
keys: llama.cpp, convert_hf_to_gguf.py, LlamaModel.permute.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from backends.language_models.libraries import gguf, tokenizers
from backends.language_models.llama import Sizes
from simulator.contract import Array, MissingLibrary, ModelError
from simulator.errors import one_line

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
            reader = gguf.GGUFReader(str(path))
        except MissingLibrary:
            raise
        except Exception as error:  # the library raises whatever bytes make it raise
            raise ModelError(f"{path}: not a GGUF file: {one_line(error)}") from error
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
        own = "llama."
        width, heads = (
            self.field(f"{own}{k}") for k in ("embedding_length", "attention.head_count")
        )
        found = Sizes(
            layers=self.field(f"{own}block_count"),
            width=width,
            heads=heads,
            kv_heads=self.field(f"{own}attention.head_count_kv", heads),
            head_width=self.field(f"{own}attention.key_length", width // heads),
            inner=self.field(f"{own}feed_forward_length"),
            vocabulary=len(self.field("tokenizer.ggml.tokens")),
            context=self.field(f"{own}context_length"),
            epsilon=float(self.field(f"{own}attention.layer_norm_rms_epsilon")),
            theta=float(self.field(f"{own}rope.freq_base", 10000.0)),
            tied="output.weight" not in self._tensors,
            cache=cache,
        )
        self._refuse_other_parts(found)
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
        number = self.field(f"llama.{heads[part]}")
        rows = found.reshape(number, found.shape[0] // number // 2, 2, *found.shape[1:])
        return np.ascontiguousarray(rows.swapaxes(1, 2).reshape(found.shape))

    def _refuse_other_parts(self, sizes: Sizes) -> None:
        parts = ("attn_norm", "attn_q", "attn_k", "attn_v", "attn_output", "ffn_norm", "ffn_gate",
                 "ffn_up", "ffn_down")  # fmt: skip
        known = {"token_embd.weight", "output_norm.weight", "output.weight"}
        known |= {f"blk.{n}.{part}.weight" for n in range(sizes.layers) for part in parts}
        if other := sorted(set(self._tensors) - known):
            raise ModelError(
                f"{self.path}: has {len(other)} tensors that our Llama has not, the first is "
                f"{other[0]}"
            )
        rotated = self.field("llama.rope.dimension_count", sizes.head_width)
        scaling = self.field("llama.rope.scaling.type", "none")
        if rotated != sizes.head_width or scaling != "none":
            raise ModelError(f"{self.path}: rotary positions in part, or scaled, are not supported")
        if len(self._tensors["token_embd.weight"].data) != sizes.vocabulary:
            raise ModelError(
                f"{self.path}: the embedding has another number of ids than the tokens"
            )


def tokenizer(file: GgufFile) -> Any:
    """Return the ``tokenizers.Tokenizer`` of a GGUF file: bytes merged by rank.

    ``tokenizer.ggml.pre: smollm`` is a Digits pre-tokenizer before GPT-2's expression. What
    ``transformers`` makes of such a file lacks it.

    Raises:
        ModelError: the vocabulary is of another kind.
    """
    kind = file.field("tokenizer.ggml.model")
    pre = file.field("tokenizer.ggml.pre", "default")
    steps = {
        "smollm": [tokenizers.pre_tokenizers.Digits(individual_digits=True)],
        "gpt-2": [],
    }
    if kind != "gpt2" or pre not in steps:
        raise ModelError(
            f"{file.path}: a tokenizer {kind} with pre-tokenizer {pre} is not supported; "
            f"gpt2 with {' or '.join(steps)} is"
        )
    tokens, kinds = file.field("tokenizer.ggml.tokens"), file.field("tokenizer.ggml.token_type")
    merges = [tuple(pair.split(" ", 1)) for pair in file.field("tokenizer.ggml.merges")]
    vocabulary = {token: number for number, token in enumerate(tokens)}
    made = tokenizers.Tokenizer(tokenizers.models.BPE(vocabulary, merges))
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
