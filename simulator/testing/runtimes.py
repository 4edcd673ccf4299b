"""Runtimes: checks of numbers, batches, invalid models, and invalid inputs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx

from simulator import registry
from simulator.contract import Array, Runtime
from simulator.errors import MissingLibrary, UserError
from simulator.testing import models
from simulator.testing.subject import Failed, Subject, expect, refused, words
from simulator.testing.values import CannotMake, one_line
from simulator.testing.work import load, opened, run
from simulator.testing.workshop import refusing

COMPUTE = {"fp32": 5e-5, "fp16": 5e-3, "bf16": 4e-2, "int8": 5e-2}
"""Tolerance of arithmetic, as a share of the largest magnitude: ten units of 2^-11 and 2^-8; for
FP32 what fast convolutions and exponentials lose, a tenth of an FP16 unit; for INT8 ten steps."""
STORAGE = {
    "fp16": 5e-3, "bf16": 4e-2, "int8": 5e-2, "int6": 0.1, "int4": 0.3, "int2": 2.0,
    "fp8_e4m3": 0.1, "fp8_e5m2": 0.2, "mxfp8_e4m3": 0.1, "mxfp8_e5m2": 0.2, "mxfp6_e2m3": 0.1,
    "mxfp6_e3m2": 0.2, "mxfp4": 0.3, "nvfp4": 0.3, "nf4": 0.3,
}  # fmt: skip
"""Tolerance of what the weights lose, where no evaluator reads the stored file."""
APPROXIMATED = 5e-4
"""Tolerance of the families below in FP32: libraries have polynomials for exp and erf."""
_APPROXIMATED = ("sigmoid", "gelu", "softmax")
_FLOAT = (*models.PRODUCTS, "softmax", "layer_norm")
_INT8 = ("conv", "depthwise", "gemm", "max_pool", "global_average_pool", "add")
_SLOW = ("conv", "gemm")


def answers_by_hand(subject: Subject) -> None:
    """(1, 2) through the 1x1 convolution [[1, 10], [-1, 0.5]] is (21, 0), in every precision."""
    x = models.inputs("hand")[0]
    want = np.broadcast_to(np.reshape((21.0, 0.0), (1, 2, 1, 1)), x.shape)
    for variant in precisions(subject):
        with opened(variant, "hand") as runtime:
            got = run(runtime, x)
        expect(got.shape == want.shape, f"a result of {want.shape} expected, got {got.shape}")
        off = np.abs(got - want).max()
        expect(
            off <= tolerance(variant) * 21,
            f"{words(variant)}: (21, 0) expected, got {tuple(got[0, :, 0, 0].tolist())}",
        )


def agrees_with_onnx_reference(subject: Subject) -> str | None:
    """One small model per operator family gives the numbers of the ONNX reference evaluator.

    A runtime refuses an operator that it lacks and names it; that is a remark, not a failure.
    """
    lacks, unmade = [], []
    first = next(o for o in subject.backend.offers if o.make is subject.offer.make)
    for variant in precisions(subject):
        for model in _families(variant, variant is subject and subject.offer is first):
            try:
                _agrees(variant, model)
            except CannotMake as error:
                unmade.append(f"{model} ({error})")
            except UserError as error:
                reason, known = str(error), models.operators(model)
                named = [op for op in known if op.lower() in reason.lower()]
                expect(
                    named and "\n" not in reason,
                    f"{words(variant)}: {model} is refused, but not in one line that names "
                    f"{' or '.join(sorted(known))}: {reason[:300]}",
                )
                lacks.append(f"{model} ({', '.join(named)})")
    remarks = [f"lacks {', '.join(dict.fromkeys(lacks))}" if lacks else ""]
    remarks += [f"no file of {'; '.join(dict.fromkeys(unmade))}" if unmade else ""]
    return "; ".join(filter(None, remarks)) or None


def outputs_fit_their_ports(subject: Subject) -> None:
    """Ports are float32 with the model's shape, and outputs match their ports."""
    with opened(subject, "work") as runtime:
        (port,), (out,) = runtime.inputs, runtime.outputs
        x = models.inputs("work")[0]
        expect(port.accepts(x), f"the input is float32 {x.shape}, the port says {port}")
        got = run(runtime, x)
        expect(out.accepts(got), f"the port says {out}, got {got.dtype} {got.shape}")
        expect(got.dtype == np.float32, f"a float32 output expected, got {got.dtype}")


