"""TensorFlow, silent and limited to the calling thread."""

from __future__ import annotations

import contextlib
import importlib.util
import os
from functools import cache
from types import ModuleType
from typing import Any

from backends.quiet import quiet
from simulator.contract import Library, ProcessWideError


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
    """Import TensorFlow, limited to the calling thread: images already run in parallel.

    Where a network has begun with more threads, it is left with these.
    """
    tf = tensorflow.load()
    with contextlib.suppress(RuntimeError):
        _set_threads(tf, 1)
    return tf


def tf_for_networks(threads: int, onednn: bool) -> Any:
    """Import TensorFlow with so many threads for an operator, and with oneDNN or without.

    Raises:
        ProcessWideError: the process has begun with others.
    """
    if not tensorflow.loaded:
        os.environ["TF_ENABLE_ONEDNN_OPTS"] = str(int(onednn))
    with quiet():
        tf = tensorflow.load()
    if onednn_is_on() != onednn:
        raise _begun("oneDNN", "on" if not onednn else "off")
    try:
        _set_threads(tf, threads)
    except RuntimeError as error:
        used = tf.config.threading.get_intra_op_parallelism_threads()
        raise _begun("threads", str(used)) from error
    return tf


def onednn_is_on() -> bool:
    """Return whether this process's TensorFlow runs operators in oneDNN."""
    port = importlib.import_module("tensorflow.python.util._pywrap_util_port")
    return bool(port.IsMklEnabled())


def _set_threads(tf: Any, threads: int) -> None:
    if tf.config.threading.get_intra_op_parallelism_threads() != threads:
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(1)


def _begun(what: str, used: str) -> ProcessWideError:
    return ProcessWideError(
        f"TensorFlow has one setting of {what} for the whole process, and has begun with {used}; "
        "use one value in all stacks, and in front of a network no decoder or resizer of "
        "TensorFlow beside oneDNN"
    )
