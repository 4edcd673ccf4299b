"""``manifest.json``: what a run was asked for, and what it ran on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from simulator.results.shared import ConditionDescription
from simulator.typed import ResultModel

Status = Literal["running", "interrupted", "reporting", "complete"]


class Request(ResultModel):
    """How another process can ask for the same."""

    command: str
    arguments: dict[str, Any]


class Plan(ResultModel):
    """What the folder of a command is for that leaves no run."""

    request: Request
    work: dict[str, Any] = Field(description="what its results depend on besides the request")


class Commit(ResultModel):
    """The commit of the checkout in which the command was started."""

    sha: str
    dirty: bool | None = Field(description="whether tracked files were changed; None: not known")
    source: str = Field(description="checkout, or the variable of the CI service")


class Processor(ResultModel):
    """As the system tells it."""

    model: str
    flags: list[str]


class MachineDescription(ResultModel):
    """What a run ran on."""

    platform: str
    python: str
    cpu: Processor
    cores: int | None
    usable_cores: list[int]
    versions: dict[str, str | None] = Field(description="by distribution; None: not installed")


class ModelDescription(ResultModel):
    """The model of a run."""

    card: str = Field(description="path of the model card")
    spec: dict[str, Any] = Field(description="the card's content")
    sha256: str = Field(description="of the ONNX file")
    files: dict[str, str | None] = Field(
        default_factory=dict,
        description="SHA-256 of further files that the card names, such as a vocabulary, by key",
    )
    labels: list[str] | None = Field(description="names of the classes; None: no label file")


class DataDescription(ResultModel):
    """The images of a run."""

    root: str
    images: dict[str, str | None] = Field(description="SHA-256 by name; None: not readable")
    truth: dict[str, Any] = Field(description="what tells one truth from another, by name")


class Artifact(ResultModel):
    """The file that a runtime opened."""

    key: str = Field(description="content address in the cache")
    sha256: str | None
    files: dict[str, str] = Field(
        default_factory=dict,
        description="SHA-256 by name, of a model file that was made elsewhere; of several engines "
        "the key by the size of the input",
    )
    after: list[dict[str, Any]] = Field(
        default_factory=list, description="what passes did to it after quantization"
    )


class StackAxis(ResultModel):
    """What a stack says on an axis."""

    values: dict[str, Any]
    card: dict[str, Any] = Field(
        default_factory=dict,
        description="what the model card says where the profile leaves it to the model",
    )
    evidence: str = Field(description="kind of evidence")
    source: str = Field(description="where that is known from")
    claimed: bool = Field(description="whether the profile itself claims it")


class StackDescription(ResultModel):
    """One stack of a run."""

    profile: dict[str, Any] = Field(description="the profile as resolved")
    choices: list[dict[str, Any]] = Field(description="implementations, with their versions")
    artifact: Artifact
    recordings: dict[str, str] = Field(description="SHA-256 by stage, of recorded parts")
    effective: dict[str, Any] = Field(description="what the runtime says is in force")
    axes: dict[str, StackAxis]
    order: list[int] | None = Field(
        default=None,
        description="where the network adapts: the images as it saw them, by their index in data",
    )


class Spent(ResultModel):
    """What one kind of work took."""

    work: str = Field(description="libraries, reading, waiting, start-up, ...")
    stage: str | None = Field(default=None, description="of a library's step")
    stacks: str | None = Field(
        default=None,
        description="of a library's step: the stack, all, a number of stacks, or aside",
    )
    seconds: float = Field(description="wall time; on several threads their share of it")


class TimeSpent(ResultModel):
    """Where the time of a call went; the rows sum to the wall time."""

    seconds: float = Field(description="wall time, from the start of the program or of the call")
    cpu_seconds: float = Field(description="of processors, this process and those that it started")
    workers: int = Field(description="samples in flight")
    libraries: float = Field(description="share of the libraries' own work, each step once")
    spent: list[Spent]


class ClusterNode(ResultModel):
    """A machine of a cluster."""

    host: str
    node: str = Field(description="Ray's name of it")
    processor: str
    python: str | None = Field(default=None, description="None: of an earlier version")
    versions: dict[str, str | None] = Field(
        default_factory=dict, description="there, of the libraries of the stack"
    )


class ExecutorDescription(ResultModel):
    """Who ran the samples."""

    name: str
    place: str = Field(description="the address of a cluster; empty: this machine")
    nodes: dict[str, list[ClusterNode]] = Field(
        default_factory=dict,
        description="of a cluster: where samples of each stack ran, in the last attempt",
    )


class RunManifest(ResultModel):
    """Of every run that has records."""

    status: Status
    schema_: Literal[1] = Field(default=1, alias="schema")
    created: str = Field(description="ISO 8601, when the run was begun")
    commit: Commit | None = Field(default=None, description="None: it was started in no checkout")
    machine: MachineDescription
    model: ModelDescription
    data: DataDescription
    run: str | None = Field(
        default=None, description="by which its parts are named; None: of an earlier version"
    )
    seed: int
    batch: int = Field(description="samples of an inference: the most of any stack")
    limit: int | None = Field(description="random subset of so many images; None: all")
    executor: ExecutorDescription | None = Field(
        default=None, description="who ran the samples; None: of an earlier version"
    )
    isolate: Literal["auto", "always", "never"] | None = Field(
        default=None,
        description="which files were decoded in a worker process; None: of an earlier version",
    )
    overrides: list[str] = Field(description="STACK.KEY=VALUE")
    under: ConditionDescription | None = Field(
        default=None, description="the condition that every stack is under; None: there is none"
    )
    conditions: list[ConditionDescription] | None = Field(
        default=None, description="of robustness: what every stack was under, one by one"
    )
    campaign: dict[str, Any] | None = Field(
        default=None, description="of faults: the campaign's document; else None"
    )
    stacks: dict[str, StackDescription]
    request: Request | None = Field(default=None, description="None: part of another run")
    shared_stages: list[str] | None = Field(
        default=None, description="of a pair: stages that both stacks share; else None"
    )
    measuring: dict[str, Any] | None = Field(
        default=None, description="of latency and tail: how it was measured; else None"
    )
    times: dict[str, str | None] | None = Field(
        default=None, description="of tail: SHA-256 of each log of latencies; else None"
    )
    seconds: float | None = Field(default=None, description="that the run took")
    workers: int | None = Field(default=None, description="samples in flight")
    time: TimeSpent | None = Field(
        default=None, description="where the time went; None: a part of another run, or an old one"
    )

    def __or__(self, more: Mapping[str, object]) -> RunManifest:
        """Return it with other values of some fields, by their names in the JSON file."""
        return RunManifest.model_validate({**self, **more})


class DocumentDescription(ResultModel):
    """The document of an audit; of a replay, the bundle."""

    path: str
    sha256: str | None


class AuditedModel(ResultModel):
    """One model of an audit; None of card and data: the built-in ones."""

    name: str
    card: str | None
    data: str | None
    sha256: str = Field(description="of the ONNX file")
    card_sha256: str | None


class AuditManifest(ResultModel):
    """Of an audit or a replay, whose records are in the runs of its pairs."""

    status: Status
    schema_: Literal[1] = Field(default=1, alias="schema")
    command: Literal["audit", "replay"]
    created: str = Field(description="ISO 8601, when it was begun")
    commit: Commit | None = Field(default=None, description="None: it was started in no checkout")
    machine: MachineDescription
    document: DocumentDescription
    seed: int
    limit: int | None
    models: dict[str, AuditedModel]
    under: ConditionDescription | None = Field(
        default=None, description="the condition that every stack is under; None: there is none"
    )
    stacks: dict[str, dict[str, Any]] = Field(description="each profile as resolved")
    request: Request
    seconds: float | None = Field(default=None, description="that it took")
