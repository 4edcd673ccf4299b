"""Quantization-aware fine-tuning by DoReFa, PACT and LSQ, in PyTorch."""

from __future__ import annotations

from pathlib import Path

from backends.learning.network_tuner import NetworkTuner
from backends.ort.library import ort
from simulator.contract import Admits, Array, AtLeast, Backend, Evidence, Library, Offer, Stage

torch = Library("torch", distribution="torch", extra="quantize")


class TorchTuner(NetworkTuner):
    """SGD with momentum 0.9, a cosine schedule over the epochs, weight decay of 1e-4.

    It starts where the quantizer ``fake_quant`` ends, with LSQ's own first steps. The learning
    rate is that of each epoch. Normalizations keep their statistics, so that the file stays as it
    is but for the layers. ``threads`` is set for the process: sums of another number of threads
    differ in their last bits.
    """

    def open(self, source: Path, calibration: Array) -> None:
        """Convert the file by onnx2torch; hold it against ONNX Runtime."""
        from backends.fake_quant.network import Network

        torch.set_num_threads(self.options["threads"])
        own = {"step": "initial"} if self.options["method"] == "lsq" else {}
        self._network = Network(source, calibration, {**self.options, **own})


_OPTIONS: dict[str, Admits] = {
    "bits": (8, 6, 4, 2),
    "epochs": AtLeast(1),
    "batch": AtLeast(1),
    "threads": AtLeast(1),
    "output": ("logits", "probabilities"),
}

BACKEND = Backend(
    name="fake_quant_torch",
    summary="DoReFa, PACT and LSQ, learned in PyTorch: simulate quantize",
    library=torch,
    companions=(ort,),
    offers=tuple(
        Offer(
            Stage.TUNE,
            {**_OPTIONS, "method": (method,), "weights": weights},
            TorchTuner,
            Evidence.EMULATED,
            "arXiv 1606.06160, 1805.06085, 1902.08153",
        )
        for method, weights in (
            ("lsq", ("per_tensor", "per_channel")),
            ("dorefa", ("per_tensor",)),
            ("pact", ("per_tensor",)),
        )
    ),
)
