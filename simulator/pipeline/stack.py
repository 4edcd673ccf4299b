"""Stacks: a profile, its implementations, its artifact and its opened runtime."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from simulator import registry
from simulator.contract import Array, Effective, Runtime, Stage
from simulator.data.folder import Dataset, Item, load_unlabelled, subset
from simulator.data.recording import Recording
from simulator.errors import DataError, MissingLibrary, ModelError, one_line
from simulator.machine import sha256
from simulator.modalities.image.front_end import preprocessing
from simulator.model.artifact import Artifact, Feeds, build
from simulator.model.card import Card, tensor_shape
from simulator.model.onnxfile import OnnxFile, load, shape_words
from simulator.notices import Kind, Notice
from simulator.pipeline import in_force, recorded
from simulator.pipeline.executor import ends
from simulator.pipeline.inference import answering, inference
from simulator.pipeline.plan import Step, plan
from simulator.profile.implementations import Choice, Choices
from simulator.profile.load import Profile

CULPRITS = 3
"""Of more nodes than these, none is named: the operator is not what is odd about the model."""
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
        notices: what the person should know about it.
    """

    side: str
    profile: Profile
    choices: Choices
    steps: tuple[Step, ...]
    artifact: Artifact
    effective: Effective
    notices: tuple[Notice, ...]

    @property
    def told(self) -> Iterator[Notice]:
        """Its notices, about itself."""
        return (notice.of(self.side) for notice in self.notices)

    @property
    def versions(self) -> dict[str, str | None]:
        """The version of every library that the stack uses, where it runs."""
        found: dict[str, str | None] = {}
        for choice in self.choices.values():
            found |= registry.versions(choice.backend)
        return found


