"""Stacks: a profile, its implementations, its artifact and its opened runtime."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from simulator import registry, replay
from simulator.contract import Array, Effective, Matrix, Range, Runtime, Stage
from simulator.data.folder import Dataset, Item, load_unlabelled, subset
from simulator.data.recording import Recording
from simulator.errors import DataError, MissingLibrary, ModelError
from simulator.execute import tensors
from simulator.machine import sha256
from simulator.model.artifact import Artifact, Feeds, build
from simulator.model.card import Card, tensor_shape
from simulator.model.onnxfile import OnnxFile
from simulator.model.probe import probe, rounds
from simulator.plan import Step, inference, plan, preprocessing
from simulator.profile.choose import Choice, Choices
from simulator.profile.load import Profile

Report = Callable[[str], None]
Chosen = tuple[Profile, Choices]
Pair = Mapping[str, Chosen]


@dataclass(frozen=True, slots=True)
class Stack:
    """One side, ready to run.

    Attributes:
        side: what it is called; of a pair ``train`` or ``deploy``.
        profile: its document.
        choices: the implementations behind it.
        steps: from a file's bytes to an answer.
        artifact: the model file that its runtime opened.
        effective: what the runtime says is in force.
        warnings: what the person should know about it.
    """

    side: str
    profile: Profile
    choices: Choices
    steps: tuple[Step, ...]
    artifact: Artifact
    effective: Effective
    warnings: tuple[str, ...]

    @property
    def versions(self) -> dict[str, str | None]:
        """The version of every library that the stack uses, where it runs."""
        found: dict[str, str | None] = {}
        for choice in self.choices.values():
            found |= registry.versions(choice.backend)
        return found


class Workshop:
    """Makes stacks for one model and one data set; equal runtimes are opened once.

    Args:
        card: the model card.
        source: its checked ONNX file.
        dataset: the evaluated images, for calibration.
        seed: draws the calibration images.
        report: told what is being made.
    """

    def __init__(
        self,
        card: Card,
        source: OnnxFile,
        dataset: Dataset,
        seed: int,
        report: Report,
    ) -> None:
        self.card, self.source, self.dataset = card, source, dataset
        self.seed, self.report = seed, report
        self._runtimes: dict[str, tuple[Runtime, Effective]] = {}

    def stack(self, side: str, own: Chosen, pair: Pair) -> Stack:
        """Build a stack's artifact, open its runtime and read back what is in force.

        Args:
            side: what to call the stack.
            own: its profile and implementations.
            pair: the profiles called ``train`` and ``deploy``, for calibration through one.

        Raises:
            UserError: a library is missing, or the model does not fit.
        """
        profile, choices = own
        if found := replay.recording(profile, choices, Stage.RUNTIME):
            return self._recorded(side, own, found)
        before = self._before(profile, choices)
        warnings: list[str] = []
        feeds = None
        if profile.spec.precision.quantizer:
            self.report(f"{side}: INT8 artifact (quantized once, then cached)")
            feeds, warnings = self._feeds(profile, pair)
        artifact = build(self.card, self.source, profile, choices, feeds)
        runtime, effective = self._runtime(side, choices[Stage.RUNTIME], artifact)
        warnings += _differences(profile, choices, effective)
        warnings += _dropped_casts(choices[Stage.RUNTIME], profile)
        warnings += _wrong_color(choices, profile)
        warnings += artifact.notes
        identity = choices[Stage.RUNTIME].identity()
        after = inference(runtime, artifact.key, identity, self.card)
        lines = tuple(f"{side}: {warning}" for warning in warnings)
        return Stack(side, profile, choices, (*before, *after), artifact, effective, lines)

    def _before(self, profile: Profile, choices: Choices) -> list[Step]:
        found = replay.recording(profile, choices, Stage.DECODE)
        if found is None:
            return preprocessing(profile, choices, self.card)
        found.check(self.source.digest, self.dataset.items)
        return replay.tensors(found)

    def _recorded(self, side: str, own: Chosen, found: Recording) -> Stack:
        """A stack whose answers were recorded; nothing of it is run."""
        found.check(self.source.digest, self.dataset.items)
        effective = Effective({}, {"device": found.spec.device}, {"recording": found.spec.name})
        lines = [f"{side}: recorded on {found.spec.device}; its other sections describe it only"]
        if not found.stages:
            lines.append(f"{side}: no latency was recorded")
        artifact = Artifact(found.path, found.digest, "recording")
        steps = tuple(replay.answers(found, self.card))
        return Stack(side, *own, steps, artifact, effective, tuple(lines))

    def close(self) -> None:
        """Close every runtime."""
        for runtime, _ in self._runtimes.values():
            runtime.close()

    def _runtime(self, side: str, choice: Choice, artifact: Artifact) -> tuple[Runtime, Effective]:
        key = f"{artifact.key}{choice.identity()}"
        if key not in self._runtimes:
            self.report(f"{side}: opening {choice.backend.name}")
            try:
                runtime: Runtime = choice.make(artifact.path)
                effective = runtime.effective(self._zeros(artifact, runtime))
                self._runtimes[key] = runtime, _probed(choice, effective)
            except MissingLibrary:
                raise
            except Exception as error:  # whatever the library raises is about this model
                reason = " ".join(str(error).split())[:500]
                raise ModelError(
                    f"{choice.backend.name} cannot open {artifact.path}: {reason}"
                ) from error
        return self._runtimes[key]

    def _zeros(self, artifact: Artifact, runtime: Runtime) -> dict[str, Array]:
        """Zeros that fit the card, after a check that they fit the runtime's input too."""
        shape = tensor_shape(self.card.spec.input)
        zeros = np.zeros(shape, np.float32)
        ports = ", ".join(f"{port.dtype} {port.shape}" for port in runtime.inputs)
        if len(runtime.inputs) != 1 or not runtime.inputs[0].accepts(zeros):
            raise ModelError(f"{artifact.path} takes {ports}; the card makes float32 {shape}")
        return {runtime.inputs[0].name: zeros}

    def _feeds(self, profile: Profile, pair: Pair) -> tuple[Feeds, list[str]]:
        quantizer = profile.spec.precision.quantizer
        assert quantizer is not None
        wanted = quantizer.calibration
        shared = wanted.source == "data"
        images = self.dataset if shared else load_unlabelled(Path(wanted.source))
        chosen = subset(images, wanted.samples, self.seed).items
        through = preprocessing(*pair[wanted.through], self.card)
        warnings = []
        if len(chosen) < wanted.samples:
            warnings.append(
                f"INT8 is calibrated on {len(chosen)} images; the profile asks for "
                f"{wanted.samples}, and there are no more"
            )
        if shared:
            warnings.append("INT8 is calibrated on images that are also evaluated")
        elif {item.path.resolve() for item in chosen} & {
            item.path.resolve() for item in self.dataset.items
        }:
            warnings.append("INT8 is calibrated on images some of which are also evaluated")
        identity = [[sha256(item.path) for item in chosen], [s.identity for s in through]]
        return Feeds(identity, lambda: self._tensors(through, chosen)), warnings

    def _tensors(
        self, through: Sequence[Step], items: Sequence[Item]
    ) -> Iterator[Mapping[str, Array]]:
        chain = plan([through])
        made = 0
        for item in items:
            values = tensors(chain, item)
            if values is not None:
                made += 1
                yield {self.source.input: values[0]}
        if not made:
            raise DataError("INT8 calibration: none of the calibration images can be decoded")


