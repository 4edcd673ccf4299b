"""The options of experiments: each is declared once, in groups that experiments share.

A field of a group is an option: its name, its type, its default, and an :class:`Option` with what
is said of it. From it follow the command line, its help and completion, the parameters of the
Python function, and the request by which a run is asked for again. Nothing heavy is imported here:
``--help`` reads it.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import (
    Annotated,
    Any,
    Literal,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

Kind = Literal["", "profile", "suite", "data", "model", "file", "folder"]
Isolate = Literal["auto", "always", "never"]
Undecided = Literal["pass", "fail"]
Pixels = Literal["own", "train"]
"""Whose pixel part a deployment stack has."""
Asking = Literal["gate", "worst-flips", "worst-drop"]
Report = Callable[[Path], object]
"""Writes the report of the run in a folder."""


def listed(text: str) -> tuple[str, ...]:
    """Read ``A,B``."""
    return tuple(text.split(","))


class Progress:
    """Receives the progress of a run; this one shows nothing."""

    def stage(self, number: int, of: int, name: str) -> None:
        """Tell which of several passes over the samples begins, from 1."""

    def say(self, what: str) -> None:
        """Show what the run is doing."""

    def note(self, what: str) -> None:
        """Tell the user something that stays."""

    def planned(self, plan: Any) -> None:
        """Show the plan (:class:`simulator.pipeline.plan.Plan`), before it is run."""

    def advance(self, done: int, total: int) -> None:
        """Show how much of a pass is done."""


@dataclass(frozen=True, slots=True)
class Option:
    """What is said of an option.

    Attributes:
        help: one line.
        metavar: what its value is called in the help.
        kind: what it names: how it is completed, and made absolute in a request.
        flag: on the command line, without ``--``; that of its name by default.
        positional: whether Python takes it without its name, and the command line without a flag.
        in_python: whether only Python takes it without its name.
        parse: reads its text; by default that of its type.
        write: its text, as *parse* reads it.
        alone: its value where the flag has none.
        instead: another flag for the same, what is said of it, and the options that it sets.
        excludes: the option that cannot be given as well.
        shell: whether the command line has it.
        asked: whether a run that is asked for again gets it.
    """

    help: str
    metavar: str | None = None
    kind: Kind = ""
    flag: str | None = None
    positional: bool = False
    in_python: bool = False
    parse: Callable[[str], Any] | None = None
    write: Callable[[Any], str] = str
    alone: str | None = None
    instead: tuple[str, str, Mapping[str, object]] | None = None
    excludes: str | None = None
    shell: bool = True
    asked: bool = True


@dataclass(frozen=True, slots=True)
class Declared:
    """An option of an experiment.

    Attributes:
        name: in Python.
        type: of its value.
        default: ``dataclasses.MISSING``: it must be given.
        about: what is said of it.
    """

    name: str
    type: Any
    default: Any
    about: Option

    @property
    def required(self) -> bool:
        """Whether it must be given."""
        return self.default is MISSING

    @property
    def flag(self) -> str:
        """Its flag on the command line."""
        return "--" + (self.about.flag or self.name.replace("_", "-"))

    @property
    def several(self) -> bool:
        """Whether it may be given more than once."""
        return get_origin(self._kind) is Sequence

    @property
    def one(self) -> Any:
        """The type of one value, without None."""
        return _without_none(get_args(self._kind)[0]) if self.several else self._kind

    @property
    def _kind(self) -> Any:
        return _without_none(self.type)


def _without_none(kind: Any) -> Any:
    if get_origin(kind) not in (Union, types.UnionType):
        return kind
    kinds = [one for one in get_args(kind) if one is not types.NoneType]
    return str if Path in kinds else kinds[0]


@dataclass(frozen=True, kw_only=True)
class Group:
    """Options that belong together; what a command takes is a group, made of others."""

    def without(self, **changes: Any) -> Any:
        """Return the same options with others in their place."""
        return dataclasses.replace(self, **changes)


@dataclass(frozen=True, kw_only=True)
class Options(Group):
    """What every experiment takes that leaves a run."""

    out: Annotated[str | Path | None, Option(
        "run folder; default: a new one below runs/", "DIR", "folder", asked=False
    )] = None  # fmt: skip
    overwrite: Annotated[bool, Option(
        "replace the run that is already in --out", asked=False
    )] = False  # fmt: skip
    resume: Annotated[bool, Option(
        "continue the run that is in *out*", shell=False, asked=False
    )] = False  # fmt: skip
    report: Annotated[Report | None, Option(
        "called with the run's folder to write its report, before the run is marked complete; no "
        "report by default", shell=False, asked=False,
    )] = None  # fmt: skip
    workers: Annotated[int | None, Option(
        "samples processed at once; default: the number of cores", "N", asked=False
    )] = None  # fmt: skip
    memory: Annotated[int | None, Option(
        "memory for the samples that are processed at once; default 2048", "MIB", asked=False
    )] = None  # fmt: skip
    progress: Annotated[Progress | None, Option(
        "called as the run goes on: a Progress, or a function that takes how many samples are done "
        "and how many there are", shell=False, asked=False,
    )] = None  # fmt: skip
    executor: Annotated[str, Option(
        "what runs the samples: local, the default, is threads of this process; ray is processes "
        "here, ray:HOST:PORT those of a cluster; docs/scale.md", "NAME[:PLACE]", asked=False,
    )] = "local"  # fmt: skip
    python: Annotated[str | None, Option(
        "the interpreter that runs Python code which a stack is named by, such as that of the "
        "environment where it was written; default: this one", "PATH",
    )] = None  # fmt: skip
    allow_code: Annotated[bool, Option(
        "run code that a profile or another document names; what is named on the command line "
        "is run without it",
    )] = False  # fmt: skip
    isolate: Annotated[Isolate, Option(
        "decode in a worker process, so that a decoder that dies does not end the run: auto, the "
        "default, files of a format that the library was seen to die of; docs/decoders.md",
    )] = "auto"  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class OwnFolder(Group):
    """A folder of results that are no run; the same call goes on in it."""

    out: Annotated[str | Path, Option(
        "a new folder, or that of the same command", "DIR", "folder", in_python=True, asked=False
    )]  # fmt: skip
    progress: Annotated[Progress | None, Option(
        "called as the work goes on, likewise", shell=False, asked=False
    )] = None  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Subset(Group):
    """How many of the samples are taken, and the seed."""

    limit: Annotated[int | None, Option("take a random subset of N images", "N")] = None
    seed: Annotated[int, Option("random seed; default 0", "S")] = 0


@dataclass(frozen=True, kw_only=True)
class Samples(Subset):
    """Which samples an experiment takes."""

    data: Annotated[str | Path | None, Option(
        "a folder of samples, one sample, or a data card (YAML); default: the built-in images",
        "PATH", "data",
    )] = None  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class OneModel(Samples):
    """One model, and its samples."""

    model: Annotated[str | Path | None, Option(
        "a model card (YAML), or a model file; default: the built-in model", "MODEL", "model"
    )] = None  # fmt: skip
    card: Annotated[str | Path | Mapping[str, object] | None, Option(
        "of a *model* that is a network: its card, a path or a dictionary of what a card says",
        shell=False, asked=False,
    )] = None  # fmt: skip
    input: Annotated[object, Option(
        "of a *model* that is a ``torch.nn.Module``: the shape of its input with the batch, or an "
        "example of it; default: float32 in the shape that the card says",
        shell=False, asked=False,
    )] = None  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Models(Samples):
    """Several models, and their samples."""

    models: Annotated[Sequence[str | Path | None], Option(
        "a model card, or a model file; repeatable", "MODEL", "model", flag="model"
    )] = ()  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Under(Group):
    """The condition that every stack is under."""

    under: Annotated[str | None, Option(
        "a corruption, attack or fault that is applied to every stack: jpeg:QUALITY, flip:BIT, "
        "... (docs/conditions.md)", "CONDITION",
    )] = None  # fmt: skip
    trial: Annotated[int, Option(
        "which random draw of the condition, from 0; default 0", "N"
    )] = 0  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Changes(Group):
    """What is other than the profiles of a pair say: model files, and single fields."""

    train_artifact: Annotated[str | Path | None, Option(
        "the model file that the training stack opens as it is, in place of one made from the "
        "model's; the rest of the profile stays", "FILE", "file"
    )] = None  # fmt: skip
    deploy_artifact: Annotated[str | Path | None, Option(
        "likewise of the deployment stack: .onnx, .xml, .tflite, ... (docs/precision.md)",
        "FILE", "file",
    )] = None  # fmt: skip
    overrides: Annotated[Sequence[str], Option(
        "override one field of one stack, e.g. deploy.resize.interpolation=nearest",
        "STACK.KEY=VALUE", flag="set",
    )] = ()  # fmt: skip

    @property
    def changes(self) -> tuple[str, ...]:
        """The overrides, behind those that the artifacts are."""
        own = {"train": self.train_artifact, "deploy": self.deploy_artifact}
        found = (
            f"{side}.precision.artifact={_as_yaml(os.path.abspath(os.path.expanduser(file)))}"
            for side, file in own.items()
            if file is not None
        )
        return (*found, *self.overrides)


def _as_yaml(path: str) -> str:
    return path if re.fullmatch(r"[\w./-]+", path) else json.dumps(path)


@dataclass(frozen=True, kw_only=True)
class Pair(Changes, Options):
    """Two stacks."""

    train: Annotated[str, Option(
        "the training stack: a profile's path or name, code (FILE.py:NAME), 'exec:PROGRAM …' or a "
        "recording's manifest; docs/your-code.md", "STACK", "profile", in_python=True
    )]  # fmt: skip
    deploy: Annotated[str, Option(
        "the deployment stack, likewise", "STACK", "profile", in_python=True,
        instead=(
            "deploy-runtime",
            "likewise, but with the pixels of the training stack: only graph, precision, runtime "
            "and postprocessing are this profile's",
            {"pixels": "train"},
        ),
    )]  # fmt: skip
    pixels: Annotated[Pixels, Option(
        "whose pixel part (decoder, color, resize, geometry, normalize) the deployment stack "
        "takes", shell=False,
    )] = "own"  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Stacks(Changes, Options):
    """Profiles, or a pair of them."""

    profiles: Annotated[Sequence[str], Option(
        "a stack: a path or a name; repeatable. A single one is called deploy", "PROFILE",
        "profile", flag="profile", in_python=True,
    )] = ()  # fmt: skip
    train: Annotated[str | None, Option(
        "instead of --profile: the training stack of a pair", "PROFILE", "profile"
    )] = None  # fmt: skip
    deploy: Annotated[str | None, Option(
        "the deployment stack of the pair", "PROFILE", "profile"
    )] = None  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Suite(Options):
    """A suite, and its training stack."""

    suite: Annotated[str, Option(
        "a suite: a path or a built-in name", "SUITE", "suite", in_python=True
    )]  # fmt: skip
    train: Annotated[str | None, Option(
        "the training stack; default: the suite's own", "PROFILE", "profile"
    )] = None  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Allowed(Group):
    """What a gate bears, and gives where samples do not decide it."""

    undecided: Annotated[Undecided, Option(
        "what a rule gives whose figure the samples do not give, such as a p99 of 100 samples; "
        "default: fail",
    )] = "fail"  # fmt: skip
    allow_failed: Annotated[str | None, Option(
        "the share of samples on which the deployment alone may fail, e.g. 0.1%; default: one "
        "such sample fails the gate", "SHARE",
    )] = None  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Gate(Allowed):
    """A release gate."""

    fail_on: Annotated[Sequence[str], Option(
        'fail the gate if the rule holds, e.g. "flip_rate > 1%"; exit code 1; simulate gate '
        "--list RUN names all figures", "RULE",
    )] = ()  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Question(Group):
    """The question by which options are dropped early."""

    until_decided: Annotated[Asking | None, Option(
        "take the samples in a random order, and drop an option when it can no longer matter: "
        "gate (the default): it passes or fails every --fail-on rule; worst-flips, worst-drop: it "
        "is not the worst. Wrong in 5 % of the runs at most", alone="gate",
    )] = None  # fmt: skip


def declared(shape: type[Group]) -> dict[str, Declared]:
    """Return the options of a group by name: its own first, those of every experiment last."""
    if shape not in _KNOWN:
        hints = get_type_hints(shape, include_extras=True)
        fields = {field.name: field for field in dataclasses.fields(shape)}
        kinds = sorted(shape.__mro__, key=lambda kind: kind is Options)
        order = [name for kind in kinds for name in vars(kind).get("__annotations__", {})]
        _KNOWN[shape] = {
            name: _declared(name, hints[name], fields[name]) for name in dict.fromkeys(order)
        }
    return _KNOWN[shape]


_KNOWN: dict[type, dict[str, Declared]] = {}


def _declared(name: str, hint: Any, field: dataclasses.Field[Any]) -> Declared:
    kind, *about = get_args(hint)
    said = next(one for one in about if isinstance(one, Option))
    return Declared(name, kind, field.default, said)


def given(options: Group) -> Iterator[tuple[Declared, Any]]:
    """Yield each option of a call with its value."""
    for one in declared(type(options)).values():
        yield one, getattr(options, one.name)
