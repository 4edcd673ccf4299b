"""Faults that every stage can have, made of the correct implementation and its raw method."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

import numpy as np
from correct import CORRECT

from simulator.contract import Frame, Sound, Stage
from simulator.contract.raw import Raw

RAW = {
    Stage.DECODE: "_rgb",
    Stage.VIDEO: "_rgb",
    Stage.RESIZE: "_resize",
    Stage.ENCODE: "_encode",
    Stage.CONVERT: "_convert",
    Stage.RUNTIME: "_run",
    Stage.READ: "read",
    Stage.RESAMPLE: "resample",
    Stage.STFT: "spectrum",
    Stage.MEL: "matrix",
    Stage.VOCODE: "wave",
    "tokenize": "encode",
    "sensor": "_expose",
    "develop": "_develop",
}


# --- faults that every stage can have -----------------------------------------------------------


def arrays(value):
    """The arrays in what a raw method takes or gives."""
    if isinstance(value, np.ndarray):
        return [value]
    if isinstance(value, Frame):
        return list(value.planes)
    if isinstance(value, Sound | Raw):
        return [value.samples if isinstance(value, Sound) else value.plane]
    if isinstance(value, str):
        return [np.frombuffer(value.encode(), np.uint8)]
    if isinstance(value, list):
        return [np.array(value, np.int64)]
    return list(value.values()) if isinstance(value, dict) else []


def rebuilt(value, new):
    if isinstance(value, np.ndarray):
        return new[0]
    if isinstance(value, Frame):
        return value.with_planes(*new)
    if isinstance(value, Sound | Raw):
        name = "samples" if isinstance(value, Sound) else "plane"
        return replace(value, **{name: new[0]})
    if isinstance(value, str):
        return new[0].tobytes().decode()
    if isinstance(value, list):
        return new[0].tolist()
    return dict(zip(value, new, strict=True))


def perturbed(value):
    new = [np.array(array) for array in arrays(value)]
    new[0].flat[0] += 1
    return rebuilt(value, new)


def writes_to_its_input(stage, raw):
    def method(self, given, *rest):
        out = raw(self, given, *rest)
        for array in arrays(given):
            if array.flags.writeable:
                array[...] = 0
        return out

    return method


def lends_its_buffer(stage, raw):
    local = threading.local()

    def method(self, given, *rest):
        out = raw(self, given, *rest)
        buffers = local.__dict__.setdefault("buffers", {})
        lent = []
        for number, array in enumerate(arrays(out)):
            buffer = buffers.setdefault((number, array.shape), np.empty_like(array))
            buffer[...] = array
            lent.append(buffer)
        return rebuilt(out, lent)

    return method


def reads_raw_memory(stage, raw):
    def method(self, given, *rest):
        read = [a if a.flags.c_contiguous else np.zeros(a.shape, a.dtype) for a in arrays(given)]
        return raw(self, rebuilt(given, read), *rest)

    return method


def shares_its_state(stage, raw):
    def method(self, given, *rest):
        out = raw(self, given, *rest)
        return out if type(self).latest is self else perturbed(out)

    return method


def drifts(stage, raw):
    def method(self, given, *rest):
        seen = b"".join(a.tobytes() for a in arrays(given))
        seen = seen or getattr(given, "data", getattr(given, "pts", rest))
        before, times = self.__dict__.get("seen", (None, 0))
        self.seen = (seen, times + 1 if seen == before else 1)
        out = raw(self, given, *rest)
        return perturbed(out) if self.seen[1] > 12 else out

    return method


def shares_its_scratch(stage, raw):
    def method(self, given, *rest):
        alone = self.__dict__.setdefault("alone", threading.active_count())
        mine, until = (given, *rest), time.monotonic() + 0.1
        self.scratch = mine
        while self.scratch is mine and threading.active_count() > alone:  # another is on its way
            if time.monotonic() > until:
                break
            time.sleep(0.001)
        return raw(self, *self.scratch)

    return method


def leaks(stage, raw):
    def method(self, given, *rest):
        out = raw(self, given, *rest)
        copies = [np.array(a) for a in arrays(out) for _ in range(4)]  # heard in a large process
        self.__dict__.setdefault("kept", []).append(copies)
        return out

    return method


def fault(stage, make):
    """The correct implementation of a stage, with a raw method made of its own."""
    correct, name = CORRECT[stage][0], RAW[stage]
    if make is lends_its_buffer and stage == Stage.RUNTIME:
        name = "run"  # the contract copies what _run gives

    class Broken(correct):
        def __init__(self, *arguments):
            type(self).latest = self
            super().__init__(*arguments)

    setattr(Broken, name, make(stage, getattr(correct, name)))
    Broken.__name__ = make.__name__
    return Broken


SHARED = {
    "inputs_are_left_alone": writes_to_its_input,
    "outputs_are_kept": lends_its_buffer,
    "any_strides_will_do": reads_raw_memory,
    "instances_do_not_mix": shares_its_state,
    "the_same_every_time": drifts,
    "threads_see_the_same": shares_its_scratch,
    "nothing_leaks": leaks,
}


def refuses_what_it_admits(stage):
    """Admits ``extra: b``, and cannot be built with it."""

    class Broken(CORRECT[stage][0]):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            {"a": 1}[self.options["extra"]]

    return Broken, {"extra": ("a", "b")}


class Anything(tuple):
    """A value like any other: it admits whatever is written."""

    __slots__ = ()

    def __contains__(self, value):
        return True


def admits_anything(stage):
    return CORRECT[stage][0], {"extra": Anything(("a",))}
