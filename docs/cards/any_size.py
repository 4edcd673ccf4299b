"""Write a network of Transformers as an ONNX file that takes images of any size.

python docs/cards/any_size.py google/vit-base-patch16-224 vit.onnx
python docs/cards/any_size.py google/deeplabv3_mobilenet_v2_1.0_513 deeplab.onnx

They are the networks of ``vit_any_size.yaml`` and ``deeplab_native.yaml``. A folder of
``save_pretrained`` will do in place of a name.
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import Any

import torch
import transformers


class Logits(torch.nn.Module):
    """The logits alone; of a ViT with its positions interpolated to the image's size."""

    def __init__(self, network: Any) -> None:
        super().__init__()
        self.network = network
        known = inspect.signature(network.forward).parameters
        self.more = {name: True for name in ("interpolate_pos_encoding",) if name in known}

    def forward(self, pixel_values: torch.Tensor) -> torch.Tensor:
        """Return the logits of normalized images."""
        logits: torch.Tensor = self.network(pixel_values, **self.more).logits
        return logits


def load(source: str) -> tuple[Logits, int]:
    """Return a network and the number of which both sides of its images are multiples."""
    config = transformers.AutoConfig.from_pretrained(source)
    made = getattr(transformers, config.architectures[0]).from_pretrained(source)
    return Logits(made).eval(), getattr(config, "patch_size", 32)


def export(source: str, target: Path) -> None:
    """Write the network; its sides are multiples of the patch, or of 32."""
    network, step = load(source)
    height, width = (step * torch.export.Dim(name, min=1, max=128) for name in "hw")
    torch.onnx.export(
        network, (torch.zeros(1, 3, 3 * step, 5 * step),), target, dynamo=True, external_data=False,
        input_names=["pixel_values"], output_names=["logits"],
        dynamic_shapes=({2: height, 3: width},), verbose=False,
    )  # fmt: skip


if __name__ == "__main__":
    export(sys.argv[1], Path(sys.argv[2]))
