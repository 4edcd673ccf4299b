"""``simulate quantize``: fine-tune a network with rounded weights and activations."""

from __future__ import annotations

import json
import math
import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from simulator import registry
from simulator.contract import Array, Stage, Tuner
from simulator.contract.recipe import generator
from simulator.data.folder import Dataset, Files, subset
from simulator.digests import sha256
from simulator.errors import DataError, UserError
from simulator.experiments.common import chosen
from simulator.experiments.session import Progress, Silent
from simulator.experiments.tuning_data import INPUTS, LABELS, Examples, prepared
from simulator.files import TEXT, read_file, write_whole
from simulator.machine import usable
from simulator.model.card import Card
from simulator.model.onnxfile import check
from simulator.model.store import digest
from simulator.pipeline.stack import StackBuilder
from simulator.profile.implementations import implementation

PLAN, STATE, SUMMARY, MODEL, CARD = (
    "plan.json", "state", "summary.json", "model.onnx", "model.yaml",
)  # fmt: skip
CALIBRATION = 64


@dataclass(frozen=True, slots=True)
class Settings:
    """What is learned, and how.

    Attributes:
        method: ``dorefa``, ``pact`` or ``lsq``.
        bits: of weights and activations; the first and the last layer have 8.
        epochs: how often each example is learned from.
        weights: ``per_tensor``, or for LSQ ``per_channel``.
        learning_rate: of the first epoch, above 0; it falls as half a cosine.
        batch: examples in a step.
        held_out: the share of examples that accuracy is measured on.
        seed: of the split and of the order.
        profile: the stack whose preprocessing makes the examples.
        threads: of PyTorch; another number gives weights that differ in their last bits.
    """

    method: str
    bits: int
    epochs: int
    weights: str = "per_tensor"
    learning_rate: float = 0.01
    batch: int = 32
    held_out: float = 0.2
    seed: int = 0
    profile: str = "pillow_fp32"
    threads: int = field(default_factory=lambda: len(usable()))

    def __post_init__(self) -> None:
        if not (math.isfinite(self.learning_rate) and self.learning_rate > 0):
            raise UserError(f"the learning rate must be above 0, got {self.learning_rate}")
        if not 0 < self.held_out < 1:
            raise UserError(f"the share held out must be between 0 and 1, got {self.held_out}")
        if self.seed < 0:
            raise UserError(f"the seed must be at least 0, got {self.seed}")


