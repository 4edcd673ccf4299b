"""Test-time adaptation in PyTorch: TENT, and batch normalization by the statistics of the batch."""

from __future__ import annotations

import io
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from backends.onnx_norms import to_inputs
from backends.pytorch_converters import onnx2torch, plain, registered, torch
from backends.quiet import quiet
from simulator.contract import (
    Above,
    Adapter,
    Admits,
    Array,
    AtLeast,
    MissingLibrary,
    ModelError,
    Offer,
    Stage,
)
from simulator.errors import one_line

NEAR = 1e-3
"""Of the largest output: how far the answers of a batch may be from those of single samples."""


class TorchAdapter(Adapter):
    """Every BatchNormalization normalizes by the mean and the variance of the batch.

    That is all of ``batch_norm``. ``tent`` also lowers the mean entropy of the answers to the
    batch: scales and shifts of all normalizations learn, nothing else does. The answers are those
    before the last step of the batch, as in the authors' code, so that a step shows in the next
    batch, and ``reset: batch`` with one step answers as ``batch_norm`` does. SGD has Nesterov's
    momentum of 0.9, Adam betas of 0.9 and 0.999, as there.
    """

    runs_in: ClassVar[tuple[str, ...]] = ("pytorch",)

    def open(
        self, source: Path, sample: Array, scores: str | None = None, probabilities: bool = False
    ) -> None:
        """Convert the file, and check that it takes several samples at once."""
        torch.set_num_threads(self.options["threads"])
        self._module, self._names, first = _converted(source)
        self._first = [torch.from_numpy(value.copy()) for value in first]
        self._affine = [value.clone().requires_grad_(self._learns) for value in self._first]
        norms = [module for module in self._module.modules() if _is_batch_norm(module)]
        if not (self._affine if self._learns else norms):
            raise ModelError(f"{source}: {_nothing(self._learns)}")
        if self._learns and scores not in self._names:
            raise ModelError(
                "tent lowers the entropy of a classifier's answers, and this model is none; use "
                "method: batch_norm"
            )
        self._scores, self._probabilities = scores or "", probabilities
        shapes = self._check_batches(source, sample)
        axes = len(shapes[scores]) if scores else 0
        if self._learns and axes != 2:
            raise ModelError(
                f"tent takes scores of shape (N, classes), and {scores!r} has {axes} dimensions; "
                "use method: batch_norm"
            )
        for norm in norms:
            norm.train()
        for parameter in self._module.parameters():
            parameter.requires_grad_(False)
        self._restart()

    @property
    def _learns(self) -> bool:
        return bool(self.options["method"] == "tent")

    def answer(self, batch: Array) -> dict[str, Array]:
        """Answer, and learn."""
        torch.set_num_threads(self.options["threads"])
        values = torch.from_numpy(np.array(batch))
        if self._learns and self.options["reset"] == "batch":
            self._restart()
        found: dict[str, Any] = {}
        for _ in range(self.options["steps"] if self._learns else 1):
            with torch.set_grad_enabled(self._learns):
                found = self._outputs(values)
            if self._learns:
                self._step(found[self._scores])
        return {name: out.detach().numpy().copy() for name, out in found.items()}

    def state(self) -> bytes:
        """Return scales, shifts and the optimizer."""
        held = io.BytesIO()
        learned = self._optimizer.state_dict() if self._learns else {}
        torch.save({"affine": [p.detach() for p in self._affine], "optimizer": learned}, held)
        return held.getvalue()

    def restore(self, state: bytes) -> None:
        """Take them back."""
        found = torch.serialization.load(io.BytesIO(state), weights_only=True)
        self._put(found["affine"])
        if self._learns:
            self._optimizer.load_state_dict(found["optimizer"])

    def _restart(self) -> None:
        self._put(self._first)
        if not self._learns:
            return
        rate = self.options["learning_rate"]
        if self.options["optimizer"] == "adam":
            self._optimizer = torch.optim.Adam(self._affine, rate)
        else:
            self._optimizer = torch.optim.SGD(self._affine, rate, momentum=0.9, nesterov=True)

    def _put(self, values: Any) -> None:
        with torch.no_grad():
            for parameter, value in zip(self._affine, values, strict=True):
                parameter.copy_(value)

    def _step(self, scores: Any) -> None:
        if self._probabilities:
            entropy = -(scores * scores.clamp(min=1e-12).log()).sum(1)
        else:
            entropy = -(scores.softmax(1) * scores.log_softmax(1)).sum(1)
        loss = entropy.mean()
        if not torch.isfinite(loss):
            raise ModelError(
                "the entropy of a batch is not a number any more; use a smaller learning_rate"
            )
        self._optimizer.zero_grad()
        loss.backward()
        self._optimizer.step()

    def _outputs(self, values: Any) -> dict[str, Any]:
        try:
            with warnings.catch_warnings():  # of how onnx2torch cuts tensors
                warnings.simplefilter("ignore")
                outputs = self._module(values, *self._affine)
        except Exception as error:  # PyTorch may raise anything
            why = one_line(error, 200)
            hint = "one value per channel has no variance; use a larger batch"
            more = hint if "more than 1 value" in why else "see the shapes of the ONNX file"
            raise ModelError(
                f"a batch of {len(values)} cannot be answered: {why}: {more}"
            ) from error
        several = outputs if isinstance(outputs, (tuple, list)) else (outputs,)
        return dict(zip(self._names, several, strict=True))

    def _check_batches(self, source: Path, sample: Array) -> dict[str, Any]:
        """Refuse a network that answers a batch otherwise than its samples; return shapes."""
        two = torch.from_numpy(np.concatenate([sample[:1], sample[-1:] + np.float32(0.5)]))
        with torch.no_grad():
            alone = [self._outputs(one[None]) for one in two]
            try:
                together = self._outputs(two)
            except ModelError:
                together = {}
        for name in self._names:
            want = torch.cat([one[name] for one in alone])
            got = together.get(name)
            if want.isnan().any():
                raise ModelError(f"{source}: the output {name!r} is not a number")
            far = NEAR * float(want.abs().max().clamp(min=1e-6))
            fits = got is not None and got.shape == want.shape
            if not (fits and float((got - want).abs().max()) <= far):
                raise ModelError(
                    f"{source}: it takes one sample at a time, and adaptation takes batches; "
                    "export it with a free first dimension"
                )
        return {name: out.shape for name, out in together.items()}


