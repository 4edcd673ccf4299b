"""What every profile says, whatever its samples are.

Each modality adds its sections, for example :mod:`simulator.modalities.image.sections`, and each
stage of another package its own (:mod:`simulator.profile.modality`). A field that is ``None`` here
was not written. Whether it had to be is for the chosen backend's offer to say (see
:mod:`simulator.profile.implementations`): nothing that changes a pixel or a logit has a default.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from simulator.profile.graph import Graph
from simulator.profile.postprocess import Postprocess
from simulator.profile.precision import Precision
from simulator.profile.section import OpenSection, Section, Threads

if TYPE_CHECKING:
    from simulator.profile.implementations import Choices
    from simulator.profile.load import Profile


class Exporter(OpenSection):
    """Who converts the model to the format that the runtime takes."""


class Runtime(OpenSection):
    """Who runs the network, and with which options; further fields are the runtime's own."""

    device: str
    threads: Threads
    exporter: Exporter | None = None


class Claim(Section):
    """How the profile's author knows that a section describes the stack."""

    kind: Literal["native", "vendor_simulator", "emulated", "recorded", "assumed"]
    source: str


class ProfileSpec(Section):
    """One stack: from the source of a sample to the outputs of the network, and to an answer."""

    schema_: Literal[1] = Field(alias="schema")
    name: str
    summary: str
    extends: str | None = None
    modality: str = Field("image", description="the kind of samples that the stack takes")
    graph: Graph
    precision: Precision
    runtime: Runtime
    postprocess: Postprocess = Postprocess()
    evidence: Mapping[str, Claim]

    @classmethod
    def problems(cls, profile: Profile, choices: Choices) -> list[str]:
        """Return what does not fit together in a profile, each as ``file:line: key: what``.

        Args:
            profile: a stack of this modality.
            choices: the implementations behind it; those that were not found are missing.
        """
        return []

    def settled(self) -> ProfileSpec:
        """Return it with the sections made to fit each other, after an axis was swapped."""
        return self
