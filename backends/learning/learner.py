"""What all networks that learn share: the step, the schedule, and the state between epochs."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from backends.fake_quant.converted import convert
from backends.opsets import for_quantization
from backends.ort.library import ort
from backends.pytorch_converters import drop_allowzero
from backends.stored_weights.nodes import constants
from simulator.contract import Array, ModelError, Options, TrainingObjective

NEAR = 1e-3
"""Of the largest output: how far a converted network may be from ONNX Runtime."""
_MOMENTUM, DECAY = 0.9, 1e-4


class Learner:
    """SGD with momentum 0.9 and half a cosine over the epochs.

    It learns by the cross-entropy, or by the lesson among its options.

    Attributes:
        module: the network.
        ports: the names of its outputs.
        one_by_one: whether it takes one sample at a time.
        fewest: examples that a step needs; a shorter rest is left out.

    Args:
        options: of the tuner.
    """

    module: torch.nn.Module
    optimizer: torch.optim.Optimizer
    ports: tuple[str, ...] = ("output",)
    one_by_one = False
    fewest = 1

    def __init__(self, options: Options) -> None:
        self._options = options
        self._lesson: TrainingObjective | None = options.get("lesson")

    def learn(self, groups: list[dict[str, Any]]) -> None:
        """Let groups of parameters learn, and no others."""
        learning = {id(one) for group in groups for one in group["params"]}
        for parameter in self.module.parameters():
            parameter.requires_grad_(id(parameter) in learning)
        self.optimizer = torch.optim.SGD(groups, self._options["learning_rate"], _MOMENTUM)

    def begin(self) -> None:
        """Make the network ready for an epoch."""

    def stepped(self) -> None:
        """Act after a step."""

    def end(self) -> None:
        """Make the network ready to answer, after an epoch."""

    def epoch(self, number: int, inputs: Array, labels: Sequence[Any], order: Array) -> float:
        """See :class:`~simulator.contract.Tuner`; what the network draws depends on *number*.

        Raises:
            ModelError: there are fewer examples than a step needs.
        """
        batch, total, count = self._options["batch"], 0.0, 0
        if min(batch, len(order)) < self.fewest:
            raise ModelError(
                f"statistics of batches are learned from at least {self.fewest} examples at a "
                f"time, got {min(batch, len(order))}; take more, or keep the statistics"
            )
        share = number / self._options["epochs"]
        for group in self.optimizer.param_groups:
            group["lr"] = self._options["learning_rate"] * 0.5 * (1 + math.cos(math.pi * share))
        self.begin()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed_of(self._options["seed"], number))
            for start in range(0, len(order), batch):
                chosen = order[start : start + batch]
                if len(chosen) >= self.fewest:
                    total += len(chosen) * self._step(inputs[chosen], [labels[at] for at in chosen])
                    count += len(chosen)
        self.end()
        return total / count

    def _step(self, inputs: Array, labels: Sequence[Any]) -> float:
        outputs = self._outputs(torch.from_numpy(np.ascontiguousarray(inputs)))
        self.optimizer.zero_grad()
        if self._lesson is None:
            loss = self._loss(outputs[0], torch.tensor(labels))
            loss.backward()  # type: ignore[no-untyped-call]
            value = float(loss.detach())
        else:
            value = self._taught(self._lesson, outputs, labels)
        self.optimizer.step()
        self.stepped()
        return value

    def _taught(
        self, lesson: TrainingObjective, outputs: Sequence[torch.Tensor], targets: Sequence[Any]
    ) -> float:
        """Send a lesson's derivatives back through the network; return its loss."""
        arrays = [output.detach().numpy() for output in outputs]
        value, slopes = lesson.loss(dict(zip(self.ports, arrays, strict=True)), targets)
        named = dict(zip(self.ports, outputs, strict=True))
        learned = [name for name in slopes if named[name].requires_grad]
        back = [torch.from_numpy(slopes[name]) for name in learned]
        torch.autograd.backward([named[name] for name in learned], back)
        return value

    def _loss(self, outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        if self._options["output"] == "probabilities":
            return torch.nn.functional.nll_loss(outputs.clamp(min=1e-12).log(), labels)
        return torch.nn.functional.cross_entropy(outputs, labels)

    def _outputs(self, inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        if not self.one_by_one:
            return several(self.module(inputs))
        each = [several(self.module(one[None])) for one in inputs]
        return tuple(torch.cat(parts) for parts in zip(*each, strict=True))

    def answers(self, inputs: Array) -> Array:
        """Return the first output of every input."""
        return next(iter(self.outputs(inputs).values()))

    def outputs(self, inputs: Array) -> dict[str, Array]:
        """Return all outputs of every input, by name."""
        parts = []
        with torch.no_grad():
            for start in range(0, len(inputs), 100):
                part = np.array(inputs[start : start + 100])
                parts.append([output.numpy() for output in self._outputs(torch.from_numpy(part))])
        whole = (np.concatenate(of) for of in zip(*parts, strict=True))
        return dict(zip(self.ports, whole, strict=True))

    def state(self) -> bytes:
        """Return the parameters and the optimizer."""
        held = io.BytesIO()
        state = {"module": self.module.state_dict(), "optimizer": self.optimizer.state_dict()}
        torch.save(state, held)
        return held.getvalue()

    def restore(self, state: bytes) -> None:
        """Take them back."""
        found = torch.load(io.BytesIO(state), weights_only=True)
        self.module.load_state_dict(found["module"])
        self.optimizer.load_state_dict(found["optimizer"])


class OnnxLearner(Learner):
    """An ONNX file as a module of onnx2torch; the submodule of node k is called ``nk``.

    Args:
        source: the ONNX file.
        options: of the tuner.
        sample: (1, ...) float32, on which it is held against ONNX Runtime.

    Raises:
        ModelError: it cannot be converted, or the converted network answers otherwise.
    """

    def __init__(self, source: Path, options: Options, sample: Array) -> None:
        from onnx import numpy_helper

        super().__init__(options)
        self._model = for_quantization(source)
        self._names = [node.name for node in self._model.graph.node]
        self._held = constants(self._model.graph)
        initializers = {
            tensor.name: numpy_helper.to_array(tensor) for tensor in self._model.graph.initializer
        }
        for number, node in enumerate(self._model.graph.node):
            node.name = f"n{number}"
            drop_allowzero(node, initializers)
        port = next(one for one in self._model.graph.input if one.name not in initializers)
        self._input = port.name
        self.one_by_one = bool(port.type.tensor_type.shape.dim[0].dim_value == 1)
        self.module = convert(self._model)
        self.ports = tuple(one.name for one in self._model.graph.output)
        hold(self.module, self._model.SerializeToString(), sample, self._lesson is None)


def several(made: Any) -> tuple[torch.Tensor, ...]:
    """Return a module's outputs, of which it may have one."""
    return (made,) if isinstance(made, torch.Tensor) else tuple(made)


def hold(module: Callable[[Any], Any], file: bytes, sample: Array, classes: bool = True) -> None:
    """Hold a module against its ONNX file in ONNX Runtime.

    Args:
        module: in evaluation mode.
        file: the ONNX file.
        sample: (N, ...), of its one input.
        classes: whether its one output must be (N, classes).

    Raises:
        ModelError: they answer otherwise, or not with (N, classes).
    """
    session = ort.InferenceSession(file, providers=["CPUExecutionProvider"])
    wanted = session.run(None, {session.get_inputs()[0].name: sample})
    if classes and (len(wanted) != 1 or wanted[0].ndim != 2):
        raise ModelError("fine-tuning takes a network with one output of shape (N, classes)")
    with torch.no_grad():
        made = several(module(torch.from_numpy(np.array(sample))))
    for got, want in zip(made, wanted, strict=True):
        off = np.abs(got.numpy() - want).max() / max(np.abs(want).max(), 1e-6)
        if not off <= NEAR:
            raise ModelError(
                f"the ONNX file and PyTorch's module answer otherwise: {off:.1e} of the largest "
                f"output, at most {NEAR:.0e} is allowed"
            )


def seed_of(seed: int, number: int = 0) -> int:
    """Return PyTorch's seed, of which it reads 32 bits, for a part of a work with a number."""
    return (seed * 1_000_003 + number) % 2**32


def weights_of(module: Any) -> Array:
    """Return a copy of a layer's weights."""
    return np.array(module.weight.detach().numpy())


def laid(weights: Array, op_type: str, axis: int) -> Array:
    """Return a layer's weights as its ONNX node has them: a product's may be the other way round.

    Args:
        weights: as PyTorch has them.
        op_type: of the node.
        axis: of output channels in the file.
    """
    turned = op_type != "ConvTranspose" and axis != 0
    return np.ascontiguousarray(weights.T if turned else weights)


def layer_of(module: torch.nn.Module, node: Any) -> Any:
    """Return the convolution or linear layer that onnx2torch made of a node.

    Raises:
        ModelError: it made neither.
    """
    kinds = (torch.nn.modules.conv._ConvNd, torch.nn.Linear)
    whole = module.get_submodule(node.name)
    inner = next((one for one in whole.modules() if isinstance(one, kinds)), None)
    if inner is None:
        raise ModelError(
            f"{node.op_type} {node.output[0]!r} cannot be fine-tuned: onnx2torch "
            "makes neither a convolution nor a linear layer of it"
        )
    return inner
