"""The parts of a model card that all modalities share."""

from __future__ import annotations

from functools import cache
from typing import Any, ClassVar, Literal, cast

from pydantic import BaseModel, Field, create_model, model_validator

from simulator.contract.model_format import ONNX, ModelFormat, card_formats
from simulator.errors import UserError
from simulator.profile.section import Section


class CardInput(Section):
    """The section ``input`` of a model card; a modality's subclass adds fields.

    Attributes:
        kind: the name of the modality. A subclass narrows it to a ``Literal`` with that name.
    """

    kind: str


class Quantized(Section):
    """How the network was fine-tuned, with weights and activations of a few bits."""

    method: str
    bits: int


class Checkpoint(Section):
    """How the weights came to be: the recipe of the training, and the seed where there are several.

    ``simulate sweep`` and ``simulate report`` compare models of one recipe with those of another.
    """

    recipe: str
    seed: int | None = None


class CardSpec(Section):
    """A model card: the document beside a model's files; a modality's subclass narrows ``input``.

    ``model`` is the path of the ``.onnx`` file; :func:`card_schema` adds a field for the same model
    in each other format. ``output`` says what the outputs mean; its fields are the task's.
    ``second`` names the files of a network that runs on what the task makes of the first one's
    outputs, by the fields that the card has for the first. ``quantized`` is written by ``simulate
    quantize``, and ``converged: false`` where a network stayed at chance (NC). ``checkpoint`` says
    by which recipe it was trained.
    """

    _modality: ClassVar[type[BaseModel] | None] = None
    """The schema that :func:`card_schema` added the fields of model files to."""

    schema_: Literal[1] = Field(alias="schema")
    name: str
    summary: str = ""
    task: str
    model: str | None = None
    input: Any
    output: dict[str, object]
    labels: str | None = None
    second: dict[str, str | dict[str, str]] | None = None
    quantized: Quantized | None = None
    checkpoint: Checkpoint | None = None
    converged: bool = True

    @model_validator(mode="after")
    def _has_a_file(self) -> CardSpec:
        enough = [card_format for card_format in card_formats() if card_format.suffices]
        if not any(getattr(self, model_format.key, None) for model_format in enough):
            first, *others = (model_format.written for model_format in enough)
            raise ValueError(
                f"a card needs {first}, or {' or '.join(others)} for the runtimes that take it"
            )
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by the schema that has a name; that with model files is made where it is read."""
        return _restored, (self._modality or type(self), bool(self._modality), self.__getstate__())


def _restored(schema: type[BaseModel], with_files: bool, state: dict[Any, Any]) -> CardSpec:
    kind = card_schema(schema) if with_files else schema
    made = cast(CardSpec, kind.__new__(kind))
    made.__setstate__(state)
    return made


def card_schema(modality: type[BaseModel]) -> type[CardSpec]:
    """Return a modality's schema of cards, with a field for each format that a card can name.

    Raises:
        UserError: an installed format names its field as another one.
    """
    return _with_files(modality, tuple(card_formats()))


@cache
def _with_files(modality: type[BaseModel], formats: tuple[ModelFormat, ...]) -> type[CardSpec]:
    fields: dict[str, Any] = {}
    for one in formats:
        if one.key in fields or (one.key in modality.model_fields and one.name != ONNX):
            raise UserError(
                f"the model format {one.name!r} names a field {one.key!r} that cards have"
            )
        fields[one.key] = (str | None, None)
        if one.by_weights:
            fields[one.key] = (dict[str, str], Field(default_factory=dict))
    made: type[CardSpec] = create_model(
        modality.__name__,
        __base__=cast(type[CardSpec], modality),
        __doc__=modality.__doc__,
        **fields,
    )
    made._modality = modality
    return made
