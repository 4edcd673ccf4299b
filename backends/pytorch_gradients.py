"""Gradients of ``torch.export`` programs, by PyTorch's autograd."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulator.contract import LOGITS, Differentiable, Library, MissingLibrary, ModelError
from simulator.contract.program import plain_program

torch = Library("torch", distribution="torch", extra="attacks")
F32 = NDArray[np.float32]


class TorchGradients(Differentiable):
    """Follows the loss back by autograd, in FP32 on the CPU."""

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

    def _gradient(self, values: F32, truth: int, kind: str) -> tuple[F32, float, F32]:
        given = torch.from_numpy(values.copy()).requires_grad_(True)
        with torch.enable_grad():
            scores = self._first(given)
            if not 0 <= truth < scores.shape[1]:
                raise ValueError(f"the label is class {truth}, and the model knows {scores.shape}")
            logs = torch.log_softmax(scores, 1) if kind == LOGITS else torch.log(scores)
            loss = -logs[0, truth]
            if not loss.requires_grad:
                raise ModelError(f"{self.artifact}: its scores have no gradient to its input")
            (gradient,) = torch.autograd.grad(loss, given)
        return scores.detach().numpy(), float(loss.detach()), gradient.numpy()

    def _scores(self, values: F32) -> F32:
        with torch.no_grad():
            found: F32 = self._first(torch.from_numpy(values.copy())).numpy()
        return found

    def _first(self, given: Any) -> Any:
        outputs = self._module(given)
        first = outputs[0] if isinstance(outputs, (tuple, list)) else outputs
        return first.reshape(1, -1)
