"""Zero-shot classes: an image's vector is compared with those of the classes' prompts."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from simulator.contract import Array
from simulator.contract.model import Port
from simulator.contract.text import Passage, Request, Row
from simulator.errors import ModelError, SampleError
from simulator.modalities.text.card import TextCard, TextInput
from simulator.modalities.text.front_end import feeding, tokenizing
from simulator.modalities.text.opened import encoder
from simulator.modalities.text.sections import Prompts
from simulator.profile.implementations import Choices
from simulator.profile.profile import Profile
from simulator.profile.section import Above0, Finite
from simulator.tasks.finite import output_of
from simulator.tasks.task import Shapes
from simulator.tasks.text import VectorOutput, vector_of

Outputs = Mapping[str, Array]
LOGITS = "scaled cosines"
"""The name of what is made of the vectors, among the outputs of the networks."""


class PromptedClasses(Prompts):
    """How class names become vectors, and how an image's vector is scored by them.

    The logit of a class is ``scale`` times the cosine, plus ``bias``.

    Attributes:
        image: the output of the card's ``model`` with the vector of an image, (1, size).
        input: what the second network takes, as a card of texts says it.
        text: the output of the second network with the vector of a text.
        scale: e to the network's ``logit_scale``.
        bias: of SigLIP.
    """

    words: ClassVar[tuple[str, ...]] = ()
    image: str
    input: TextInput
    text: VectorOutput
    scale: Above0
    bias: Finite = 0

    def check(self, shapes: Shapes, inputs: Mapping[str, Port], outputs: Shapes) -> None:
        """Compare both towers with the card, and the sizes of their vectors.

        Raises:
            ModelError: they are others.
        """
        (name, shape), *_ = shapes.items()
        if len(shape) != 2:
            raise ModelError(f"prompts.image: {name!r} is {tuple(shape)}; (1, size) expected")
        names = {*self.input.names.taken, *self.input.constants}
        if set(inputs) != names:
            raise ModelError(
                f"prompts.input: the card names {', '.join(sorted(names))}, and the second network "
                f"takes {', '.join(inputs)}"
            )
        for one in self.input.names.taken:
            if inputs[one].dtype != np.int64:
                raise ModelError(
                    f"prompts.input: {one!r} is {inputs[one].dtype} in the second network; int64 "
                    "expected"
                )
        text = next(iter(outputs.values()))[-1]
        if shape[-1] is not None and text is not None:
            _same_size(shape[-1], text)


@dataclass(frozen=True, slots=True)
class Class:
    """The prompts of one class.

    Attributes:
        inputs: of the second network: of all prompts in a batch, or a tuple of one each.
        rows: where the outputs for each prompt are.
    """

    inputs: Any
    rows: tuple[Row, ...]

    @property
    def parts(self) -> tuple[Outputs, ...]:
        """The inputs of each inference."""
        return self.inputs if isinstance(self.inputs, tuple) else (self.inputs,)


@dataclass(frozen=True)
class Matching:
    """Scores an image's vector by the classes' vectors; plain data.

    Attributes:
        asked: the section of the card.
        classes: their prompts as token ids.
    """

    asked: PromptedClasses
    classes: tuple[Class, ...]

    def identity(self) -> Any:
        """Return the token ids, and how vectors become scores."""
        whole = hashlib.blake2b(digest_size=16)
        for one in self.classes:
            for part in one.parts:
                for name, array in part.items():
                    whole.update(f"{name} {array.shape}".encode() + array.tobytes())
        asked = self.asked
        rows = [[one.row, one.first] for of in self.classes for one in of.rows]
        scored = [asked.image, asked.text.model_dump(), asked.scale, asked.bias]
        return ["prompts", whole.hexdigest(), *scored, rows]

    def feeds(self) -> tuple[Any, ...]:
        """Return what the second network is run on, for each class."""
        return tuple(one.inputs for one in self.classes)

    def joining(self, found: Sequence[Any]) -> Callable[[Outputs], Outputs]:
        """Return what makes scores of an image's vector.

        Args:
            found: the outputs of the second network for each of :meth:`feeds`.

        Raises:
            NotFinite: a vector has NaN or an infinity.
        """
        asked, vectors = self.asked, []
        for one, outputs in zip(self.classes, found, strict=True):
            each = [_unit(vector_of(outputs, row, asked.text)) for row in one.rows]
            vectors.append(_unit(np.mean(each, axis=0)))
        classes = np.stack(vectors)

        def joined(outputs: Outputs) -> Outputs:
            name, given = output_of(outputs, asked.image)
            if given.dtype.kind not in "fiu":
                raise ModelError(f"output {name!r}: numbers expected, got {given.dtype}")
            vector = given.reshape(-1).astype(np.float64)
            _same_size(vector.size, classes.shape[1])
            return {LOGITS: (asked.scale * (classes @ _unit(vector)) + asked.bias)[None]}

        return joined


def matching(
    profile: Profile, choices: Choices, asked: PromptedClasses, names: Sequence[str]
) -> Matching:
    """Turn the names of the classes into token ids, as a stack does it.

    Raises:
        ModelError: the profile has no tokenizer, or a prompt does not fit into the network.
    """
    spec: Any = profile.spec
    for section in ("tokenize", "feeds"):
        if getattr(spec, section, None) is None:
            raise ModelError(
                f"{profile.name}: {section}: the card's classes are prompts, and the profile does "
                f"not say how they become token ids; write {section}, or extends: clip_fp32"
            )
    card = TextCard.model_construct(
        schema_=1, name="the text tower", task="", output={}, input=asked.input
    )
    encode, feed = encoder(tokenizing(profile, choices, card)), feeding(profile, card)
    templates = asked.templates
    if spec.prompts and spec.prompts.template != "model":
        templates = spec.prompts.templates
    classes = []
    for name in names:
        passage = Passage(tuple(Request(one.replace("{}", name)) for one in templates), b"")
        try:
            tokens = encode(passage)
            classes.append(Class(feed.inputs(tokens), feed.rows(tokens)))
        except SampleError as error:
            raise ModelError(f"{profile.name}: the prompts of {name!r}: {error}") from error
    return Matching(asked, tuple(classes))


def _unit(vector: NDArray[np.float64]) -> NDArray[np.float64]:
    """The vector with length 1; NaN where it has none."""
    with np.errstate(invalid="ignore"):
        made: NDArray[np.float64] = vector / np.linalg.norm(vector)
    return made


def _same_size(image: int, text: int) -> None:
    if image != text:
        raise ModelError(
            f"output.prompts: the image's vector has {image} numbers and a text's {text}; they are "
            "towers of different models"
        )
