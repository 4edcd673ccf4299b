"""The parts of a model card that all modalities share."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

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

    ``model`` is the path of the ``.onnx`` file; a card of ``.tflite`` files alone has none.

    ``torch_export`` is the path of the same model as a ``torch.export`` program; ``tflite`` has
    the paths of the same model's ``.tflite`` files by the type of their weights, for example
    ``{fp32: m.tflite}``; ``gguf`` is that of its GGUF file, and ``ctranslate2`` that of its folder
    as CTranslate2 has it. ``output`` says what the outputs mean; its fields are the task's.
    ``quantized`` is written by ``simulate quantize``, and ``converged: false`` where a network
    stayed at chance (NC). ``checkpoint`` says by which recipe it was trained.
    """

    schema_: Literal[1] = Field(alias="schema")
    name: str
    summary: str = ""
    task: str
    model: str | None = None
    torch_export: str | None = None
    tflite: dict[str, str] = Field(default_factory=dict)
    gguf: str | None = None
    ctranslate2: str | None = None
    input: Any
    output: dict[str, Any]
    labels: str | None = None
    quantized: Quantized | None = None
    checkpoint: Checkpoint | None = None
    converged: bool = True

    @model_validator(mode="after")
    def _has_a_file(self) -> CardSpec:
        if not (self.model or self.tflite or self.ctranslate2):
            raise ValueError(
                "a card needs model: FILE.onnx, or tflite: {fp32: FILE.tflite} or ctranslate2: "
                "FOLDER for the runtimes that take it"
            )
        return self
