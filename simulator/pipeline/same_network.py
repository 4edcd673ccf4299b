"""Whether a model file that was made elsewhere is the card's network: both answer the same inputs.

Shapes alone cannot tell. A few samples go through the file and through the card's own file in FP32,
each fed as it takes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from simulator import registry
from simulator.contract import Array, Stage
from simulator.contract.model_format import MODEL_FORMATS, ONNX
from simulator.contract.recipe import Chain, Recipe
from simulator.data.folder import Item
from simulator.errors import SampleError, UserError
from simulator.modalities.card import CardSpec
from simulator.model.artifact import Artifact
from simulator.model.card import Card
from simulator.model.onnxfile import ModelFile
from simulator.notices import Kind, Notice
from simulator.pipeline.float_runtime import in_fp32
from simulator.pipeline.inference import Infer, Inferred
from simulator.pipeline.local import LocalExecutor
from simulator.pipeline.plan import Arm, plan
from simulator.pipeline.runtimes import RuntimePool
from simulator.profile.implementations import Choice, implementation
from simulator.profile.profile import Profile

SAMPLES = 4
"""Samples that both answer."""
FAR = 0.3
"""Root of the mean squared difference, as a share of that of the card's own outputs around their
mean, from which a file is taken for another network, or one that is fed wrongly. INT8 files of
EfficientNet-Lite0 and MobileNet-v2 have 0.05 to 0.15."""


@dataclass(frozen=True, slots=True)
class Same:
    """How to ask both files.

    Attributes:
        card: the model card.
        source: its checked file.
        runtimes: of the session.
        items: the samples.
        infer: runs the file.
        spec: the content of the card that the file's front end was made of.
        profile: the stack, as it feeds the file.
        front_end: makes the steps before the network, of a profile and the content of a card.
    """

    card: Card
    source: ModelFile
    runtimes: RuntimePool
    items: Sequence[Item]
    infer: Infer
    spec: CardSpec
    profile: Profile
    front_end: Callable[[Profile, CardSpec], Sequence[Recipe]]

    def notice(self, name: str, choices: Sequence[Choice]) -> Notice:
        """Say how near the outputs are, and what to write where they are not.

        Args:
            name: of the file.
            choices: runtimes, of which one runs the card's own file in FP32.
        """
        try:
            runtimes = [*choices, _usual()]
            said = self._said(name, in_fp32(runtimes, "the card's own file"))
        except UserError:  # of what cannot run in FP32 here, no more is known
            said = None
        unknown = f"{name}: not checked that it is the network of {self.source.path.name}"
        return said or Notice(Kind.MODEL, unknown)

    def _said(self, name: str, choice: Choice) -> Notice | None:
        if self.source.format != ONNX:
            return None
        usual = self.card.modality.left_to_card(self.profile)
        wanted = self._answers((*self.front_end(usual, self.card.spec), self._own(choice)))
        found = self._answers((*self.front_end(self.profile, self.spec), self.infer))
        off = _apart(wanted, found)
        if off is None:
            return None
        said = f"{name}: its outputs differ from those of {self.source.path.name} in FP32 by "
        said += f"{off:.2%} (root mean square, {len(found)} {self.card.modality.unit}s)"
        if off < FAR:
            return Notice(Kind.MODEL, said)
        for words, spec in self.card.modality.fed_otherwise(self.spec):
            other = _apart(wanted, self._answers((*self.front_end(usual, spec), self.infer)))
            if other is not None and other < FAR:
                said += f"; fed otherwise, by {other:.2%}: --set STACK.{words}"
                break
        else:
            said += ": another network, or fed with other numbers than in training"
        return Notice(Kind.NOT_IN_FORCE, said)

    def _own(self, choice: Choice) -> Infer:
        """The step that runs the card's own file."""
        feeds = self.card.modality.feeds(self.card.spec)
        inputs = list(self.source.inputs)
        named = {feed.name or "": feed.name or inputs[0] for feed in feeds}
        names = {name: name for name in self.source.wanted(self.card)}
        made = Artifact(self.source.path, self.source.digest, self.source.format)
        return Infer(choice, made, named, names)

    def _answers(self, steps: Sequence[Recipe]) -> list[Mapping[str, Array]]:
        return list(islice(self._walked(steps), SAMPLES))

    def _walked(self, steps: Sequence[Recipe]) -> Iterator[Mapping[str, Array]]:
        executor = LocalExecutor(self.card.modality, self.runtimes, workers=1)
        opened = executor.open(plan({Arm("one"): Chain(tuple(steps))}))
        for item in self.items[:SAMPLES]:
            try:
                (found,) = opened.walk(executor.context(item)).answers()
            except SampleError:
                continue
            if isinstance(found, Inferred) and isinstance(found.outputs, Mapping):
                yield found.outputs


def _usual() -> Choice:
    """The runtime of ONNX files, for stacks that open none.

    Raises:
        UserError: it is not installed.
    """
    fields = {**MODEL_FORMATS[ONNX].runtime, "threads": 1, "storage": "fp32", "compute": "fp32"}
    backend = registry.backend(str(fields.pop("backend")))
    registry.require(backend)
    return implementation(Stage.RUNTIME, backend, fields)


def _apart(
    wanted: Sequence[Mapping[str, Array]], found: Sequence[Mapping[str, Array]]
) -> float | None:
    """The difference of outputs as a share of how much the wanted ones vary; None: unknown."""
    pairs = [
        (np.ravel(one[name]).astype(np.float64), np.ravel(other[name]).astype(np.float64))
        for one, other in zip(wanted, found, strict=False)
        for name in one
        if one[name].size == other[name].size
    ]
    if not pairs or len(wanted) != len(found):
        return None
    first, second = (np.concatenate(side) for side in zip(*pairs, strict=True))
    spread = np.sqrt(np.mean((first - first.mean()) ** 2))
    off = np.sqrt(np.mean((first - second) ** 2))
    return float(off / spread) if spread > 0 and np.isfinite(off) else None
