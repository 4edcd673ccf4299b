"""ONNX files as ``torch.export`` programs, through onnx2torch's modules."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_leaves

from backends.ort.library import ort
from backends.pytorch_converters import onnx2torch, plain, registered
from simulator.contract import Array, Unsupported

TOLERANCE = 1e-3
"""Allowed difference to ONNX Runtime, relative to the largest number of the output."""


def exported(data: bytes) -> Any:
    """Return a model as a program with fixed shapes; what is constant is computed once.

    What a node becomes has the node's name as the path of its module.

    Args:
        data: an ONNX file; free sizes become 1.

    Raises:
        NotImplementedError: onnx2torch lacks an operator; it may raise others.
    """
    model = onnx.load_from_string(data)
    held = {one.name for one in model.graph.initializer}
    inputs = tuple(_zeros(port) for port in model.graph.input if port.name not in held)
    names = _names(model)
    registered()
    module = onnx2torch.convert(plain(model)).eval()
    _tie(module, model)
    whole = Folded(module)
    with torch.no_grad():
        program = torch.export.export(whole, inputs)
    for node in program.graph.nodes:
        for key, (path, kind) in (node.meta.get("nn_module_stack") or {}).items():
            if path in names:
                node.meta["nn_module_stack"] = {key: (names[path], kind)}
    return program


class Folded(torch.nn.Module):
    """A graph of modules whose constant nodes are computed already.

    Args:
        module: what onnx2torch makes.
    """

    def __init__(self, module: Any) -> None:
        super().__init__()
        self._order = list(module.graph.nodes)
        self._known: dict[Any, Any] = {}
        self._called = set()
        for node in self._order:
            if node.op == "get_attr":
                self._known[node] = _attribute(module, node.target).detach()
            elif node.op == "call_module":
                made = module.get_submodule(node.target)
                if node.all_input_nodes and not set(node.all_input_nodes) <= self._known.keys():
                    self._called.add(node)
                    self.add_module(node.target, _plain(made))
                else:
                    with torch.no_grad():
                        self._known[node] = self._call(made, node, {})

    def _call(self, made: Any, node: Any, values: Mapping[Any, Any]) -> Any:
        args, kwargs = self._arguments(node, values)
        return made(*args, **kwargs)

    def _arguments(self, node: Any, values: Mapping[Any, Any]) -> Any:
        def value(of: Any) -> Any:
            return self._known[of] if of in self._known else values[of]

        return torch.fx.node.map_arg((node.args, node.kwargs), value)

    def forward(self, *inputs: Any) -> Any:
        """Return the outputs of the graph."""
        left = iter(inputs)
        values: dict[Any, Any] = {}
        with _ConstantsOutside():
            for node in self._order:
                if node.op == "placeholder":
                    values[node] = next(left)
                elif node in self._called:
                    made = self._modules[node.target]
                    values[node] = self._call(made, node, values)
                elif node.op == "call_function":
                    values[node] = self._call(node.target, node, values)
                elif node.op == "output":
                    (found,), _ = self._arguments(node, values)
        return found


def _plain(module: Any) -> Any:
    """Let ``ConstantOfShape`` hold its number as a number: a buffer has no value in a program."""
    if type(module).__name__ == "OnnxConstantOfShape":
        module.value = module._buffers.pop("value")
    return module


_FACTORIES = {torch.tensor, torch.as_tensor, torch.arange, torch.full, torch.ones, torch.zeros}


class _ConstantsOutside(TorchFunctionMode):
    """Computes with real tensors as usual while a graph is being recorded."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        tensors = [
            tree_leaf
            for tree_leaf in tree_leaves((args, kwargs))
            if isinstance(tree_leaf, torch.Tensor)
        ]
        real = all(type(tensor) is torch.Tensor for tensor in tensors)
        if real and (tensors or func in _FACTORIES):
            with _disable_current_modes():
                return func(*args, **(kwargs or {}))
        return func(*args, **(kwargs or {}))


def hold(program: Any, model: bytes, source: object) -> None:
    """Hold a program against ONNX Runtime, on normal random numbers of a fixed seed.

    Raises:
        Unsupported: they differ by more than :data:`TOLERANCE`.
    """
    options = ort.SessionOptions()
    options.log_severity_level = 3
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(0)
    module = program.module()
    feeds = {}
    for port, name in zip(session.get_inputs(), program.graph_signature.user_inputs, strict=True):
        value = next(n for n in program.graph.nodes if n.name == name).meta["val"]
        made = rng.standard_normal(tuple(value.shape))
        feeds[port.name] = np.asarray(made, str(value.dtype).removeprefix("torch."))
    with torch.inference_mode():
        found = module(*(torch.from_numpy(array) for array in feeds.values()))
    found = found if isinstance(found, (tuple, list)) else (found,)
    ports = [port.name for port in session.get_outputs()]
    for name, want, got in zip(ports, session.run(None, feeds), found, strict=True):
        off, largest = _off(got.numpy(), want), np.abs(want).max()
        if not off <= TOLERANCE * largest:
            raise Unsupported(
                f"onnx2torch changes what {source} computes: output {name!r} is off by {off:.2g} "
                f"where its largest number is {largest:.2g}; export the network with "
                "torch.export and name the program in the card, torch_export: FILE.pt2"
            )


def _off(got: Array, want: Array) -> float:
    if got.shape != want.shape:
        return float("inf")
    return float(np.abs(got.astype(np.float64) - want).max(initial=0))


def _names(model: onnx.ModelProto) -> dict[str, str]:
    """Return what onnx2torch calls the module of each node, to the node's own name."""
    own = [re.sub("[,;]", "_", node.name) for node in model.graph.node]
    return {f"node_{n}": name for n, name in enumerate(own) if name and own.count(name) == 1}


def _tie(module: Any, model: onnx.ModelProto) -> None:
    """Let nodes share what they share in the file, of which onnx2torch gives each a copy."""
    first: dict[tuple[str, Any], Any] = {}
    made = dict(module.named_modules())
    for number, node in enumerate(model.graph.node):
        of = made.get(f"node_{number}", torch.nn.Identity())
        for path, parameter in list(of.named_parameters()):
            holder, _, name = path.rpartition(".")
            for stored in node.input:
                known = first.setdefault((stored, parameter.shape), parameter)
                if known is not parameter and torch.equal(known, parameter):
                    setattr(of.get_submodule(holder), name, known)


def _zeros(port: Any) -> Any:
    kind = port.type.tensor_type
    sizes = [size.dim_value or 1 for size in kind.shape.dim]
    return torch.from_numpy(np.zeros(sizes, onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)))


def _attribute(module: Any, path: str) -> Any:
    for name in path.split("."):
        module = getattr(module, name)
    return module
