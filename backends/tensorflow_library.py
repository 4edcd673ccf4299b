"""TensorFlow, silent and limited to the calling thread."""

from __future__ import annotations

import os
from functools import cache
from types import ModuleType
from typing import Any

from simulator.contract import Library


class _Silent(Library):
    def load(self) -> ModuleType:
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
        os.environ.setdefault(
            "TF_ENABLE_ONEDNN_OPTS", "0"
        )  # it prints when it is on; not used here
        return super().load()


tensorflow = _Silent("tensorflow", distribution="tensorflow-cpu", extra="tensorflow")


@cache
def tf_of_one_thread() -> Any:
    """Import TensorFlow, limited to the calling thread: images already run in parallel."""
    tf = tensorflow.load()
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    return tf
