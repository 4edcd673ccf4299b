"""Shared by all experiments: loading a pair, writing a run's manifest and records."""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from itertools import chain, count
from pathlib import Path
from typing import get_args

from simulator import checkout, machine
from simulator.command import allowed
from simulator.command.options import Pixels
from simulator.contract import Stage
from simulator.contract.model import shape_words
from simulator.contract.model_format import RECORD
from simulator.data.address import absolute
from simulator.errors import MissingLibrary, ProfileError, UserError, unknown
from simulator.experiments.session import Session, Variant
from simulator.experiments.summary import SIDES
from simulator.model.said import described
from simulator.notices import Kind, Notice
from simulator.pipeline import adapted, recorded
from simulator.pipeline.batched import Batched
from simulator.pipeline.in_force import as_dict
from simulator.pipeline.inference import Infer
from simulator.pipeline.stack import Pair, ResolvedProfile, Stack
from simulator.profile import axes
from simulator.profile.artifact import own_file
from simulator.profile.document import inside, read
from simulator.profile.implementations import choose
from simulator.profile.load import load
from simulator.profile.modality import IMAGE, axes_of
from simulator.profile.pixels import unasked, with_pixels_of
from simulator.profile.reference import read_reference
from simulator.results.manifest import RunManifest
from simulator.results.shared import Profile
from simulator.typed import plain

TRAIN = "train"
"""The name, in records, of the stack that the others are compared with."""
PLAIN = {"audio": "librosa_fp32", "text": "text_fp32"}
"""What code extends that takes samples which are no images, by their kind."""
ONLY = SIDES[1]
"""The name of the stack in a run of one profile."""
COMBINED = "combined"
"""The name of the column that holds a suite's ``combined`` option, and of that option."""


def pair_of(
    train: str, deploy: str, overrides: Sequence[str], pixels: Pixels = "own"
) -> dict[str, ResolvedProfile]:
    """Load both sides of a pair; see :func:`stacks_of`.

    Args:
        train: the training stack.
        deploy: the deployment stack.
        overrides: ``STACK.KEY=VALUE``.
        pixels: ``train``: the pixel part of *deploy* is that of *train*.

    Raises:
        UserError: see :func:`stacks_of`; or *pixels* is neither ``own`` nor ``train``.
    """
    if pixels not in get_args(Pixels):
        raise UserError(f"pixels: {unknown('value', pixels, get_args(Pixels))}")
    named = dict(zip(SIDES, (train, deploy), strict=True))
    pair = stacks_of(named, overrides, keep_runtime=(ONLY,) if pixels == TRAIN else ())
    if pixels == TRAIN:
        pair["deploy"] = with_pixels_of(pair["train"][0], pair["deploy"][0])
    return pair


def unasked_notices(pair: Mapping[str, ResolvedProfile]) -> list[Notice]:
    """Return a notice if pixel axes differ that nobody asked for."""
    text = unasked(pair["train"], pair["deploy"])
    return [] if text is None else [Notice(Kind.UNASKED, text, ("deploy",))]


def stacks_of(
    references: Mapping[str, str], overrides: Sequence[str], keep_runtime: Collection[str] = ()
) -> dict[str, ResolvedProfile]:
    """Load profiles by the names of their stacks, each with its overrides.

    Args:
        references: a profile's path or name, by the name of its stack.
        overrides: ``STACK.KEY=VALUE``.
        keep_runtime: the stacks whose profile was named for its runtime.

    Raises:
        ProfileError: with all problems of all profiles.
        UserError: an override names none of the stacks.
    """
    changes: dict[str, list[str]] = {side: [] for side in references}
    for override in overrides:
        side, _, rest = override.partition(".")
        if side not in changes or not rest:
            raise UserError(
                f"--set {override}: STACK.KEY=VALUE expected with STACK {' or '.join(references)}, "
                f"for example {list(references)[-1]}.resize.backend=opencv"
            )
        changes[side].append(rest)
    found: dict[str, ResolvedProfile] = {}
    problems: list[str] = []
    for side, reference in references.items():
        try:
            changes[side] += _extends(reference, references, changes[side])
            profile = load(reference, changes[side], side, side in keep_runtime)
            choices = choose(profile)
            problems += axes.claims_problem(profile, choices)
            found[side] = profile, choices
        except ProfileError as error:
            problems += error.problems
    if problems:
        raise ProfileError(list(dict.fromkeys(problems)))
    return found