def a_batch_is_its_singles(subject: Subject) -> str | None:
    """Four samples at once give what each gives alone, or a batch is refused."""
    singles = models.inputs("conv")
    with opened(subject, "conv") as runtime:
        want = np.concatenate([run(runtime, x) for x in singles])
    try:
        with opened(subject, "batch") as runtime:
            got = run(runtime, np.concatenate(singles))
    except UserError as error:
        expect("batch" in str(error).lower(), f"a batch is refused without saying so: {error}")
        return f"no batch: {error}"
    expect(got.shape == want.shape, f"{want.shape} expected of a batch of 4, got {got.shape}")
    off = np.abs(got - want).max() / np.abs(want).max()
    expect(
        off <= tolerance(subject),
        f"within {tolerance(subject):.0e} of the singles expected, got {off:.1e}",
    )
    return None


def samples_of_a_batch_stay_apart(subject: Subject) -> str | None:
    """Samples stay apart in batches of 4 and 16; other bits than alone are remarked.

    A batch that the runtime says it takes is not refused. Whether bits stay depends on the kernels
    that a library chooses on a processor, so that other bits are no fault.
    """
    make, found, most = subject.offer.make, [], 0.0
    drawn = np.random.default_rng(6).uniform(-2, 2, (16, *models.SHAPE)).astype(np.float32)
    singles = list(drawn)
    try:
        with opened(subject, "rows1") as runtime:
            want = np.concatenate([run(runtime, x) for x in singles])
    except UserError as error:
        expect(not make.batches, f"it says that it takes batches, but refuses the network: {error}")
        return f"not even one sample: {error}"
    for count in (4, 16):
        try:
            with opened(subject, f"rows{count}") as runtime:
                got = run(runtime, np.concatenate(singles[:count]))
        except UserError as error:
            expect(not make.batches, f"it says that it takes batches, but refuses one: {error}")
            return f"no batch: {error}"
        expect(
            got.shape == want[:count].shape and _apart(got, want),
            f"a row of its own for each of {count} samples expected, got others",
        )
        if not np.array_equal(got, want[:count]):
            found.append(str(count))
            off = np.abs(got - want[:count]).max() / np.abs(want).max()
            most = max(most, float(off))
    if not found:
        return None
    declared = subject.options.get("compute", "fp32") in make.bit_stable
    return (
        f"other bits in batches of {' and '.join(found)}, by at most {most:.0e} of the largest"
        + (", but none where it was declared" if declared else "")
    )


def images_of_any_size_are_not_padded(subject: Subject) -> str | None:
    """A model of any height and width gives the reference's numbers at three odd sizes.

    One that pads to a size of its own gives others at the border. One that takes models of fixed
    sizes only says so.
    """
    make = subject.offer.make
    if make.fixed_shapes or make.takes != "onnx":
        return "models of fixed sizes only" if make.fixed_shapes else None
    drawn = np.random.default_rng(8)
    try:
        with opened(subject, "any_size") as runtime:
            if None not in runtime.inputs[0].shape:
                return "models of fixed sizes only"
            for rows, columns in ((8, 8), (13, 7), (5, 22)):
                x = drawn.uniform(-2, 2, (1, models.SHAPE[1], rows, columns)).astype(np.float32)
                got, want = run(runtime, x), models.reference("any_size", x)
                expect(got.shape == want.shape, f"{want.shape} expected, got {got.shape}")
                off = _off(got, want)
                expect(
                    off <= tolerance(subject),
                    f"of {rows}x{columns}: within {tolerance(subject):.0e} of the largest "
                    f"expected, got {off:.1e}: is the input padded?",
                )
    except (UserError, CannotMake) as error:
        return f"no model of any size: {one_line(error)}"
    return None


def _apart(got: Array, singles: Array) -> bool:
    """Whether every row is ten times nearer to its own sample's than to another's."""
    off = np.abs(got[:, None].astype(float) - singles[None]).max(axis=-1)
    own = off.diagonal().copy()
    np.fill_diagonal(off, np.inf)
    return bool((10 * own <= off.min(axis=1)).all())