def quantize(
    model: str | Path,
    data: str | Path,
    out: str | Path,
    settings: Settings,
    *,
    limit: int | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Fine-tune a classifier; a second call with the same arguments goes on after the last epoch.

    The folder gets an ONNX file whose nodes round in floating point, a model card, and
    ``summary.json``.

    Args:
        model: the model card of the FP32 network.
        data: labelled samples: a folder or a data card.
        out: the folder.
        settings: what is learned.
        limit: take a random subset of this many samples.
        progress: is told what happens.

    Returns:
        The summary: settings, epochs, ``accuracy`` on the samples held out (from 0 to 1),
        ``nc_below``, and ``converged``.

    Raises:
        UserError: the model, the data or the settings do not fit, or the folder is of another
            call.
    """
    show, home = progress or Silent(), Path(out)
    card = Card(Path(model))
    if card.task.name != "classification":
        raise UserError(f"{model}: only classifiers are fine-tuned, this is a {card.task.name}")
    if not card.spec.model:
        raise UserError(f"{model}: only ONNX files are fine-tuned; name one as model: FILE.onnx")
    whole = card.task.load(Path(data), Files.of(card.modality))
    dataset = subset(whole, limit, settings.seed)
    if not dataset.labelled:
        raise DataError(f"{data}: fine-tuning needs a label for every sample")
    tuner = _tuner(card, settings)
    home.mkdir(parents=True, exist_ok=True)
    _claim(home, card, dataset, settings)
    if (home / SUMMARY).exists():
        show.note(f"{home} is finished")
        finished: dict[str, Any] = _read(home / SUMMARY)
        return finished
    examples = _examples(home, card, dataset, settings, show)
    learn, held_out = examples.split(settings.held_out, settings.seed)
    assert card.model is not None
    show.say("reading the network")
    tuner.open(card.model, np.array(examples.inputs[learn[:CALIBRATION]]))
    log = _learn(home, tuner, examples, (learn, held_out), settings, show)
    summary = _finish(home, card, tuner, log, settings, examples)
    for name in (INPUTS, LABELS, STATE):
        (home / name).unlink(missing_ok=True)
    return summary


def _tuner(card: Card, settings: Settings) -> Tuner:
    """Find the backend that fine-tunes.

    Raises:
        UserError: it does not offer the settings, in one line each.
    """
    backend = next(one for one in registry.backends() if one.of(Stage.TUNE))
    output: Any = card.task.output
    fields = {name: getattr(settings, name) for name in ("method", "bits", "weights", "epochs")}
    fields |= {"batch": settings.batch, "threads": settings.threads, "output": output.kind}
    try:
        choice = implementation(Stage.TUNE, backend, fields)
    except UserError as error:
        lines = [line.replace("\t", ": ", 1) for line in str(error).splitlines()]
        raise UserError("\n".join(f"--{line}" for line in lines)) from error
    registry.require(backend)
    rate = {"learning_rate": settings.learning_rate}
    made: Tuner = choice.offer.make({**choice.options, **rate})
    return made


def _claim(home: Path, card: Card, dataset: Dataset, settings: Settings) -> None:
    """Take a folder for this work, or find it taken for the same.

    Raises:
        UserError: it holds something else.
    """
    assert card.model is not None
    samples = digest([[item.name, item.truth, sha256(item.path)] for item in dataset.items])
    wanted = {"model": sha256(card.model), "samples": samples, "settings": asdict(settings)}
    if (home / PLAN).exists():
        if _read(home / PLAN) != wanted:
            raise UserError(f"{home} holds another fine-tuning; choose another --out")
    elif any(home.iterdir()):
        raise UserError(f"{home} is not empty; choose another --out")
    else:
        _write(home / PLAN, wanted)


def _examples(
    home: Path, card: Card, dataset: Dataset, settings: Settings, show: Progress
) -> Examples:
    profile, choices = chosen(settings.profile, [])
    for choice in choices.values():
        registry.require(choice.backend)
    builder = StackBuilder(card, check(card), dataset, settings.seed, show.say)
    try:
        chain = builder.front_end(profile, choices)
    finally:
        builder.close()
    output: Any = card.task.output
    show.say("preprocessing")
    return prepared(home, chain, card.modality, dataset.items, output.background, show.advance)


def _learn(
    home: Path,
    tuner: Tuner,
    examples: Examples,
    parts: tuple[Array, Array],
    settings: Settings,
    show: Progress,
) -> list[dict[str, Any]]:
    """Run the epochs that are left; the state is kept after each."""
    learn, held_out = parts
    inputs, labels = examples.inputs, examples.labels
    log: list[dict[str, Any]] = []
    if (home / STATE).exists():
        state = (home / STATE).read_bytes()
        length = int.from_bytes(state[:8], "little")
        log = json.loads(state[8 : 8 + length])
        tuner.restore(state[8 + length :])
        show.note(f"going on after epoch {len(log)}")
    for number in range(len(log), settings.epochs):
        show.say(f"epoch {number + 1} of {settings.epochs}")
        order = learn[generator("order", settings.seed, number).permutation(len(learn))]
        loss = tuner.epoch(number, inputs, labels, order)
        accuracy = _accuracy(tuner.answers(inputs[held_out]), labels[held_out])
        log.append({"epoch": number + 1, "loss": _finite(loss), "accuracy": accuracy})
        said = json.dumps(log).encode()
        write_whole(home / STATE, len(said).to_bytes(8, "little") + said + tuner.state())
        show.note(f"epoch {number + 1}: loss {loss:.4g}, {100 * accuracy:.1f} % of those held out")
        show.advance(number + 1, settings.epochs)
    return log


def _accuracy(outputs: Array, labels: Array) -> float:
    """The share of right answers; outputs that are not finite are wrong."""
    finite = np.isfinite(outputs).all(1)
    return float((finite & (np.nan_to_num(outputs).argmax(1) == labels)).mean())


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _finish(
    home: Path,
    card: Card,
    tuner: Tuner,
    log: list[dict[str, Any]],
    settings: Settings,
    examples: Examples,
) -> dict[str, Any]:
    """Write the model, its card and the summary, which comes last."""
    tuner.write(home / MODEL)
    needed = card.task.nc_below({"": tuner.answers(examples.inputs[:1]).shape})
    assert needed is not None
    accuracy = log[-1]["accuracy"]
    converged = accuracy >= needed
    words = f"{settings.method} with {settings.bits} bits, {settings.epochs} epochs"
    nc = "" if converged else "; NC: not converged"
    spec = card.spec.model_dump(by_alias=True, exclude_unset=True, mode="json")
    spec |= {
        "name": f"{card.spec.name}_{settings.method}_w{settings.bits}a{settings.bits}",
        "summary": f"{words}, simulated in FP32; {100 * accuracy:.1f} % of those held out{nc}",
        "model": MODEL,
        "quantized": {"method": settings.method, "bits": settings.bits},
        "converged": converged,
    }
    for gone in ("torch_export", "tflite"):
        spec.pop(gone, None)
    if card.spec.labels:
        labels = Path(card.spec.labels).name
        shutil.copyfile(card.path.parent / card.spec.labels, home / labels)
        spec["labels"] = labels
    write_whole(home / CARD, yaml.safe_dump(spec, sort_keys=False).encode())
    summary = {
        "settings": asdict(settings),
        "epochs": log,
        "accuracy": accuracy,
        "nc_below": needed,
        "converged": converged,
        "card": CARD,
    }
    _write(home / SUMMARY, summary)
    return summary


def _read(path: Path) -> Any:
    return json.loads(read_file(path, TEXT))


def _write(path: Path, value: Any) -> None:
    write_whole(path, json.dumps(value, indent=1).encode())
