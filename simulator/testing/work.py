"""How the checks shared by all stages run an implementation: arrays in, arrays out."""

from __future__ import annotations

import hashlib
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from simulator.contract import (
    U8,
    Array,
    Frame,
    Matrix,
    PixelFormat,
    Range,
    Runtime,
    Stage,
    inspect,
    rgb_frame,
    yuv_frame,
)
from simulator.contract.image_formats import IMAGE_FORMATS
from simulator.contract.model_format import suffix_of
from simulator.contract.stage import STAGES, named
from simulator.testing import files, loads, models
from simulator.testing.subject import Failed, Subject, expect
from simulator.testing.workshop import calibration, refusing, without_trace

Job = tuple[Array, ...]


class Work(ABC):
    """Runs implementations of one stage."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject

    @contextmanager
    def open(self) -> Iterator[Any]:
        """Build the implementation, and close it at the end."""
        with self._open() as made:
            yield made

    def jobs(self) -> list[Job]:
        """Return four different inputs, the same every time, in new arrays."""
        return self._jobs()

    def do(self, made: Any, job: Job) -> Job:
        """Let an implementation do one job, on the arrays of the job themselves."""
        return self._do(made, job)

    def fresh(self, made: Any, job: Job) -> Job:
        """Do one job on copies."""
        return self.do(made, tuple(np.array(array) for array in job))

    @contextmanager
    def _open(self) -> Iterator[Any]:
        yield self.subject.make()

    @abstractmethod
    def _jobs(self) -> list[Job]: ...

    @abstractmethod
    def _do(self, made: Any, job: Job) -> Job: ...


class Decoding(Work):
    """A job is the bytes of a JPEG, or of a decoder's own format that comes with a writer."""

    def _jobs(self) -> list[Job]:
        format = self.subject.offer.make.reads[0]
        own = IMAGE_FORMATS[format].example if format in IMAGE_FORMATS else None
        if own is not None:
            pictures = (files.picture(96, 112, seed=seed) for seed in range(4))
            return [(np.frombuffer(own(picture), np.uint8),) for picture in pictures]
        return [(np.frombuffer(_file(seed), np.uint8),) for seed in range(4)]

    def _do(self, made: Any, job: Job) -> Job:
        image = inspect("job", job[0].tobytes())
        return (made.raw(image).plane if made.gives_raw else made.rgb(image).rgb,)


class OfPictures(Work):
    """A job is an RGB picture of 96x112."""

    def _jobs(self) -> list[Job]:
        return [(files.picture(96, 112, seed=seed),) for seed in range(4)]


class Resizing(OfPictures):
    """The result is a picture of 80x72."""

    def _do(self, made: Any, job: Job) -> Job:
        return (made.resize(job[0], 80, 72),)


class Encoding(OfPictures):
    """The result are the planes of a YUV picture."""

    def _do(self, made: Any, job: Job) -> Job:
        return tuple(made.encode(rgb_frame(job[0])).planes)


class Converting(Work):
    """A job is the planes of a YUV picture of 96x112."""

    def _jobs(self) -> list[Job]:
        return [yuv(self.subject, 96, 112, seed).planes for seed in range(4)]

    def _do(self, made: Any, job: Job) -> Job:
        format = PixelFormat(self.subject.options["format"])
        return (made.convert(Frame(format, job, *made.assumes)).rgb,)


class Running(Work):
    """A job is the input of a 1x1 convolution, 1x2x64x64."""

    model = "work"

    @contextmanager
    def _open(self) -> Iterator[Any]:
        with opened(self.subject, self.model) as runtime:
            yield runtime

    def _jobs(self) -> list[Job]:
        return [(x,) for x in models.inputs(self.model)]

    def _do(self, made: Any, job: Job) -> Job:
        return tuple(made.run({made.inputs[0].name: job[0]}).values())


class Making(Work):
    """A job is nothing: exporters, casts and quantizers make a file of a small model."""

    def __init__(self, subject: Subject) -> None:
        super().__init__(subject)
        self.model = getattr(subject.offer.make, "proved_on", "conv")

    def _jobs(self) -> list[Job]:
        return [()] * 4

    def _do(self, made: Any, job: Job) -> Job:
        target = make(self.subject, made, source(self.subject, self.model))
        files = sorted(file for file in (target, *target.rglob("*")) if file.is_file())
        return (np.frombuffer(b"".join(file.read_bytes() for file in files), np.uint8),)


class Loading(Work):
    """A job is the seed of a load; the result is the order of the samples."""

    def _jobs(self) -> list[Job]:
        return [(np.array([seed]),) for seed in range(4)]

    def _do(self, made: Any, job: Job) -> Job:
        logs = self.subject.workshop.scratch("logs")
        return (np.array(loads.order(made, int(job[0][0]), logs)),)