def _extends(reference: str, references: Mapping[str, str], changes: Sequence[str]) -> list[str]:
    """What a stack that is no profile extends where samples are no images."""
    if read_reference(reference) is None or any(one.startswith("extends=") for one in changes):
        return []
    others = [one for one in references.values() if read_reference(one) is None]
    kinds = {load(one).spec.modality for one in others} or {_taken(allowed.current().model)}
    return [f"extends={plain}" for kind, plain in PLAIN.items() if kind in kinds]


def _taken(model: str | None) -> str:
    """The kind of samples of a model, as its card says; images where there is no card."""
    if model is None or Path(model).suffix not in (".yaml", ".yml"):
        return IMAGE
    with suppress(ProfileError):  # the card is read again, and refused with what is wrong in it
        return str(inside(read(Path(model)).values, ("input", "kind")) or IMAGE)
    return IMAGE


def load_stacks(
    profiles: Sequence[str], train: str | None, deploy: str | None, overrides: Sequence[str]
) -> dict[str, ResolvedProfile]:
    """Load the stacks of an experiment; see :func:`named_profiles`.

    Args:
        profiles: paths or names; empty for a pair.
        train: the training stack of a pair.
        deploy: the deployment stack of a pair.
        overrides: ``STACK.KEY=VALUE``.

    Raises:
        ProfileError: with all problems of all profiles.
        UserError: neither a pair nor a profile was given, or an override names none of them.
    """
    return stacks_of(named_profiles(profiles, train, deploy), overrides)


def named_profiles(
    profiles: Sequence[str], train: str | None, deploy: str | None
) -> dict[str, str]:
    """Return the profiles of an experiment by the names of their stacks.

    They are a pair, one profile, or several by their own names.

    Raises:
        UserError: neither a pair nor a profile was given.
    """
    if train is not None and deploy is not None and not profiles:
        return {"train": train, "deploy": deploy}
    if train is not None or deploy is not None or not profiles:
        raise UserError("give --profile, once or more, or both --train and --deploy")
    if len(profiles) == 1:
        return {ONLY: profiles[0]}
    found: dict[str, str] = {}
    for reference in profiles:
        stem = re.sub(r"\.ya?ml$", "", Path(reference).name)
        plain = re.sub(r"[^\w-]+", "_", stem)
        numbered = (f"{plain}-{number}" for number in count(2))
        name = next(one for one in chain([plain], numbered) if one not in found)
        found[name] = reference
    return found


def pair_for(sides: Mapping[str, ResolvedProfile], chosen: ResolvedProfile) -> Pair:
    """The profiles that a stack's calibration may refer to as ``train`` and ``deploy``."""
    return sides if set(sides) == set(SIDES) else {"train": chosen, "deploy": chosen}


def variants(sides: Mapping[str, ResolvedProfile]) -> dict[str, Variant]:
    """Return the stacks of a job as a session builds them, each under its own name."""
    return {side: Variant(side, chosen, pair_for(sides, chosen)) for side, chosen in sides.items()}


def chosen(reference: str, changes: Sequence[str]) -> ResolvedProfile:
    """Load one profile with its overrides, and choose its implementations.

    Args:
        reference: the profile's path or name.
        changes: overrides, ``KEY=VALUE``.

    Raises:
        ProfileError: with all problems of the profile.
    """
    profile = load(reference, changes)
    return profile, choose(profile)


def named(stack: ResolvedProfile) -> Profile:
    """Return a stack as summaries name it."""
    return Profile(profile=stack[0].name, overrides=list(stack[0].overrides))


