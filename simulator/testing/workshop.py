"""Model files for the suite: exported, cast, quantized and compiled as for a profile."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import onnx

from simulator import registry
from simulator.contract import Array, Backend, File, Offer, Options, Runtime, Stage
from simulator.contract.model_format import suffix_of
from simulator.errors import MissingLibrary, ModelError, SimulatorError
from simulator.testing import models
from simulator.testing.values import NOISE, CannotMake, one_line, values

_Helper = tuple[Backend, Offer]


class Workshop:
    """Makes each model file once.

    The steps are those of a profile: the suite's ONNX file, an exporter if the runtime takes
    another format, a cast or quantizer if another storage is requested, and the runtime's own
    compiled form. Where no exporter gives a format, a runtime may write the suite's models in it
    (:meth:`simulator.contract.Runtime.save_suite`). Of several tools the first that can run here
    is used, with the first value of each field.

    Args:
        folder: where files go.
        helpers: the backends that may export, cast and quantize.
        families: the operator families to test a runtime with, from `models.FAMILIES`.

    Attributes:
        known: the first result of each offer and options, or the exception raised instead.
        tight: the implementations that passed the leak check.
    """

    def __init__(
        self,
        folder: Path,
        helpers: Sequence[Backend],
        families: Sequence[str] = tuple(models.FAMILIES),
    ) -> None:
        self._folder = folder
        self.tight: set[type] = set()
        self.families = tuple(families)
        self._helpers = tuple(helpers)
        self._made: dict[Any, Path | Exception] = {}
        self.known: dict[tuple[int, str], tuple[Array, ...] | Exception] = {}

    def artifact(self, backend: Backend, offer: Offer, options: Options, model: str) -> Path:
        """Return what a runtime opens: a model file, or the folder of its compiled form.

        Args:
            backend: that offers the runtime.
            offer: the runtime.
            options: a value for each of its fields.
            model: a name of `models`.

        Raises:
            CannotMake: no helper makes the file that the runtime takes.
            ModelError: the runtime does not compile it.
        """
        runtime = offer.make
        storage, compute = options.get("storage", "fp32"), options.get("compute", "fp32")
        file = self.file(model, runtime.takes, storage, compute)
        if runtime.compiled_by is None:
            return file
        relevant = {name: options[name] for name in runtime.compiled_by if name in options}

        def compile(folder: Path) -> None:
            folder.mkdir()
            with refusing(f"{backend.name} cannot compile {model}"):
                registry.compile(backend, offer, file, folder, options)

        return self._once((str(file), backend.name, repr(relevant)), compile)

    def file(
        self, model: str, format: str = "onnx", storage: str = "fp32", compute: str = "fp32"
    ) -> Path:
        """Return a model file of the suite in another format and storage."""
        if storage != "fp32":
            return self._stored(model, format, storage, compute)
        if format == "onnx":
            made = models.build(model)
            return self._once((model, format), lambda target: onnx.save(made, target), ".onnx")
        return self._exported(model, format)

    def scratch(self, name: str) -> Path:
        """Return a new path for a file."""
        return self._folder / f"{len(list(self._folder.iterdir()))}-{name}"

    def noise(self, suffix: str) -> Path:
        """Return a file that is no model."""
        file = self.scratch(f"noise{suffix}")
        file.write_bytes(NOISE)
        return file

    def bad_models(self, good: Path) -> Iterator[tuple[str, Path]]:
        """Yield files that no runtime can open, with what they are: the last one is not there."""
        yield "noise", self._changed(good, "noise", lambda whole: NOISE)
        yield "half a model", self._changed(good, "half", lambda whole: whole[: len(whole) // 2])
        yield "a missing file", self.scratch(f"missing{good.suffix}")

    def _changed(self, good: Path, name: str, change: Callable[[bytes], bytes]) -> Path:
        """Return a copy of a file, or of a folder of files, each with other bytes."""
        made = self.scratch(f"{name}{good.suffix}")
        for file in (good, *good.rglob("*")):
            if file.is_file():
                target = made / file.relative_to(good)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(change(file.read_bytes()))
        return made

    def first(self, offer: Offer) -> Options:
        """Return the first value of each field; of a file the small one that it brings."""
        return {
            name: str(self._once(("example", admits), admits.example, f".{admits.suffix}"))
            if isinstance(admits, File)
            else values(admits)[0]
            for name, admits in offer.options.items()
        }

    def _exported(self, model: str, format: str) -> Path:
        reason = f"no backend here makes a {format} file of an ONNX file"
        for helper in self._able(Stage.EXPORT, lambda o: o.make.gives == format):
            try:
                source = self.file(model, helper[1].make.takes)
            except CannotMake as error:
                reason = str(error)
                continue
            return self._step(helper, source, format, lambda maker, s, t: maker.export(s, t))
        for _, offer in self._able(Stage.RUNTIME, lambda o: _writes(o.make, format)):
            source, suffix = self.file(model), suffix_of(format)
            save = partial(offer.make.save_suite, source)
            return self._once((str(source), format), save, suffix)
        raise CannotMake(reason)

    def _stored(self, model: str, format: str, storage: str, compute: str) -> Path:
        source = self.file(model, format)
        if compute == "int8":
            for helper in self._able(Stage.QUANTIZE, lambda o: o.make.format == format):
                return self._step(
                    helper, source, format, lambda q, s, t: q.quantize(s, t, calibration(model))
                )
        else:
            for helper in self._able(
                Stage.CAST,
                lambda o: (
                    (o.make.format, o.make.portable) == (format, True)
                    and storage in o.options.get("storage", ())
                ),
            ):
                return self._step(
                    helper, source, format, lambda c, s, t: c.cast(s, t), storage=storage
                )
        raise CannotMake(f"no backend here stores a {format} file as {storage}")

    def _step(
        self,
        helper: _Helper,
        source: Path,
        format: str,
        make: Callable[[Any, Path, Path], None],
        **options: Any,
    ) -> Path:
        backend, offer = helper
        asked = {**self.first(offer), **options}

        def step(target: Path) -> None:
            try:
                make(registry.make(backend, offer, asked), source, target)
            except Exception as error:
                raise CannotMake(f"{backend.name}: {one_line(error)}") from error

        key = (str(source), backend.name, offer.stage, repr(asked))
        return self._once(key, step, suffix_of(format))

    def _able(self, stage: str, fits: Callable[[Offer], bool]) -> Iterator[_Helper]:
        """Yield the helpers that can run here, those that take ONNX first."""
        found = [(b, offer) for b in self._helpers for offer in b.of(stage) if fits(offer)]
        for helper in sorted(found, key=lambda h: getattr(h[1].make, "takes", "onnx") != "onnx"):
            try:
                registry.require(helper[0])
            except MissingLibrary:
                continue
            yield helper

    def _once(self, key: Any, make: Callable[[Path], None], suffix: str = ".folder") -> Path:
        if key not in self._made:
            target = self.scratch(f"model{suffix}")
            try:
                make(target)
                self._made[key] = target
            except Exception as error:
                self._made[key] = without_trace(error)
        made = self._made[key]
        if isinstance(made, Exception):
            raise made
        return made


def _writes(runtime: type[Any], format: str) -> bool:
    """Whether a runtime of a format writes the models of the suite itself."""
    own = any("save_suite" in vars(kind) for kind in runtime.__mro__ if kind is not Runtime)
    return own and bool(runtime.takes == format)


def without_trace(error: Exception) -> Exception:
    """Remove an exception's traceback, whose frames keep failed objects alive."""
    cause: BaseException | None = error
    while cause is not None:
        cause.__traceback__ = None
        cause = cause.__cause__ or cause.__context__
    return error


class refusing:  # noqa: N801  it reads like a word
    """Turn any exception of a library about a model into one line, as the engine does."""

    def __init__(self, what: str) -> None:
        self._what = what

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, Exception) and not isinstance(error, SimulatorError):
            reason = " ".join(str(error).split())[:300]
            raise ModelError(f"{self._what}: {reason}" if reason else "") from error


def calibration(model: str) -> Iterator[Mapping[str, Array]]:
    """Yield the calibration inputs of a model, which are those of the checks."""
    for x in models.inputs(model):
        yield {"x": x}