def what_does_not_fit_is_refused(subject: Subject) -> None:
    """Another dtype, shape, rank or name, a missing input and one too many are refused."""
    with opened(subject, "hand") as runtime:
        name, x = runtime.inputs[0].name, models.inputs("hand")[0]
        cases = {
            "float64": {name: x.astype(np.float64)},
            "uint8": {name: x.astype(np.uint8)},
            "a column more": {name: np.pad(x, ((0, 0), (0, 0), (0, 0), (0, 1)))},
            "a rank less": {name: x[0]},
            "another name": {"no such input": x},
            "no input": {},
            "an input more": {name: x, "no such input": x},
        }
        for what, feeds in cases.items():
            refused(what, runtime.run, feeds)


def closes_twice_and_then_refuses(subject: Subject) -> None:
    """Closing twice is allowed; running after it is refused, in a line that says so."""
    with opened(subject, "hand") as runtime:
        x = models.inputs("hand")[0]
        run(runtime, x)
        runtime.close()
        runtime.close()
        reason = refused("running after close", run, runtime, x)
        expect("close" in reason, f"running after close: refused for another reason: {reason}")


def bad_models_are_refused(subject: Subject) -> None:
    """Noise, half a model and a missing file do not open, and the reason is one line."""
    good = subject.workshop.file("conv", subject.offer.make.takes)
    for what, file in subject.workshop.bad_models(good):
        refused(what, lambda file: _open(subject, file).close(), file)


def precisions(subject: Subject) -> Iterator[Subject]:
    """Yield the subject, also with every other storage and compute that can run here."""
    yield subject
    for variant, *_ in subject.variants():
        if any(variant.options.get(n) != subject.options.get(n) for n in ("storage", "compute")):
            try:
                with opened(variant, "hand"):
                    pass
            except Exception:
                continue
            yield variant


def tolerance(subject: Subject) -> float:
    """Return the allowed error of a result, relative to the largest magnitude."""
    compute = COMPUTE[subject.options.get("compute", "fp32")]
    return compute + STORAGE.get(subject.options.get("storage", "fp32"), 0.0)


def _coded(variant: Subject) -> bool:
    """Whether weights are codes with scales."""
    return variant.options.get("storage", "fp32") not in ("fp32", "fp16", "bf16")


def _families(variant: Subject, first: bool) -> tuple[str, ...]:
    """Return all families for the first precision, else those whose arithmetic depends on it."""
    families = variant.workshop.families
    if variant.slow:
        wanted: tuple[str, ...] = _SLOW
    elif variant.options.get("compute") == "int8":
        wanted = _INT8
    elif _coded(variant):
        wanted = models.PRODUCTS
    else:
        wanted = families if first else _FLOAT
    return tuple(name for name in wanted if name in families)


def _agrees(variant: Subject, model: str) -> None:
    stored, limit = _stored(variant, model), tolerance(variant)
    if variant.offer.make.takes == "onnx" and _coded(variant):
        limit = COMPUTE[variant.options["compute"]]  # the evaluator reads the same weights
    if model in _APPROXIMATED:
        limit = max(limit, APPROXIMATED)
    with opened(variant, model) as runtime:
        for x in models.inputs(model)[: 1 if variant.options.get("compute") == "int8" else 2]:
            want = models.evaluate(stored, x)
            try:
                got = run(runtime, x)
            except (UserError, MissingLibrary):
                raise
            except Exception as error:
                raise Failed(f"{words(variant)}: {model}: {one_line(error)}") from error
            expect(got.shape == want.shape, f"{model}: {want.shape} expected, got {got.shape}")
            off = _off(got, want)
            expect(
                off <= limit,
                f"{words(variant)}: {model}: within {limit:.0e} of the largest "
                f"expected, got {off:.1e}",
            )


def _stored(variant: Subject, model: str) -> onnx.ModelProto:
    """Return the ONNX file that the runtime reads; the suite's own if it reads another format."""
    if variant.offer.make.takes != "onnx":
        return models.build(model)
    storage, compute = (variant.options.get(name, "fp32") for name in ("storage", "compute"))
    return onnx.load(str(variant.workshop.file(model, "onnx", storage, compute)))


def _off(got: Array, want: Array) -> float:
    return float(np.abs(got.astype(np.float64) - want).max() / max(np.abs(want).max(), 1e-6))


def _open(subject: Subject, file: Path) -> Runtime:
    if subject.offer.make.compiled_by is None:
        return load(subject, file, file.name)
    folder = subject.workshop.scratch("folder")
    folder.mkdir()
    with refusing(f"{subject.backend.name} cannot compile {file.name}"):
        registry.compile(subject.backend, subject.offer, file, folder, subject.options)
    return load(subject, folder, file.name)
