"""The sections that profiles of every modality have.

Each modality adds its own sections, for example :mod:`simulator.modalities.image.sections`, and so
does each stage of another package (:mod:`simulator.profile.modality`). ``None`` means that a field
is not written. The offer of the chosen backend decides whether it is required (see
:mod:`simulator.profile.implementations`): nothing that changes a pixel or a logit has a default.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from simulator.profile.graph import Graph
from simulator.profile.postprocess import Postprocess
from simulator.profile.precision import Precision
from simulator.profile.section import Above0, OpenSection, Positive, Section, Threads

if TYPE_CHECKING:
    from simulator.profile.implementations import Choices
    from simulator.profile.profile import Profile


Resource = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_.-]*$")]


class FrontEnd(OpenSection):
    """What makes the network's input in place of all sections before the network.

    Those sections then only describe it; where pixels lie is taken from them.
    """


class Exporter(OpenSection):
    """The tool that converts the model to the format that the runtime takes."""


class Adaptation(OpenSection):
    """How the network changes with the samples that it answers."""


class Dynamic(Section):
    """Batches of a model whose batch dimension is free."""

    dynamic: int = Field(ge=2, description="samples of a batch; the last one has what is left")


class Runtime(OpenSection):
    """The runtime of the network and its options; a runtime may add fields of its own."""

    device: str
    threads: Threads
    batch: Positive | Dynamic = Field(
        1, description="samples of an inference; the last one is filled up, unless it is dynamic"
    )
    exporter: Exporter | None = None
    adaptation: Adaptation | None = None
    resources: Mapping[Resource, Above0] | None = Field(
        None,
        description="what the machine that runs the stack must have, by name; a cluster looks for "
        "it: gpu, cpu, or a name that a node was started with",
        min_length=1,
    )

    @property
    def needs(self) -> tuple[tuple[str, float], ...]:
        """The resources, sorted by name."""
        return tuple(sorted((self.resources or {}).items()))

    @property
    def samples(self) -> int:
        """How many samples an inference has; the last one may have fewer."""
        return self.batch if isinstance(self.batch, int) else self.batch.dynamic

    @property
    def is_dynamic(self) -> bool:
        """Whether the batch dimension of the model is free."""
        return not isinstance(self.batch, int)


class Citation(Section):
    """A bundle that `simulate backends prove NAME --out` wrote on a device."""

    file: str = Field(description="its path, from the profile's folder, or its address")
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$", description="SHA-256 of the file")


class Claim(Section):
    """Evidence that a section of the profile describes the real stack."""

    kind: Literal["native", "vendor_simulator", "emulated", "recorded", "assumed"]
    source: str
    bundle: Citation | None = Field(None, description="an evidence bundle of the device")


class ProfileSpec(Section):
    """One stack, from the source of a sample to the outputs of the network and the answer."""

    schema_: Literal[1] = Field(alias="schema")
    name: str
    summary: str
    extends: str | None = None
    modality: str = Field("image", description="the kind of samples that the stack takes")
    front_end: FrontEnd | None = None
    graph: Graph
    precision: Precision
    runtime: Runtime
    postprocess: Postprocess = Postprocess()
    evidence: Mapping[str, Claim]

    @classmethod
    def problems(cls, profile: Profile, choices: Choices) -> list[str]:
        """Return the conflicts between sections of a profile, each as ``file:line: key: what``.

        Args:
            profile: a stack of this modality.
            choices: its implementations; those that were not found are missing.
        """
        return []

    def settled(self) -> ProfileSpec:
        """Return the profile, after an axis was swapped, with conflicts resolved."""
        return self
