"""The networks of this package as ``torch.export`` programs, for the runtime ``pytorch``.

Positions, normalization and softmax are computed in FP32 and then take the type of their input,
whatever a runtime casts the weights to; so rotary angles are those of FP32 in BF16 as well.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from backends.language_models import llama
from backends.language_models.libraries import torch
from backends.onnx_nodes import MASKED


def save(sizes: llama.Sizes, weights: llama.Weights, target: Path) -> None:
    """Write a Llama: ``input_ids`` and ``attention_mask`` (batch, seq) int64 to logits.

    Args:
        sizes: of the network; ``cache`` is ignored.
        weights: see :data:`backends.language_models.llama.Weights`.
        target: the file, a ``.pt2``.
    """
    module = _module(sizes, weights).eval()
    ids = torch.zeros(2, 5, dtype=torch.int64)
    free = {0: torch.export.Dim("batch", min=1), 1: torch.export.Dim("seq", min=1)}
    with torch.no_grad():
        program = torch.export.export(
            module, (ids, torch.ones_like(ids)), dynamic_shapes=(free, free)
        )
    made = io.BytesIO()  # of a file, its name would be in it
    torch.export.save(program, made)
    target.write_bytes(made.getbuffer())


def _module(sizes: llama.Sizes, weights: llama.Weights) -> Any:
    nn, functional = torch.nn, torch.nn.functional
    base: Any = nn.Module

    def parameter(name: str) -> Any:
        return nn.Parameter(torch.tensor(weights(name)), requires_grad=False)

    class Norm(base):  # type: ignore[misc]
        def __init__(self, name: str) -> None:
            super().__init__()
            self.weight = parameter(name)

        def forward(self, x: Any) -> Any:
            wide = x.float()
            root = (wide * wide).mean(-1, keepdim=True) + sizes.epsilon
            return (wide * torch.rsqrt(root)).type_as(self.weight) * self.weight

    class Linear(base):  # type: ignore[misc]
        def __init__(self, name: str) -> None:
            super().__init__()
            self.weight = parameter(name)

        def forward(self, x: Any) -> Any:
            return functional.linear(x, self.weight)

    class Block(base):  # type: ignore[misc]
        def __init__(self, name: str) -> None:
            super().__init__()
            self.norm = Norm(f"{name}.attn_norm.weight")
            self.second_norm = Norm(f"{name}.ffn_norm.weight")
            for own, stored in _LINEAR.items():
                setattr(self, own, Linear(f"{name}.{stored}.weight"))

        def heads(self, x: Any, shared: int) -> Any:
            batch, seq, _ = x.shape
            return x.reshape(batch, seq, sizes.kv_heads, shared, -1).permute(0, 2, 3, 1, 4)

        def forward(self, x: Any, cos: Any, sin: Any, mask: Any) -> Any:
            normed = self.norm(x)
            query = _rotated(self.heads(self.q(normed), sizes.heads // sizes.kv_heads), cos, sin)
            key = _rotated(self.heads(self.k(normed), 1), cos, sin)
            worth = self.heads(self.v(normed), 1)
            score = torch.matmul(query, key.transpose(-1, -2)) * sizes.head_width**-0.5
            share = torch.softmax(score.float() + mask, -1).type_as(worth)
            seen = torch.matmul(share, worth).permute(0, 3, 1, 2, 4)
            x = x + self.o(seen.reshape(*x.shape[:2], -1))
            normed = self.second_norm(x)
            return x + self.down(functional.silu(self.gate(normed)) * self.up(normed))

    class Llama(base):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.embedding = parameter("token_embd.weight")
            self.blocks = nn.ModuleList(Block(f"blk.{n}") for n in range(sizes.layers))
            self.norm = Norm("output_norm.weight")
            self.head = self.embedding if sizes.tied else parameter("output.weight")

        def forward(self, input_ids: Any, attention_mask: Any) -> Any:
            seq = input_ids.shape[1]
            places = (attention_mask.cumsum(-1) - 1).clamp(min=0).float()
            share = torch.arange(0, sizes.head_width, 2).float() / sizes.head_width
            angles = places[:, None, None, :, None] * (1.0 / sizes.theta**share)
            both = torch.cat((angles, angles), -1)
            at = torch.arange(seq)
            kept = (at[None, :] <= at[:, None]) & (attention_mask[:, None, None, None, :] > 0)
            mask = torch.where(kept, 0.0, MASKED)
            x = functional.embedding(input_ids, self.embedding)
            cos, sin = both.cos().type_as(x), both.sin().type_as(x)
            for block in self.blocks:
                x = block(x, cos, sin, mask)
            return functional.linear(self.norm(x), self.head)

    return Llama()


def _rotated(x: Any, cos: Any, sin: Any) -> Any:
    half = x.shape[-1] // 2
    turned = torch.cat((-x[..., half:], x[..., :half]), -1)
    return x * cos + turned * sin


_LINEAR = {
    "q": "attn_q", "k": "attn_k", "v": "attn_v", "o": "attn_output",
    "gate": "ffn_gate", "up": "ffn_up", "down": "ffn_down",
}  # fmt: skip
