"""Gradients of ``torch.export`` programs, by PyTorch's autograd."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from simulator.contract import Differentiable, Library, MissingLibrary, ModelError, Pull
from simulator.contract.program import plain_program

torch = Library("torch", distribution="torch", extra="attacks")
F32 = NDArray[np.float32]


class TorchGradients(Differentiable):
    """Goes back by autograd, in FP32 on one thread of the CPU."""

    takes: ClassVar[str] = "torch_export"

    def _open(self, artifact: Path) -> None:
        self._module = self._read(artifact)
        for parameter in self._module.parameters():
            if parameter.device.type != "cpu":
                raise ModelError(
                    f"{artifact}: it is for {parameter.device.type}; export it for cpu"
                )
            parameter.requires_grad_(False)

    def _read(self, artifact: Path) -> Any:
        """Return the model as a module."""
        program = plain_program(artifact)
        try:
            return torch.export.load(program).module()
        except MissingLibrary:
            raise
        except Exception as error:  # PyTorch may raise anything, for one where there is no GPU
            why = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise ModelError(f"{artifact}: PyTorch cannot open it here: {why[:300]}") from error

    def _at(self, values: F32) -> tuple[F32, Pull]:
        given = torch.from_numpy(values.copy()).requires_grad_(True)
        with _one_thread(), torch.enable_grad():
            scores = self._first(given)
        if not scores.requires_grad:
            raise ModelError(f"{self.artifact}: its scores have no gradient to its input")

        def pull(cotangent: F32) -> F32:
            way = torch.from_numpy(cotangent)
            with _one_thread():
                (found,) = torch.autograd.grad(scores, given, way, retain_graph=True)
            gradient: F32 = found.numpy()
            return gradient

        return scores.detach().numpy(), pull

    def _scores(self, values: F32) -> F32:
        with _one_thread(), torch.no_grad():
            found: F32 = self._first(torch.from_numpy(values.copy())).numpy()
        return found

    def _first(self, given: Any) -> Any:
        outputs = self._module(given)
        first = outputs[0] if isinstance(outputs, (tuple, list)) else outputs
        return first.reshape(1, -1)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Compute with one thread: sums of several differ in their last bit.

    PyTorch keeps the number for each thread of Python; a new one starts with what was set last.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