def _converted(source: Path) -> tuple[Any, list[str], list[Array]]:
    """Return the network in evaluation mode, the names of its outputs, and its scales and shifts.

    These are inputs of the network.
    """
    import onnx

    registered()
    try:
        model = onnx.load(str(source))
        names = [port.name for port in model.graph.output]
        model = plain(model)
        affine = list(to_inputs(model).values())
        with quiet():
            return onnx2torch.convert(model).eval(), names, affine
    except MissingLibrary:
        raise
    except Exception as error:  # a converter may raise anything
        why = f"{type(error).__name__}: {one_line(error, 300)}"
        raise ModelError(f"{source}: onnx2torch cannot convert it: {why}") from error


def _is_batch_norm(module: Any) -> bool:
    """OnnxBatchNorm is one whose scale and shift are inputs, PyTorch's own one without any."""
    own = torch.nn.modules.batchnorm._BatchNorm
    return isinstance(module, own) or type(module).__name__ == "OnnxBatchNorm"


def _nothing(learns: bool) -> str:
    missing = (
        "no normalization in it has a scale or a shift, so tent has nothing to learn"
        if learns
        else "it has no BatchNormalization, so no statistics adapt (method: tent learns the scales "
        "of other normalizations)"
    )
    return (
        f"{missing}; most exporters fold BatchNormalization: export again with "
        "training=torch.onnx.TrainingMode.PRESERVE"
    )


_ALL: Mapping[str, Admits] = {
    "device": ("cpu",),
    "threads": AtLeast(1),
    "mode": ("eager",),
    "compute": ("fp32",),
    "batch": AtLeast(1),
    "order": ("shuffled", "listed"),
    "seed": AtLeast(0),
}
_LEARNED: Mapping[str, Admits] = {
    "optimizer": ("adam", "sgd"),
    "steps": AtLeast(1),
    "learning_rate": Above(0),
    "reset": ("never", "batch"),
}
_TENT = "https://arxiv.org/abs/2006.10726, https://github.com/DequanWang/tent"

OFFERS = (
    Offer(Stage.ADAPT, {**_ALL, "method": ("tent",), **_LEARNED}, TorchAdapter, source=_TENT),
    Offer(Stage.ADAPT, {**_ALL, "method": ("batch_norm",)}, TorchAdapter, source=_TENT),
)
WORDS = {
    "method": "tent, or batch_norm: the statistics of the batch, and nothing learned",
    "batch": "samples that are answered at once",
    "optimizer": "adam, or sgd with Nesterov's momentum of 0.9",
    "steps": "of the optimizer, for each batch",
    "learning_rate": "of the optimizer",
    "reset": "batch: each batch begins with the file's network again",
    "order": "of the samples: drawn by the seed, or as the data lists them",
    "seed": "of the order shuffled",
}
