"""The libraries that read checkpoints; imported on first use."""

from __future__ import annotations

from simulator.contract import Library

gguf = Library("gguf", distribution="gguf", extra="text")
safetensors = Library("safetensors.numpy", distribution="safetensors", extra="text")
tokenizers = Library("tokenizers", distribution="tokenizers", extra="text")
torch = Library("torch", distribution="torch", extra="pytorch")
