"""PyTorch on the CPU: torch.export programs, and ``interpolate``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from simulator.contract import (
    U8,
    Array,
    AtLeast,
    Backend,
    Effective,
    Library,
    Offer,
    Port,
    Resizer,
    Runtime,
    Stage,
)

torch = Library("torch", distribution="torch", extra="pytorch")


class TorchRuntime(Runtime):
    """Runs a ``torch.export`` program eagerly; BF16 and FP16 by ``torch.autocast``.

    The thread count is the process's own: of two PyTorch stacks with different ``threads``, the
    one opened later sets it for both.
    """

    takes: ClassVar[str] = "torch_export"

    def _open(self, artifact: Path) -> tuple[tuple[Port, ...], tuple[Port, ...]]:
        torch.set_num_threads(self.options["threads"])
        program = torch.export.load(str(artifact))
        self._module = program.module()
        signature = program.graph_signature
        values = {node.name: node.meta["val"] for node in program.graph.nodes if "val" in node.meta}
        return (
            tuple(_port(name, values[name]) for name in signature.user_inputs),
            tuple(_port(name, values[name]) for name in signature.user_outputs),
        )

    def _run(self, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        kind = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(self.options["compute"])
        with torch.inference_mode(), torch.autocast("cpu", dtype=kind, enabled=kind is not None):
            outputs = self._module(*(torch.from_numpy(feeds[p.name]) for p in self.inputs))
        if not isinstance(outputs, (tuple, list)):
            outputs = (outputs,)
        names = [port.name for port in self.outputs]
        return {n: out.float().numpy() for n, out in zip(names, outputs, strict=True)}

    def effective(self, feeds: Mapping[str, Array]) -> Effective:
        """Watch which types reach the convolutions and matrix products."""
        from torch.utils._python_dispatch import TorchDispatchMode

        heavy = ("convolution", "conv2d", "linear", "matmul", "addmm", "mm", "bmm")
        seen = Counter[str]()

        base: Any = TorchDispatchMode

        class Watch(base):  # type: ignore[misc]
            def __torch_dispatch__(
                self, func: Any, types: Any, args: Any = (), kwargs: Any = None
            ) -> Any:
                if func.overloadpacket.__name__ in heavy:
                    seen[str(args[1].dtype)] += 1
                return func(*args, **(kwargs or {}))

        with Watch():
            self._run(feeds)
        names = {"torch.float32": "fp32", "torch.bfloat16": "bf16", "torch.float16": "fp16"}
        return Effective(
            products={names.get(kind, kind): count for kind, count in seen.items()},
            options={"device": "cpu", "threads": torch.get_num_threads()},
        )

    def _close(self) -> None:
        del self._module


class TorchResizer(Resizer):
    """``torch.nn.functional.interpolate`` on uint8, without align_corners.

    This is also the resize of torchvision's tensor transforms.
    """

    def _resize(self, plane: U8, height: int, width: int) -> U8:
        channels = plane if plane.ndim == 3 else plane[..., None]
        tensor = torch.from_numpy(np.require(channels, requirements=("C", "W"))).permute(2, 0, 1)[
            None
        ]
        mode = self.options["interpolation"].replace("_", "-")
        smooth = mode in ("bilinear", "bicubic")
        out = torch.nn.functional.interpolate(
            tensor,
            size=(height, width),
            mode=mode,
            **({"align_corners": False, "antialias": self.options["antialias"]} if smooth else {}),
        )
        array: U8 = out[0].permute(1, 2, 0).numpy()
        return np.ascontiguousarray(array if plane.ndim == 3 else array[..., 0])


def _port(name: str, value: Any) -> Port:
    shape = tuple(d if isinstance(d, int) else None for d in value.shape)
    return Port(name, np.dtype(str(value.dtype).removeprefix("torch.")), shape)


_SOURCE = "https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.interpolate.html"

BACKEND = Backend(
    name="pytorch",
    summary="PyTorch on the CPU: torch.export programs, autocast, interpolate",
    library=torch,
    offers=(
        Offer(
            Stage.RUNTIME,
            {
                "device": ("cpu",),
                "threads": AtLeast(1),
                "storage": ("fp32",),
                "compute": ("fp32", "bf16", "fp16"),
            },
            TorchRuntime,
        ),
        Offer(
            Stage.RESIZE,
            {"interpolation": ("bilinear", "bicubic"), "antialias": (True, False)},
            TorchResizer,
            source=_SOURCE,
        ),
        Offer(
            Stage.RESIZE,
            {"interpolation": ("nearest", "nearest_exact"), "antialias": (False,)},
            TorchResizer,
            source=_SOURCE,
        ),
    ),
)