class StackBuilder:
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
        if found := recorded.recording(profile, choices, Stage.RUNTIME):
            return self._recorded(side, own, found)
        before = self._before(profile, choices)
        notices: list[Notice] = []
        feeds = None
        if profile.spec.precision.quantizer:
            self.report(f"{side}: INT8 artifact (quantized once, then cached)")
            feeds, notices = self._feeds(profile, pair)
        artifact = build(self.card, self.source, profile, choices, feeds)
        runtime, effective = self._runtime(side, choices[Stage.RUNTIME], artifact)
        notices += in_force.notices(profile, choices, effective)
        notices += [Notice(Kind.MODEL, line) for line in artifact.notes]
        identity = choices[Stage.RUNTIME].identity()
        names = self._names(artifact, runtime)
        after = (
            inference(runtime, artifact.key, identity, names),
            answering(profile, self.card),
        )
        steps = (*before, *after)
        return Stack(side, profile, choices, steps, artifact, effective, tuple(notices))

    def _before(self, profile: Profile, choices: Choices) -> list[Step]:
        found = recorded.recording(profile, choices, Stage.DECODE)
        if found is None:
            return preprocessing(profile, choices, self.card)
        found.check(self.source.digest, self.dataset.items)
        wanted = tensor_shape(self.card.spec.input)
        shape = found.array(self.dataset.items[0]).shape
        if shape != wanted:
            raise DataError(
                f"{found.path}: its tensors are float32 {wanted}, as the card makes them; "
                f"{self.dataset.items[0].name} is {shape}"
            )
        return recorded.tensors(found)

    def _recorded(self, side: str, own: Chosen, found: Recording) -> Stack:
        """A stack whose answers were recorded; nothing of it is run."""
        wanted = self.source.wanted(self.card)
        found.check(self.source.digest, self.dataset.items, tuple(wanted))
        effective = Effective({}, {"device": found.spec.device}, {"recording": found.spec.name})
        lines = [f"recorded on {found.spec.device}; its other sections describe it only"]
        if not found.stages:
            lines.append("its outputs were recorded without latencies")
        told = tuple(Notice(Kind.RECORDED, line) for line in lines)
        artifact = Artifact(found.path, found.digest, "recording")
        steps = tuple(recorded.answers(found, own[0], self.card, tuple(wanted)))
        return Stack(side, *own, steps, artifact, effective, told)

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
            except MissingLibrary:
                raise
            except Exception as error:  # whatever the library raises is about this model
                reason = one_line(error)
                raise ModelError(
                    f"{choice.backend.name} cannot open {artifact.path}: {reason}"
                    f"{_named(artifact, reason)}"
                ) from error
            self._runtimes[key] = runtime, in_force.probed(choice, effective)
        return self._runtimes[key]

    def _zeros(self, artifact: Artifact, runtime: Runtime) -> dict[str, Array]:
        """Zeros that fit the card, after a check that they fit the runtime's input too."""
        shape = tensor_shape(self.card.spec.input)
        zeros = np.zeros(shape, np.float32)
        ports = ", ".join(f"{port.dtype} {port.shape}" for port in runtime.inputs)
        if len(runtime.inputs) != 1 or not runtime.inputs[0].accepts(zeros):
            raise ModelError(f"{artifact.path} takes {ports}; the card makes float32 {shape}")
        return {runtime.inputs[0].name: zeros}

    def _names(self, artifact: Artifact, runtime: Runtime) -> dict[str, str]:
        """The runtime's name of each output that the card needs; by place where names were lost."""
        ports = {port.name: port.shape for port in runtime.outputs}
        wanted = self.source.wanted(self.card)
        if set(wanted) <= set(ports):
            names = {name: name for name in wanted}
        elif len(ports) == len(self.source.outputs):
            order = dict(zip(self.source.outputs, ports, strict=True))
            names = {name: order[name] for name in wanted}
        else:
            got = ", ".join(f"{name} {shape_words(shape)}" for name, shape in ports.items())
            raise ModelError(
                f"{artifact.path}: {len(self.source.outputs)} outputs expected "
                f"({', '.join(self.source.outputs)}), got {got}"
            )
        for name, own in names.items():
            if not _same(wanted[name], ports[own]):
                raise ModelError(
                    f"{artifact.path}: output {own!r} is {shape_words(ports[own])}, and "
                    f"{name!r} of {self.card.model} is {shape_words(wanted[name])}; "
                    "it is another model"
                )
        return names

    def _feeds(self, profile: Profile, pair: Pair) -> tuple[Feeds, list[Notice]]:
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
                f"{wanted.samples}; calibration.source: FOLDER names others"
            )
        if shared:
            warnings.append("INT8 is calibrated on images that are also evaluated")
        elif {item.path.resolve() for item in chosen} & {
            item.path.resolve() for item in self.dataset.items
        }:
            warnings.append("INT8 is calibrated on images some of which are also evaluated")
        identity = [[sha256(item.path) for item in chosen], [s.identity for s in through]]
        notices = [Notice(Kind.CALIBRATION, line) for line in warnings]
        return Feeds(identity, lambda: self._tensors(through, chosen)), notices

    def _tensors(
        self, through: Sequence[Step], items: Sequence[Item]
    ) -> Iterator[Mapping[str, Array]]:
        chain = plan([through])
        made = 0
        for item in items:
            values = ends(chain, item)
            if values is not None:
                made += 1
                yield {self.source.input: values[0]}
        if not made:
            raise DataError("INT8 calibration: no calibration image got through the stack")


def _same(shape: Sequence[int | None], other: Sequence[int | None]) -> bool:
    """Whether two shapes may be one; the batch and ones apart, as a converter may drop them."""
    mine, theirs = ([side for side in dims[1:] if side != 1] for dims in (shape, other))
    return len(mine) == len(theirs) and all(
        None in (a, b) or a == b for a, b in zip(mine, theirs, strict=True)
    )


def _named(artifact: Artifact, reason: str) -> str:
    """The nodes of the operators that a reason speaks of, where it does not name them itself."""
    if artifact.format != "onnx":
        return ""
    nodes = [n.name or n.output[0] for n in load(artifact.path).graph.node
             if re.search(rf"\b{re.escape(n.op_type)}\b", reason)]  # fmt: skip
    if not nodes or len(nodes) > CULPRITS or any(name in reason for name in nodes):
        return ""
    return f" (node {', '.join(map(repr, nodes))})"
