"""``torch.export`` programs, run eagerly or by ``torch.compile``."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from simulator.contract import Array, Effective, Library, MissingLibrary, Port, Runtime, Unsupported
from simulator.contract.program import plain_program

torch = Library("torch", distribution="torch", extra="pytorch")


class TorchProgram(Runtime):
    """Runs a ``torch.export`` program, eagerly or by ``torch.compile`` with frozen weights.

    ``casting`` selects how to compute in BF16 and FP16: ``autocast`` casts the operators that
    ``torch.autocast`` lists; ``whole`` casts the input, the weights and all activations. The thread
    count and TF32 apply to the process, so all open runtimes must have the same values.
    """

    takes: ClassVar[str] = "torch_export"
    batches: ClassVar[tuple[str, ...]] = ("fixed",)
    _together: ClassVar[weakref.WeakSet[TorchProgram]] = weakref.WeakSet()

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

    def inner(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """Run the operators one by one, and keep a copy of what each gives; see the contract."""
        if self.options["mode"] != "eager":
            raise Unsupported("compiled code does not show its layers; use runtime.mode: eager")
        found: dict[str, Array] = {}
        base: Any = torch.fx.Interpreter

        class Kept(base):  # type: ignore[misc]
            def run_node(self, node: Any) -> Any:
                value = super().run_node(node)
                made = node.op == "call_function" and isinstance(value, torch.Tensor)
                if made and value.is_floating_point():
                    found[node.name] = value.float().cpu().numpy().copy()
                return value

        torch.set_num_threads(self.options["threads"])
        with torch.inference_mode(), self.autocast():
            Kept(self.module).run(*(self.tensor(feeds[p.name]) for p in self.inputs))
        return found

    def autocast(self) -> Any:
        """Return the context in which the module runs."""
        kind = self._autocast
        return torch.autocast(self.options["device"], dtype=kind, enabled=kind is not None)

    def named(self, outputs: Sequence[Any]) -> dict[str, Array]:
        """Return what the module gives as arrays by name."""
        return self._named(out.float().cpu().numpy() for out in outputs)

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
