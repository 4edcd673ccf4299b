"""Two ways to run one DALI operator on one image: a pipeline, or the dynamic mode.

Both run the same operators and give the same bits (tested). An operator is written once, as
``apply(ops, **inputs)``, where ``ops`` is ``nvidia.dali.fn`` or
``nvidia.dali.experimental.dynamic``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from simulator.contract import U8, Array, Library, SampleError


def _library(module: str) -> Library:
    return Library(
        module, distribution="nvidia-dali-cuda130", extra="dali", others=("nvidia-dali-cuda120",)
    )


dali = _library("nvidia.dali")
fn = _library("nvidia.dali.fn")
types = _library("nvidia.dali.types")
ndd = _library("nvidia.dali.experimental.dynamic")

Apply = Callable[..., Any]


class Pipelines(threading.local):
    """One one-sample pipeline per thread: building takes 1-2 ms, running needs no lock.

    Args:
        apply: makes the operator graph; called once per thread.
        gpu: whether the graph has operators on the first GPU.
    """

    def __init__(self, apply: Apply, *, gpu: bool) -> None:
        self._apply = apply
        self._device = 0 if gpu else None
        self._pipeline: Any = None

    def run(self, **feeds: Array) -> U8:
        """Run this thread's pipeline; after a failure the next call builds a new one."""
        pipeline, self._pipeline = self._pipeline or self._built(feeds), None
        try:
            for name, array in feeds.items():
                pipeline.feed_input(name, [array], layout=_layout(array))
            # Copy, because the pipeline reuses its output buffer.
            out: U8 = np.array(pipeline.run()[0].as_cpu().at(0))
        except RuntimeError as error:
            raise SampleError(f"DALI: {_reason(error)}") from error
        self._pipeline = pipeline
        return out

    def _built(self, feeds: dict[str, Array]) -> Any:
        pipeline = dali.Pipeline(
            batch_size=1,
            num_threads=1,
            device_id=self._device,
            prefetch_queue_depth=1,
            exec_async=False,
            exec_pipelined=False,
        )
        with pipeline:
            sources = {name: fn.external_source(name=name) for name in feeds}
            pipeline.set_outputs(self._apply(fn, **sources))
        pipeline.build()
        return pipeline


class Dynamic:
    """The dynamic mode: every call runs at once, without a graph.

    It takes 1.2-1.3 times as long as a pipeline and does not scale over Python threads
    (measured).

    Args:
        apply: calls the operator.
    """

    def __init__(self, apply: Apply) -> None:
        self._apply = apply
        ndd.set_num_threads(1)

    def run(self, **feeds: Array) -> U8:
        """Call the operator and wait for its result."""
        tensors = {
            name: ndd.tensor(array, layout=_layout(array) or None) for name, array in feeds.items()
        }
        try:
            out: U8 = np.array(self._apply(ndd, **tensors).cpu())
        except RuntimeError as error:
            raise SampleError(f"DALI: {_reason(error.__cause__ or error)}") from error
        return out


def _layout(array: Array) -> str:
    return "HWC" if array.ndim == 3 else ""


def _reason(error: BaseException) -> str:
    """Return the cause from DALI's report, which also quotes our own source."""
    message = str(error)
    lines = [
        line.strip(" :") for line in (message.partition("encountered:")[2] or message).splitlines()
    ]
    return next(filter(None, lines), "the operator failed without saying why")
