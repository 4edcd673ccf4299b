"""A module of the user's that learns, named by its Python path."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

from backends.learning.learner import DECAY, Learner, hold, seed_of
from backends.learning.network import BATCHES, trains
from backends.pytorch_module import export
from simulator.contract import Array, ModelError, Options
from simulator.errors import one_line


class ModuleNetwork(Learner):
    """All parameters learn that need gradients; those of one axis do not decay.

    Args:
        source: a JSON file with ``module``, the path ``package.file:factory``, and ``weights``,
            a state dict or null.
        calibration: (N, ...) float32.
        options: of the tuner.

    Raises:
        ModelError: it cannot be made, or does not take the inputs.
    """

    def __init__(self, source: Path, calibration: Array, options: Options) -> None:
        super().__init__(options)
        try:
            named = json.loads(source.read_text("utf-8"))
            self._name, weights = named["module"], named["weights"]
        except (ValueError, KeyError, TypeError) as error:
            raise ModelError(f"{source}: it names no module and no weights") from error
        self.module = made(self._name, weights, options["seed"]).eval()
        self._sample = np.array(calibration[:1])
        self._try()
        norms = any(isinstance(module, BATCHES) for module in self.module.modules())
        if norms and options["statistics"] == "learn":
            self.fewest = 2
        wanted = [parameter for parameter in self.module.parameters() if parameter.requires_grad]
        if not wanted:
            raise ModelError(f"{self._name}: no parameter needs gradients")
        decaying = [one for one in wanted if one.ndim > 1]
        others = [one for one in wanted if one.ndim <= 1]
        self.learn([{"params": decaying, "weight_decay": DECAY}, {"params": others}])

    def _try(self) -> None:
        try:
            with torch.no_grad():
                answer = self.module(torch.from_numpy(self._sample))
        except Exception as error:  # a module of the user's may raise anything
            shape, why = self._sample.shape, one_line(error, 200)
            raise ModelError(f"{self._name} does not take an input of {shape}: {why}") from error
        if not isinstance(answer, torch.Tensor) or answer.ndim != 2:
            raise ModelError(f"{self._name} must answer with one tensor of shape (N, classes)")

    def begin(self) -> None:
        """Train; normalizations of batches only if their statistics are learned."""
        trains(self.module, self._options["statistics"])

    def end(self) -> None:
        """Answer as it is when deployed."""
        self.module.eval()

    def write(self, target: Path) -> None:
        """Write the ONNX file, with normalizations as they are and a free batch size."""
        modes: dict[str, Any] = {
            "do_constant_folding": False,
            "training": torch.onnx.TrainingMode.PRESERVE,
        }
        export(self.module, self._sample, target, self._name, **modes)
        hold(self.module, target.read_bytes(), self._sample)


def made(path: str, weights: str | None, seed: int) -> Any:
    """Return the module of a Python path, found from the current folder too.

    Args:
        path: ``package.file:factory``; the factory takes no arguments.
        weights: a file with its state dict; None leaves it as the factory makes it.
        seed: of what the factory draws.

    Raises:
        ModelError: it cannot be made.
    """
    place, _, name = path.partition(":")
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed_of(seed))
            module = getattr(importlib.import_module(place), name)()
        if weights is not None:
            module.load_state_dict(torch.load(weights, map_location="cpu", weights_only=True))
    except Exception as error:  # the user's code may raise anything
        why = f"{type(error).__name__}: {one_line(error, 200)}"
        raise ModelError(f"{path} cannot be made: {why}") from error
    finally:
        sys.path.remove(here)
    if not isinstance(module, torch.nn.Module):
        raise ModelError(f"{path} makes no torch.nn.Module, but a {type(module).__name__}")
    return module
