"""What every model card says, whatever its samples are."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from simulator.profile.section import Section


class CardInput(Section):
    """What the network takes; a modality's own section adds fields.

    Attributes:
        kind: the name of the modality. A subclass makes it a ``Literal`` of one word.
    """

    kind: str


class CardSpec(Section):
    """The document beside an ``.onnx`` file; a modality's own schema narrows ``input``.

    ``torch_export`` is the same model as a ``torch.export`` program; ``tflite`` names the same
    model's ``.tflite`` files by the storage of their weights, for example ``{fp32: m.tflite}``.
    ``output`` says what the outputs mean, in the words of the task.
    """

    schema_: Literal[1] = Field(alias="schema")
    name: str
    summary: str = ""
    task: str
    model: str
    torch_export: str | None = None
    tflite: dict[str, str] = Field(default_factory=dict)
    input: Any
    output: dict[str, Any]
    labels: str | None = None