class Filtering(OfPictures):
    """For a stage whose first call makes a frame of a frame."""

    def _do(self, made: Any, job: Job) -> Job:
        call = STAGES[self.subject.offer.stage].calls[0]
        return tuple(getattr(made, call)(rgb_frame(job[0])).planes)


def work(subject: Subject) -> Work:
    """Return the `Work` of a subject's stage."""
    reference = STAGES[subject.offer.stage].work
    found: type[Work] = named(reference) if reference else Filtering
    return found(subject)


def working(subject: Subject) -> Iterator[Subject]:
    """Yield the variants of a subject that do their first job; another check reports the rest."""
    for alternatives in subject.variants():
        for variant in alternatives:
            if works(variant):
                yield variant
                break


def works(variant: Subject) -> bool:
    """Whether a variant does its first job."""
    try:
        first_job(variant)
    except Exception:  # every_admitted_value_works reports what is wrong
        return False
    return True


def first_job(subject: Subject) -> Job:
    """Build an implementation and let it do its first job; the result is kept.

    Raises:
        Failed: there is no result, or it is not finite.
        Exception: any exception of the implementation.
    """
    known, key = subject.workshop.known, (id(subject.offer), repr(subject.options))
    if key not in known:
        try:
            known[key] = _first_job(subject)
        except Exception as error:
            known[key] = without_trace(error)
    result = known[key]
    if isinstance(result, Exception):
        raise result
    return result


def _first_job(subject: Subject) -> Job:
    at = work(subject)
    with at.open() as made:
        outputs = at.fresh(made, at.jobs()[0])
    expect(outputs, "no result")
    for array in outputs:
        expect(array.size, f"an empty result of shape {array.shape}")
        expect(np.isfinite(array.astype(np.float64)).all(), "the result is not finite")
    return outputs


@contextmanager
def opened(subject: Subject, model: str) -> Iterator[Runtime]:
    """Open a runtime on a model of the suite, and close it at the end.

    Raises:
        CannotMake: no backend here makes the file that the runtime takes.
        UserError: the runtime refuses the model.
    """
    file = subject.workshop.artifact(subject.backend, subject.offer, subject.options, model)
    runtime = load(subject, file, model)
    try:
        yield runtime
    finally:
        runtime.close()


def load(subject: Subject, artifact: Path, model: str) -> Runtime:
    """Open a runtime on a file; any exception of its library becomes one line."""
    with refusing(f"{subject.backend.name} cannot open {model}"):
        runtime: Runtime = subject.make(artifact)
    if len(runtime.inputs) != 1 or len(runtime.outputs) != 1:
        raise Failed(f"{model} has one input and one output, got {runtime.inputs, runtime.outputs}")
    return runtime


def run(runtime: Runtime, x: Array) -> Array:
    """Run a model of one input and one output; the input and the result are copies."""
    (out,) = runtime.run({runtime.inputs[0].name: np.array(x)}).values()
    return np.array(out)


def source(subject: Subject, model: str) -> Path:
    """Return a new source file for an exporter, cast or quantizer."""
    maker = subject.offer.make
    format = maker.takes if subject.offer.stage == Stage.EXPORT else maker.format
    file = subject.workshop.file(model, format)
    copy = subject.workshop.scratch(f"source{file.suffix}")
    shutil.copy(file, copy)
    return copy


def make(subject: Subject, maker: Any, source: Path, model: str = "conv") -> Path:
    """Let an exporter, cast or quantizer write a file."""
    given = getattr(maker, "gives", None)
    suffix = suffix_of(given) if given else source.suffix
    target = subject.workshop.scratch(f"made{suffix}")
    if subject.offer.stage == Stage.EXPORT:
        maker.export(source, target)
    elif subject.offer.stage == Stage.CAST:
        maker.cast(source, target)
    else:
        maker.quantize(source, target, calibration(model))
    return target


def yuv(subject: Subject, height: int, width: int, seed: int = 0) -> Frame:
    """Return a YUV picture in a converter's format, also valid in limited range."""
    format = PixelFormat(subject.options["format"])
    v, h = format.subsampling
    small = (-(-height // v), -(-width // h))
    y = legal(files.picture(height, width, seed=seed)[..., 0])
    u, w = (legal(files.picture(*small, seed=seed + n)[..., n]) for n in (1, 2))
    return yuv_frame(format, y, u, w, Matrix.BT601, Range.FULL)


def legal(plane: U8) -> U8:
    """Map 0-255 to 40-215, where colors are inside the RGB cube or close to it."""
    return (40 + plane.astype(np.uint16) * 175 // 255).astype(np.uint8)


@cache
def _file(seed: int) -> bytes:
    return files.jpeg(files.picture(96, 112, seed=seed)).data


def digest(arrays: Sequence[Array]) -> str:
    """Return a digest of types, shapes and bytes."""
    found = hashlib.blake2b(digest_size=16)
    for array in arrays:
        found.update(f"{array.dtype}{array.shape}".encode())
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()
