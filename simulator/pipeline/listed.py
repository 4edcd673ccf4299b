"""Samples that a program takes at once: whoever comes first asks for its neighbours as well."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from simulator.contract import Array, SampleFile, clock
from simulator.contract.recipe import Context
from simulator.data.folder import Item
from simulator.errors import SampleError
from simulator.pipeline.sample_file import file_of

Tensors = Array | Mapping[str, Array]


@dataclass(slots=True)
class _Call:
    """One call, of some neighbours; what nobody has asked for yet is in *found*."""

    turn: threading.Lock = field(default_factory=threading.Lock)
    found: dict[str, Tensors] | None = None
    share: int = 0


class Listed:
    """Asks for several samples at once, and gives each when it is asked for.

    A sample's time is that of its call, divided by the samples of the call. Where a call fails, its
    samples are asked for one by one, so that one that cannot be read costs no other.

    Args:
        several: takes a list of :class:`SampleFile`, and returns a list.
        items: in the order in which they run.
        size: samples of a call.
    """

    def __init__(self, several: Callable[[Any], Any], items: Sequence[Item], size: int) -> None:
        self._several, self._items, self._size = several, items, size
        self._places = {item.name: at for at, item in enumerate(items)}
        self._calls: dict[int, _Call] = {}
        self._lock = threading.Lock()

    def __call__(self, context: Context) -> Tensors:
        """Return what is made of a sample.

        Raises:
            SampleError: nothing is.
        """
        start = time.perf_counter_ns()
        sample = file_of(context)
        at = self._places.get(context.sample)
        if at is None or sample.path is None:
            return self._alone(sample)
        with self._lock:
            call = self._calls.setdefault(at // self._size, _Call())
        excluded = clock.excluded()
        with call.turn:
            if call.found is None:
                self._ask(call, at // self._size)
            found = call.found.pop(sample.name, None) if call.found else None
        if found is None:
            return self._alone(sample)
        spent = time.perf_counter_ns() - start - (clock.excluded() - excluded)
        clock.exclude(spent - call.share)
        return found

    def _ask(self, call: _Call, number: int) -> None:
        some = self._items[number * self._size :][: self._size]
        files = [SampleFile(one.name, one.path.absolute(), None)
                 for one in some if isinstance(one.path, Path)]  # fmt: skip
        start, excluded = time.perf_counter_ns(), clock.excluded()
        call.found = {}
        try:
            made = self._several(files)
        except SampleError:
            return
        names = (file.name for file in files)
        call.found = dict(zip(names, made, strict=True))
        spent = time.perf_counter_ns() - start - (clock.excluded() - excluded)
        call.share = spent // max(len(files), 1)

    def _alone(self, sample: SampleFile) -> Tensors:
        (found,) = self._several([sample])
        tensors: Tensors = found
        return tensors
