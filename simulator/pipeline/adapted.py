"""The step of a network that adapts: its answers depend on the samples before, and on their order.

Plans run samples in any order, several at once, and resume. So the network answers all samples
once, in order, when a plan that has the step is opened; the step then looks answers up.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from simulator.contract import Adapter, Array, Stage
from simulator.contract.recipe import Apply, Boundary, Recipe, Runtimes
from simulator.data.folder import Item
from simulator.digests import sha256
from simulator.errors import ModelError, UserError
from simulator.modalities.modality import Modality
from simulator.model.artifact import Artifact, digest
from simulator.model.card import Card
from simulator.model.onnxfile import ModelFile
from simulator.model.store import makers
from simulator.pipeline.batched import looking_up, order_of, preparing
from simulator.pipeline.batches import Given, Kept, answers
from simulator.places import Where, state_of
from simulator.profile.implementations import Choice, Choices
from simulator.profile.profile import Profile

_one_at_a_time = threading.Lock()


@dataclass(frozen=True, slots=True)
class Entropy:
    """The output whose entropy may be lowered.

    Attributes:
        scores: its name in the file; None where the network is no classifier.
        probabilities: whether it has probabilities, and not logits.
    """

    scores: str | None
    probabilities: bool


@dataclass(frozen=True, eq=False)
class Adapted(Recipe):
    """Answers with a network that adapts to the samples of the run.

    Its time is that of a batch, with what is learned from it, divided by the samples of the batch.

    Attributes:
        choice: the adapter.
        artifact: the ONNX file that it starts from.
        outputs: the card's name of each output that is needed, to the file's name.
        entropy: what may be lowered.
        modality: reads the samples.
        items: all samples, in the order in which the network sees them.
        before: the steps before it, conditions too; the plan fills them in.
    """

    choice: Choice
    artifact: Artifact
    outputs: Mapping[str, str]
    entropy: Entropy
    modality: Modality
    items: tuple[Item, ...]
    before: tuple[Recipe, ...] = ()
    stage = "infer"
    gives: ClassVar[Boundary] = Boundary.OUTPUTS

    def identity(self) -> Any:
        """Return the file, the options, and the samples in their order."""
        made = [self.entropy.scores, self.entropy.probabilities, dict(self.outputs)]
        return ["adapt", self.artifact.key, self.choice.identity(), made, order_of(self.items)]

    def behind(self, before: tuple[Recipe, ...]) -> Adapted:
        """Return the step with what makes its inputs."""
        return replace(self, before=before)

    def opened(self, sample: Array) -> Adapter:
        """Return the network as it is before the first batch.

        Args:
            sample: (N, ...) inputs.

        Raises:
            ModelError: it cannot adapt; the message says why.
        """
        adapter: Adapter = self.choice.make()
        adapter.open(self.artifact.path, sample, self.entropy.scores, self.entropy.probabilities)
        return adapter

    def open(self, runtimes: Runtimes) -> Apply:
        """Let the network answer all samples, unless the cache has the answers."""
        with _one_at_a_time:
            known = answers(
                self._key(),
                self.choice.options["batch"],
                self.opened,
                lambda start: self._inputs(runtimes, start),
            )

        def find(value: Any, sample: str) -> Kept:
            found = known.of(sample, value)
            return replace(
                found, outputs={name: found.outputs[own] for name, own in self.outputs.items()}
            )

        return looking_up(find)

    def _key(self) -> str:
        """The digest of everything that the answers depend on."""
        files = contents([item.path for item in self.items])
        steps = [recipe.identity() for recipe in self.before]
        return digest([self.identity(), steps, files, makers()])

    def _inputs(self, runtimes: Runtimes, start: int) -> Iterator[Given]:
        """The inputs of the samples from one on; samples that fail are left out."""
        prepare = preparing(self.before, self.modality, self.items, runtimes)
        return filter(None, map(prepare, range(start, len(self.items))))


def adapting(
    card: Card, source: ModelFile, artifact: Artifact, choices: Choices, items: tuple[Item, ...]
) -> Adapted:
    """Return the step of a card's network that adapts.

    Args:
        card: the model card.
        source: its checked ONNX file.
        artifact: what the network is before it adapts.
        choices: the implementations of the stack.
        items: the samples of the run, in its order.

    Raises:
        ModelError: it has several inputs.
    """
    if len(card.feeds) != 1:
        raise ModelError(f"{card.path}: adaptation is for networks with one input")
    names = tuple(source.wanted(card))
    kind = getattr(getattr(card.task, "output", None), "kind", None)
    classifies = len(names) == 1 and kind in ("logits", "probabilities")
    choice = choices[Stage.ADAPT]
    entropy = Entropy(names[0] if classifies else None, kind == "probabilities")
    own = {name: name for name in names}
    return Adapted(choice, artifact, own, entropy, card.modality, ordered(choice, items))


def told(choice: Choice) -> str:
    """Return what a person should know of a stack that adapts."""
    options = choice.options
    reset = f", reset: {options['reset']}" if "reset" in options else ""
    return (
        f"its network adapts ({options['method']}, batches of {options['batch']}{reset}), so that "
        "an answer depends on other samples and their order; its time is that of a batch, divided "
        "by the samples of the batch, without the wait for them"
    )


def contents(paths: Sequence[Where]) -> list[str | None]:
    """Return the SHA-256 of samples as they are now; None for one that cannot be read."""
    return _digests(tuple((path, state_of(path)) for path in paths))


@lru_cache(maxsize=4)
def _digests(files: tuple[tuple[Where, tuple[int, ...]], ...]) -> list[str | None]:
    return [sha256(path) for path, _ in files]


def ordered(choice: Choice, items: tuple[Item, ...]) -> tuple[Item, ...]:
    """Return samples in the order in which an adapter sees them."""
    return tuple(items[at] for at in order(choice, len(items)))


def order(choice: Choice, count: int) -> list[int]:
    """Return the indices of samples in the order in which an adapter sees them."""
    if choice.options["order"] == "listed":
        return list(range(count))
    return [int(at) for at in np.random.default_rng(choice.options["seed"]).permutation(count)]


def refuse_adapting(side: str, choices: Choices, what: str) -> None:
    """Refuse a stack whose network adapts.

    Args:
        side: the name of the stack.
        choices: its implementations.
        what: needs a network that stays as it is; the subject of the sentence.

    Raises:
        UserError: it adapts.
    """
    if Stage.ADAPT in choices:
        raise UserError(
            f"{side}: {what} a network that stays as it is; leave out runtime.adaptation"
        )


def refuse_together(side: str, profile: Profile, choices: Choices, what: str) -> None:
    """Refuse a stack whose network adapts, or answers several samples at once.

    Args:
        side: the name of the stack.
        profile: the stack.
        choices: its implementations.
        what: needs each sample on its own; the subject of the sentence.

    Raises:
        UserError: it does.
    """
    refuse_adapting(side, choices, what)
    if profile.spec.runtime.samples > 1:
        raise UserError(f"{side}: {what} one sample at a time; leave out runtime.batch")
