"""A small random Llama in a GGUF file, with a vocabulary of bytes."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from simulator.testing import vocabularies

LAYERS, WIDTH, HEADS, SHARED, INNER, CONTEXT = 2, 64, 4, 2, 96, 64
IDS = len(vocabularies.tokens())


def weights(seed: int = 0, tied: bool = True) -> dict[str, np.ndarray]:
    """Return tensors by their names in GGUF, with rows of q and k in GGUF's order."""
    random = np.random.default_rng(seed)

    def normal(*shape: int) -> np.ndarray:
        return (random.standard_normal(shape) / 8).astype(np.float32)

    kv = WIDTH // HEADS * SHARED
    found = {"token_embd.weight": normal(IDS, WIDTH), "output_norm.weight": 1 + normal(WIDTH)}
    if not tied:
        found["output.weight"] = normal(IDS, WIDTH)
    for layer in range(LAYERS):
        shapes = {
            "attn_q": (WIDTH, WIDTH), "attn_k": (kv, WIDTH), "attn_v": (kv, WIDTH),
            "attn_output": (WIDTH, WIDTH), "ffn_gate": (INNER, WIDTH), "ffn_up": (INNER, WIDTH),
            "ffn_down": (WIDTH, INNER),
        }  # fmt: skip
        for name, shape in shapes.items():
            found[f"blk.{layer}.{name}.weight"] = normal(*shape)
        for name in ("attn_norm", "ffn_norm"):
            found[f"blk.{layer}.{name}.weight"] = 1 + normal(WIDTH)
    return found


def write(
    path: Path, kind: str | None = None, tied: bool = True, without: str = "", **changed: object
) -> Path:
    """Write the file.

    Args:
        path: where.
        kind: the type of the matrices, such as ``Q8_0``; FP32 by default.
        tied: whether the head is the embedding.
        without: a tensor that is left out.
        changed: fields by their key with ``__`` for a dot; None leaves one out.
    """
    import gguf

    fields = {
        "general.name": "made",
        "llama.block_count": LAYERS,
        "llama.context_length": CONTEXT,
        "llama.embedding_length": WIDTH,
        "llama.feed_forward_length": INNER,
        "llama.attention.head_count": HEADS,
        "llama.attention.head_count_kv": SHARED,
        "llama.rope.freq_base": 10000.0,
        "llama.rope.dimension_count": WIDTH // HEADS,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "llama.vocab_size": IDS,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.padding_token_id": 2,
    } | {key.replace("__", "."): value for key, value in changed.items()}
    writer = gguf.GGUFWriter(str(path), str(fields.pop("general.architecture", "llama")))
    for key, value in fields.items():
        if isinstance(value, str):
            writer.add_string(key, value)
        elif isinstance(value, bool):
            writer.add_bool(key, value)
        elif isinstance(value, float):
            writer.add_float32(key, value)
        elif value is not None:
            writer.add_uint32(key, value)
    tokens = vocabularies.tokens()
    writer.add_token_list(tokens)
    writer.add_token_types([3 if at < len(vocabularies.SPECIAL) else 1 for at in range(IDS)])
    writer.add_token_merges(list(vocabularies._PAIRS))
    stored = gguf.GGMLQuantizationType[kind] if kind else None
    for name, value in weights(tied=tied).items():
        if name == without:
            continue
        if stored is None or value.ndim == 1:
            writer.add_tensor(name, value)
        else:
            writer.add_tensor(name, gguf.quants.quantize(value, stored), raw_dtype=stored)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
