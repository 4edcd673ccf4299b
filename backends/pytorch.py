"""PyTorch: torch.export programs, and ``interpolate``."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from backends.pytorch_gradients import TorchGradients
from backends.sound.torch_sound import OFFERS as SOUND
from simulator.contract import (
    U8,
    Admits,
    Array,
    AtLeast,
    Backend,
    Effective,
    Library,
    MissingLibrary,
    Offer,
    Port,
    Resizer,
    Runtime,
    Stage,
    Unsupported,
)
from simulator.contract.injection import Injector
from simulator.contract.program import plain_program

torch = Library("torch", distribution="torch", extra="pytorch")


class TorchRuntime(Runtime):
    """Runs a ``torch.export`` program, eagerly or by ``torch.compile`` with frozen weights.

    ``casting`` selects how to compute in BF16 and FP16: ``autocast`` casts the operators that
    ``torch.autocast`` lists; ``whole`` casts the input, the weights and all activations. The thread
    count and TF32 apply to the process, so all open runtimes must have the same values.
    """

    takes: ClassVar[str] = "torch_export"
    batches: ClassVar[tuple[str, ...]] = ("fixed",)
    _together: ClassVar[weakref.WeakSet[TorchRuntime]] = weakref.WeakSet()

    def _open(self, artifact: Path) -> tuple[tuple[Port, ...], tuple[Port, ...]]:
        device = self.options["device"]
        if device == "cuda" and not torch.cuda.is_available():
            raise MissingLibrary(
                f"torch {torch.version} finds no CUDA device; use device: cpu, or install a CUDA "
                "build of torch and a matching driver"
            )
        from backends import pytorch_cut

        self._agree()
        torch.set_num_threads(self.options["threads"])
        if "use_tf32" in self.options:
            torch.backends.cuda.matmul.allow_tf32 = self.options["use_tf32"]
            torch.backends.cudnn.allow_tf32 = self.options["use_tf32"]
        program = torch.export.load(plain_program(artifact))
        signature = program.graph_signature
        values = {node.name: node.meta["val"] for node in program.graph.nodes if "val" in node.meta}
        ports = (
            tuple(_port(name, values[name]) for name in signature.user_inputs),
            tuple(_port(name, values[name]) for name in signature.user_outputs),
        )
        kinds = {"bf16": torch.bfloat16, "fp16": torch.float16}
        kind = kinds.get(self.options["compute"])
        casting = self.options.get("casting")
        self._cast = kind if casting == "whole" else None
        self._autocast = kind if casting == "autocast" else None
        self._format = getattr(torch, _FORMATS[self.options["memory_format"]])
        self.module = program.module()
        if kind is not None:
            _unpinned(self.module)
        pytorch_cut.share(self.module)  # a cast would make a copy for each name
        self.module = self.module.to(device, memory_format=self._format)
        if self._cast is not None:
            self.module = self.module.to(self._cast)
        if self.options["mode"] == "compile":
            self.module = torch.compile(self.module, options={"freezing": True})
            self.inputs, self.outputs = ports
            self._run({p.name: np.zeros([n or 1 for n in p.shape], p.dtype) for p in ports[0]})
        self._together.add(self)
        return ports

    def _agree(self) -> None:
        """Refuse a second value of a setting that PyTorch has once per process."""
        for other in self._together:
            for name in ("threads", "use_tf32"):
                theirs, ours = (o.options.get(name) for o in (other, self))
                if None not in (theirs, ours) and theirs != ours:
                    raise Unsupported(
                        f"PyTorch has one {name} for the whole process: {theirs} is in use, but "
                        f"{ours} was requested; use one value, or run them one after the other"
                    )

    def _run(self, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        torch.set_num_threads(self.options["threads"])  # of this thread, whoever set it last
        with torch.inference_mode(), self.autocast():
            outputs = self.module(*(self.tensor(feeds[p.name]) for p in self.inputs))
        return self.named(outputs if isinstance(outputs, (tuple, list)) else (outputs,))

    def autocast(self) -> Any:
        """Return the context in which the module runs."""
        kind = self._autocast
        return torch.autocast(self.options["device"], dtype=kind, enabled=kind is not None)

    def named(self, outputs: Sequence[Any]) -> dict[str, Array]:
        """Return what the module gives as arrays by name."""
        names = [port.name for port in self.outputs]
        return {n: out.float().cpu().numpy() for n, out in zip(names, outputs, strict=True)}

    def tensor(self, array: Array) -> Any:
        """Return an input as the module takes it."""
        tensor = torch.from_numpy(np.require(array, requirements=("C", "W")))
        tensor = tensor.to(self.options["device"], self._cast if array.dtype.kind == "f" else None)
        return tensor.contiguous(memory_format=self._format) if tensor.ndim == 4 else tensor

    def effective(self, feeds: Mapping[str, Array]) -> Effective:
        """Observe the input types of convolutions and products; not possible for compiled code."""
        options = {
            "device": next((p.device.type for p in self.module.parameters()), None),
            "threads": torch.get_num_threads(),
        }
        if "use_tf32" in self.options:
            options["use_tf32"] = torch.backends.cuda.matmul.allow_tf32
        products = self._watched(feeds) if self.options["mode"] == "eager" else {}
        return Effective(products, options)

    def _watched(self, feeds: Mapping[str, Array]) -> dict[str, int]:
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
        return {names.get(kind, kind): count for kind, count in seen.items()}

    def _close(self) -> None:
        self._together.discard(self)
        del self.module

    @classmethod
    def injector(cls) -> type[Injector]:
        """Return what cuts the program at a layer."""
        from backends.pytorch_injector import TorchInjector

        return TorchInjector

    @classmethod
    def save_conv(cls, weights: Array, path: Path) -> None:
        """Write ``torch.nn.Conv2d`` as a ``torch.export`` program."""
        features, channels = weights.shape[:2]
        conv = torch.nn.Conv2d(channels, features, 1, bias=False).eval()
        conv.weight.data = torch.from_numpy(weights)
        program = torch.export.export(conv, (torch.zeros(1, channels, 8, 8),))
        torch.export.save(program, str(path))

    @classmethod
    def save_suite(cls, source: Path, target: Path) -> None:
        """Write a ``torch.export`` program of a model of the conformance suite."""
        from backends import pytorch_suite

        pytorch_suite.save(source, target)


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


def _unpinned(module: Any) -> None:
    """Remove a program's checks that tensors have the types of the export: they are cast now."""
    for node in list(module.graph.nodes):
        if node.target is torch.ops.aten._assert_tensor_metadata.default:
            module.graph.erase_node(node)
    module.recompile()


def _port(name: str, value: Any) -> Port:
    shape = tuple(d if isinstance(d, int) else None for d in value.shape)
    return Port(name, np.dtype(str(value.dtype).removeprefix("torch.")), shape)


_FORMATS = {"contiguous": "contiguous_format", "channels_last": "channels_last"}
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
        *SOUND,
    ),
    fields={
        "mode": "as written, or by torch.compile",
        "memory_format": "of image batches",
        "arithmetic": "of the resize: uint8, or float32 that is rounded after it",
        "casting": "autocast of single operators, or the whole model in that type",
        "use_tf32": "whether convolutions and matrix products may run in TF32",
    },
)
