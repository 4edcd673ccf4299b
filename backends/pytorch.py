"""PyTorch: torch.export programs, and ``interpolate``."""

from __future__ import annotations

import numpy as np

from backends.pytorch_gradients import TorchGradients
from backends.pytorch_module import ModuleWriter
from backends.pytorch_program import TorchProgram, torch
from backends.sound.torch_sound import OFFERS as SOUND
from backends.sound.vocoders import FIELDS as VOCODER
from simulator.contract import U8, Admits, AtLeast, Backend, Offer, Resizer, Stage
from simulator.contract.injection import Injector


class TorchRuntime(TorchProgram):
    """Runs a ``torch.export`` program, and lets faults be put into it."""

    @classmethod
    def injector(cls) -> type[Injector]:
        """Return what cuts the program at a layer."""
        from backends.pytorch_injector import TorchInjector

        return TorchInjector


class TorchResizer(Resizer):
    """``torch.nn.functional.interpolate``, without align_corners.

    ``arithmetic`` is what it computes in: ``uint8``, as torchvision.transforms.v2 calls it (for
    bilinear on processors with AVX2), or ``float32``, rounded after it, as torchvision.transforms.

    Source:
        pytorch/vision, torchvision/transforms/_functional_tensor.py: resize, and
        torchvision/transforms/v2/functional/_geometry.py: resize_image.
    """

    def _resize(self, plane: U8, height: int, width: int) -> U8:
        channels = plane if plane.ndim == 3 else plane[..., None]
        tensor = torch.from_numpy(np.require(channels, requirements=("C", "W"))).permute(2, 0, 1)[
            None
        ]
        rounded = self.options.get("arithmetic") == "float32"
        mode = self.options["interpolation"].replace("_", "-")
        smooth = mode in ("bilinear", "bicubic")
        out = torch.nn.functional.interpolate(
            tensor.float() if rounded else tensor,
            size=(height, width),
            mode=mode,
            **({"align_corners": False, "antialias": self.options["antialias"]} if smooth else {}),
        )
        if rounded:
            out = out.clamp(0, 255).round().to(torch.uint8)
        array: U8 = out[0].permute(1, 2, 0).numpy()
        return np.ascontiguousarray(array if plane.ndim == 3 else array[..., 0])


_RUN: dict[str, Admits] = {
    "threads": AtLeast(1),
    "mode": ("eager", "compile"),
    "memory_format": ("contiguous", "channels_last"),
    "storage": ("fp32",),
}
_CASTS: dict[str, Admits] = {"compute": ("bf16", "fp16"), "casting": ("autocast", "whole")}
_CPU: dict[str, Admits] = {"device": ("cpu",)}
_CUDA: dict[str, Admits] = {"device": ("cuda",), "use_tf32": (False, True)}

_SOURCE = "https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.interpolate.html"
_COMPILE = "https://docs.pytorch.org/docs/stable/export.html"

BACKEND = Backend(
    name="pytorch",
    summary="PyTorch: torch.export programs, eager or compiled, autocast or true half; interpolate",
    library=torch,
    offers=(
        *(
            Offer(Stage.RUNTIME, {**_RUN, **place, **precision}, TorchRuntime, source=_COMPILE)
            for place in (_CPU, _CUDA)
            for precision in ({"compute": ("fp32",)}, _CASTS)
        ),
        Offer(
            Stage.RESIZE,
            {
                "interpolation": ("bilinear", "bicubic"),
                "antialias": (True, False),
                "arithmetic": ("uint8", "float32"),
            },
            TorchResizer,
            source=_SOURCE,
        ),
        Offer(
            Stage.RESIZE,
            {"interpolation": ("nearest", "nearest_exact"), "antialias": (False,)},
            TorchResizer,
            source=_SOURCE,
        ),
        Offer(Stage.GRADIENT, {"format": ("torch_export",)}, TorchGradients),
        Offer(Stage.NETWORK, {}, ModuleWriter, source="torch.onnx.export"),
        *SOUND,
    ),
    fields={
        **VOCODER,
        "mode": "as written, or by torch.compile",
        "memory_format": "of image batches",
        "arithmetic": "of the resize: uint8, or float32 that is rounded after it",
        "casting": "autocast of single operators, or the whole model in that type",
        "use_tf32": "whether convolutions and matrix products may run in TF32",
    },
)
