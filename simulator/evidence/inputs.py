"""What implementations are tried on: the same on every machine, made without any library."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from simulator.contract import Array, Runtime, Stage, inspect
from simulator.contract.stage import STAGES
from simulator.data import example
from simulator.errors import MissingLibrary, SimulatorError, one_line
from simulator.identify.probes import edges, noise, ramps, zone
from simulator.places import read_sample
from simulator.testing import files, models
from simulator.testing.runtimes import precisions
from simulator.testing.subject import Subject
from simulator.testing.values import CannotMake
from simulator.testing.work import opened, run, work, working

STAGES_RECORDED = (
    "decode", "encode", "convert", "resize", "read", "resample", "stft", "mel", "runtime",
)  # fmt: skip
"""Stages whose results are arrays that depend on the device or its library."""
PHOTOS = 4
"""How many of the built-in images are decoded."""
MOST = 2**24
"""Bytes of a photo."""
_SIZES = ((41, 37), (150, 170), (41, 170), (202, 242))
_FAMILIES = ("work", "conv", "depthwise", "gemm", "matmul", "average_pool", "gelu", "softmax")
_SLOW = ("work", "conv", "gemm")
Outcome = tuple[Array, ...] | str
"""Arrays, or why there are none."""


@dataclass(frozen=True)
class Attempt:
    """One input of a stage, and what an implementation made of it.

    Attributes:
        name: of the input.
        digest: SHA-256 of the input.
        outcome: arrays, or one line that says why there are none.
    """

    name: str
    digest: str
    outcome: Outcome


def subjects(subject: Subject) -> Iterator[Subject]:
    """Yield an offer with each of its values; of a runtime with each of its precisions."""
    yield from precisions(subject) if subject.offer.stage == Stage.RUNTIME else working(subject)


def recorded_kinds(subject: Subject) -> tuple[str, ...]:
    """Return what is recorded of an implementation: a decoder's pixels, its planes, or both."""
    if subject.offer.stage != Stage.DECODE:
        return ("result",)
    return ("rgb", "planes") if getattr(subject.offer.make, "gives_planes", False) else ("rgb",)


def attempts(subject: Subject, what: str) -> list[Attempt]:
    """Let an implementation work on every input of its stage.

    Args:
        subject: the implementation with its options.
        what: one of :func:`recorded_kinds`.

    Raises:
        MissingLibrary: it cannot run here.
    """
    if subject.offer.stage == Stage.RUNTIME:
        return list(_inferred(subject))
    tasks = list(_tasks(subject, what))
    try:
        with work(subject).open() as made:
            return [
                Attempt(name, digest(values), _outcome(partial(do, made)))
                for name, values, do in tasks
            ]
    except (MissingLibrary, CannotMake):
        raise
    except Exception as error:  # a library may raise anything while it opens
        return [Attempt(name, digest(values), one_line(error, 200)) for name, values, _ in tasks]


Task = tuple[str, tuple[Array, ...], Callable[[Any], tuple[Array, ...]]]


def _tasks(subject: Subject, what: str) -> Iterator[Task]:
    if subject.offer.stage == Stage.DECODE:
        for name, data in images().items():
            array = np.frombuffer(data, np.uint8)
            yield name, (array,), partial(_decoded, name, data, what)
    elif subject.offer.stage == Stage.RESIZE:
        picture = files.picture(101, 121)
        for height, width in _SIZES:
            name = f"121x101 to {width}x{height}"
            size = np.array((height, width))
            yield name, (picture, size), partial(_resized, picture, height, width)
    else:
        own = work(subject)
        for number, job in enumerate(own.jobs(), 1):
            yield f"input {number}", job, partial(_done, own, job)


def _decoded(name: str, data: bytes, what: str, decoder: Any) -> tuple[Array, ...]:
    source = inspect(name, data)
    if what == "rgb":
        return (np.array(decoder.rgb(source).rgb),)
    frame = decoder.planes(source)
    return tuple(np.array(plane) for plane in (frame.planes[0], *frame.chroma))


def _resized(picture: Array, height: int, width: int, resizer: Any) -> tuple[Array, ...]:
    return (np.array(resizer.resize(picture, height, width)),)


def _done(own: Any, job: tuple[Array, ...], made: Any) -> tuple[Array, ...]:
    return tuple(np.array(array) for array in own.fresh(made, job))


def networks(families: Sequence[str] = _FAMILIES) -> dict[str, dict[str, tuple[str, Array]]]:
    """Return small networks: for each the names of its inputs, each with its SHA-256 and itself."""
    return {
        model: {
            f"{model} {number}": (
                hashlib.sha256(f"{model} {digest((x,))}".encode()).hexdigest(), x
            )
            for number, x in enumerate(models.inputs(model)[:2], 1)
        }
        for model in families
    }  # fmt: skip


def _inferred(subject: Subject) -> Iterator[Attempt]:
    for model, given in networks(_SLOW if subject.slow else _FAMILIES).items():
        try:
            with opened(subject, model) as runtime:
                for name, (sha, x) in given.items():
                    yield Attempt(name, sha, _outcome(partial(_run, runtime, x)))
        except MissingLibrary:
            raise
        except CannotMake:  # nobody here makes this file: that says nothing of the runtime
            continue
        except Exception as error:  # a library may raise anything while it reads a model
            for name, (sha, _) in given.items():
                yield Attempt(name, sha, one_line(error, 200))


def _run(runtime: Runtime, x: Array) -> tuple[Array, ...]:
    return (run(runtime, x),)


def _outcome(do: Callable[[], tuple[Array, ...]]) -> Outcome:
    try:
        return do()
    except MissingLibrary:
        raise
    except Exception as error:  # what it refuses is a result too
        return one_line(error, 200)


@cache
def images() -> Mapping[str, bytes]:
    """Return the JPEG files that decoders get: those made here, and some of the built-in photos."""
    layouts = {"444": (1, 1), "422": (1, 2), "440": (2, 1), "420": (2, 2)}
    found = {
        f"edges_{name}.jpg": files.jpeg(edges(121, 163), layout).data
        for name, layout in layouts.items()
    }
    found |= {
        "edges_even_420.jpg": files.jpeg(edges(120, 160), (2, 2)).data,
        "zone.jpg": files.jpeg(zone(160, 200), (2, 2)).data,
        "ramps.jpg": files.jpeg(ramps(120, 160), (1, 1)).data,
        "ramps_420.jpg": files.jpeg(ramps(120, 160), (2, 2)).data,
        "noise.jpg": files.jpeg(noise(96, 96), (1, 1)).data,
        "noise_420.jpg": files.jpeg(noise(96, 112), (2, 2)).data,
        "gray.jpg": files.jpeg(zone(96, 112)[..., 0]).data,
        "exif_3.jpg": files.jpeg(edges(80, 120), (2, 2), 3).data,
        "exif_6.jpg": files.jpeg(edges(80, 120), (2, 2), 6).data,
    }
    try:
        photos = example.images().items[:PHOTOS]
    except SimulatorError:
        photos = ()
    return found | {f"photo {item.name}": read_sample(item.path, MOST) for item in photos}


def digest(arrays: tuple[Array, ...]) -> str:
    """Return the SHA-256 of types, shapes and bytes of arrays."""
    found = hashlib.sha256()
    for array in arrays:
        found.update(f"{array.dtype}{array.shape}".encode())
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()


def is_recorded(stage: str) -> bool:
    """Whether the results of a stage are recorded."""
    return stage in STAGES_RECORDED and stage in STAGES.names