def _probed(choice: Choice, effective: Effective) -> Effective:
    """Add what a probe model finds; the probe has FP32 weights, so only where the model has."""
    if choice.options["storage"] != "fp32":
        return effective
    found = probe(choice)
    if found is None:
        return effective
    details = {**effective.details, "probe": found.details()}
    return replace(effective, details=details, probed=found.compute)


def _differences(profile: Profile, choices: Choices, effective: Effective) -> list[str]:
    backend = choices[Stage.RUNTIME].backend.name
    asked = {**choices[Stage.RUNTIME].options, "compute": profile.spec.precision.compute}
    got = {**effective.options, "compute": effective.compute}
    lines = [
        f"{name} {asked[name]} was asked for, {backend} is running {got[name]}"
        for name in got
        if name in asked and got[name] is not None and asked[name] != got[name]
    ]
    probed, backend_says = effective.probed, effective.compute
    if probed == "tf32" and asked.get("use_tf32"):
        probed = backend_says
    if probed != backend_says and probed is not None:
        lines.append(
            f"compute {asked['compute']} was asked for and {backend} says {backend_says}; a probe "
            f"model finds {probed}"
        )
    total = sum(effective.products.values())
    for kind, count in effective.products.items():
        if kind != effective.compute:
            lines.append(
                f"compute {effective.compute} was asked for, {count} of {total} convolutions and "
                f"matrix products are running in {kind}"
            )
    return lines


def _dropped_casts(choice: Choice, profile: Profile) -> list[str]:
    """Say when the graph rounds on purpose and the runtime takes that for nothing."""
    graph = profile.spec.graph
    asked = {"accumulation": graph.accumulation.dtype, "softmax": graph.activation.softmax}
    return [
        f"{name} in {dtype} was asked for, {choice.backend.name} drops the casts that round to it"
        for name, dtype in asked.items()
        if dtype != "keep" and not rounds(choice, dtype)
    ]


def _wrong_color(choices: Choices, profile: Profile) -> list[str]:
    """Say when the converter takes the pixels for something that they are not."""
    if Stage.CONVERT not in choices:
        return []
    encode = choices[Stage.ENCODE].options
    if profile.spec.color.source == "planes":
        made = (Matrix.BT601, Range.FULL)  # JFIF 1.02
    elif "matrix" in encode and "range" in encode:
        made = (Matrix(encode["matrix"]), Range(encode["range"]))
    else:
        return []
    assumed = choices[Stage.CONVERT].make().assumes
    if made == assumed:
        return []
    name = choices[Stage.CONVERT].backend.name
    return [
        f"color: the pixels are {made[0]} {made[1]} range, and {name}"
        f" takes them for {assumed[0]} {assumed[1]} range"
    ]


def effective_dict(effective: Effective) -> dict[str, Any]:
    """Return what is in force, for the manifest."""
    return {"compute": effective.compute, **effective.options, "details": effective.details}