def refuse_missing(stacks: Iterable[ResolvedProfile]) -> None:
    """Make sure that every backend can run; a runtime on another machine is asked later.

    Raises:
        MissingLibrary: with a line for each backend that cannot.
    """
    problems = []
    needed = {
        (choice.backend.name, choice.offer.present): (
            choice,
            stage == Stage.RUNTIME and profile.spec.precision.artifact is not None,
        )
        for profile, choices in stacks
        for stage, choice in choices.items()
        if stage != Stage.RUNTIME or not profile.spec.runtime.resources
    }
    for choice, finished in needed.values():
        try:
            choice.require()
        except MissingLibrary as error:
            problems.append(f"{error}; or {RECORD}" if finished else str(error))
    if problems:
        raise MissingLibrary("\n".join(dict.fromkeys(problems)))


def manifest(stacks: Sequence[Stack], session: Session, overrides: Sequence[str]) -> RunManifest:
    """Return the manifest of a run, as it is before the first sample.

    Args:
        stacks: of the run.
        session: the model and the samples.
        overrides: ``STACK.KEY=VALUE``; *stacks* already include them.
    """
    card, dataset = session.card, session.dataset
    further = {key: session.digests[path] for key, path in card.files.items()}
    every = axes_of(*(stack.profile.spec for stack in stacks))
    found = {
        "status": "running",
        "created": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "commit": checkout.commit(),
        "machine": machine.describe({k: v for stack in stacks for k, v in stack.versions.items()}),
        "model": {
            "card": str(card.path.resolve()),
            "spec": card.written.model_dump(by_alias=True, exclude_none=True),
            "sha256": session.source.digest,
            "files": further,
            "labels": card.labels.names if card.labels else None,
        },
        "data": {
            "root": absolute(dataset.root),
            "images": {item.name: session.digests[item.path] for item in dataset.items},
            "truth": {item.name: card.task.stamp(item.truth) for item in dataset.items},
        },
        "seed": session.seed,
        "batch": max((one.profile.spec.runtime.samples for one in stacks), default=1),
        "limit": session.limit,
        "executor": session.executor.described(),
        "isolate": session.builder.runtimes.isolation.when,
        "under": session.condition and plain(session.condition),
        "overrides": list(overrides),
        "stacks": {
            stack.side: {
                "profile": stack.profile.spec.model_dump(by_alias=True, exclude_none=True),
                "choices": [choice.identity() for choice in stack.choices.values()],
                "artifact": {
                    "key": stack.artifact.key,
                    "sha256": session.digests[stack.artifact.path],
                    "files": _own_files(stack, session),
                    "after": [report.model_dump(mode="json") for report in stack.artifact.reports],
                },
                "recordings": _recordings(stack),
                "effective": as_dict(stack.effective),
                "order": _order(stack, session),
                "axes": {
                    axis: asdict(described(stack.profile, stack.choices, axis, card))
                    for axis in every
                },
            }
            for stack in stacks
        },
    }
    return RunManifest.model_validate(found)


def _order(stack: Stack, session: Session) -> list[int] | None:
    """The order of the samples, where the network adapts to them."""
    choice = stack.choices.get(Stage.ADAPT)
    return adapted.order(choice, len(session.dataset.items)) if choice else None


def _own_files(stack: Stack, session: Session) -> dict[str, str]:
    """The SHA-256 of each file of a model that was made elsewhere; the key of each engine."""
    own = own_file(stack.profile)
    files = own.format.files(own.path) if own else []
    found = {file.name: session.digests[file] or "" for file in files}
    for step in stack.chain.recipes:
        network = step.infer if isinstance(step, Batched) else step
        if isinstance(network, Infer):
            found |= {shape_words(shape): engine.key for shape, engine in network.sized}
    return found


def _recordings(stack: Stack) -> dict[str, str]:
    """The SHA-256 of every recording that replaces a stage of a stack."""
    found = recorded.recordings(stack.profile, stack.choices)
    return {stage: recording.digest for stage, recording in found.items()}
