"""TensorFlow, silent and limited to the calling thread."""

from __future__ import annotations

import importlib.util
import os
from functools import cache
from types import ModuleType
from typing import Any

from simulator.contract import Library


class TensorFlow(Library):
    """The library, under whichever name a package brings it."""

    slow = True

    def load(self) -> ModuleType:
        """Import it."""
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
        os.environ.setdefault(
            "TF_ENABLE_ONEDNN_OPTS", "0"
        )  # it prints when it is on; not used here
        # PyTorch's CUDA builds bring Triton. Loaded behind TensorFlow, whose copy of LLVM it then
        # meets, it ends the process (TensorFlow 2.21, Triton of PyTorch 2.13).
        if self._loaded is None and importlib.util.find_spec("triton") is not None:
            importlib.import_module("triton")
        return super().load()


tensorflow = TensorFlow("tensorflow", distribution="tensorflow-cpu", extra="tensorflow")


@cache
def tf_of_one_thread() -> Any:
    """Import TensorFlow, limited to the calling thread: images already run in parallel."""
    tf = tensorflow.load()
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    return tf
