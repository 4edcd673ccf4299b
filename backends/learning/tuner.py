"""Fine-tuning in FP32: networks that learn from the pixels of several stacks."""

from __future__ import annotations

from pathlib import Path

from backends.learning.network_tuner import NetworkTuner
from backends.ort.library import ort
from simulator.contract import Array, AtLeast, Backend, Library, Offer, Stage

torch = Library("torch", distribution="torch", extra="mitigation")


class TorchFineTuner(NetworkTuner):
    """SGD with momentum 0.9, a cosine schedule over the epochs, weight decay of 1e-4.

    Its source is an ONNX file, or a JSON file that names a module by its Python path. With
    ``statistics: keep``, normalizations of batches normalize by what the file has. ``threads`` is
    set for the process: sums of another number of threads differ in their last bits.
    """

    def open(self, source: Path, calibration: Array) -> None:
        """Convert the file by onnx2torch and hold it against ONNX Runtime, or make the module."""
        torch.set_num_threads(self.options["threads"])
        if source.suffix == ".json":
            from backends.learning.module import ModuleNetwork

            self._network = ModuleNetwork(source, calibration, self.options)
        else:
            from backends.learning.network import OnnxNetwork

            self._network = OnnxNetwork(source, calibration, self.options)


BACKEND = Backend(
    name="torch_finetuner",
    summary="FP32 networks that learn, in PyTorch: simulate finetune",
    library=torch,
    companions=(ort,),
    offers=(
        Offer(
            Stage.TUNE,
            {
                "statistics": ("learn", "keep"),
                "epochs": AtLeast(1),
                "batch": AtLeast(1),
                "threads": AtLeast(1),
                "output": ("logits", "probabilities"),
            },
            TorchFineTuner,
            source="https://pytorch.org/docs/stable/generated/torch.optim.SGD.html",
        ),
    ),
)
