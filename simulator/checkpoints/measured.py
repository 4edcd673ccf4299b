"""The resampled figures of finished sweeps, all on the same resamples of the same samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from simulator.conditions.condition import under
from simulator.errors import RunError, UserError, one_line
from simulator.experiments.common import TRAIN
from simulator.experiments.failures import tried_in
from simulator.experiments.session import Session
from simulator.report.reading import read
from simulator.results.manifest import RunManifest
from simulator.results.suites import SweepSummary
from simulator.statistics.bootstrap import Figure, Floats, Ratio, Resamples
from simulator.tasks.score import Record
from simulator.tasks.task import Task

_ODD = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What records that somebody made up can raise."""
Key = tuple[str, str]
"""A column and an option of it."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """A finished sweep, and what its figures follow from.

    Attributes:
        folder: of the run.
        manifest: of the run.
        summary: of the run.
        task: of the model.
        truths: what people have annotated, by sample.
        records: by the name of the stack, then by sample; none of those that were skipped.
        lost: why stacks cannot answer a sample, by sample and stack.
    """

    folder: Path
    manifest: RunManifest
    summary: SweepSummary
    task: Task
    truths: Mapping[str, object]
    records: Mapping[str, Mapping[str, Record]]
    lost: Mapping[str, Mapping[str, str]]

    @property
    def keys(self) -> list[Key]:
        """The options that it ran, in the suite's order."""
        columns = self.summary.columns
        return [(name, one) for name in self.summary.order if name in columns
                for one in columns[name].options]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Measured:
    """A model's resampled figures, each (1 + R + n,).

    Attributes:
        sweep: where they are from.
        trained: the headline metric of the training stack.
        drops: what each option loses of it.
        flips: the share of answers that each option changes.
    """

    sweep: Sweep
    trained: Floats
    drops: Mapping[Key, Floats]
    flips: Mapping[Key, Floats]


def opened(folder: Path) -> Sweep:
    """Read a finished sweep; the model card and the data must still be where they were.

    Raises:
        UserError: it is no sweep, or its model card or its data are gone or have other labels.
    """
    run = read(folder)
    summary, manifest = run.summary, run.manifest
    if not isinstance(summary, SweepSummary) or not isinstance(manifest, RunManifest):
        raise RunError(f"{folder}: a run of simulate {run.command}; sweeps can be compared")
    if summary.early is not None:
        raise UserError(
            f"{folder}: options were dropped early (--until-decided), so that they have different "
            "samples; compare sweeps that ran in whole"
        )
    assert manifest.request is not None
    asked = manifest.request.arguments
    with Session.open(
        manifest.model.card, asked.get("data"), asked.get("limit"), manifest.seed, 1, None,
        None, under(asked.get("under"), asked.get("trial", 0)),
    ) as session:  # fmt: skip
        task = session.card.task
        truths = {item.name: item.truth for item in session.dataset.items}
    changed = [
        name
        for name, stamp in manifest.data.truth.items()
        if name not in truths or task.stamp(truths[name]) != stamp
    ]
    if changed:
        raise UserError(
            f"{folder}: {len(changed)} samples are gone or have other labels since the run, the "
            f"first is {changed[0]}"
        )
    records = {
        side: {row["sample"]: row for row in run.side(side).to_pylist()} for side in manifest.stacks
    }
    tried = tried_in(run.records, manifest.stacks) if run.records is not None else []
    lost = {one.sample: one.failed for one in tried if one.failed}
    return Sweep(folder, manifest, summary, task, truths, records, lost)


def shared_samples(sweeps: Sequence[Sweep]) -> list[str]:
    """Return the samples that went through every stack of every sweep, in order.

    Raises:
        UserError: the sweeps are of different suites, training stacks, tasks or samples.
    """
    first = sweeps[0]
    for other in sweeps[1:]:
        for what, one, two in (
            ("suites", first.summary.suite, other.summary.suite),
            ("training stacks", first.summary.train.profile, other.summary.train.profile),
            ("tasks", first.summary.task, other.summary.task),
            ("conditions", first.summary.under, other.summary.under),
            ("data", first.manifest.data.images, other.manifest.data.images),
            ("labels", first.manifest.data.truth, other.manifest.data.truth),
        ):
            if one != two:
                shown = f": {one} and {two}" if isinstance(one, str) else ""
                raise UserError(
                    f"{first.folder} and {other.folder} have different {what}{shown}; models are "
                    "compared in one suite on the same samples"
                )
    names = [
        name
        for name in first.manifest.data.images
        if all(name in records for sweep in sweeps for records in sweep.records.values())
    ]
    if not names:
        raise UserError("no sample went through every stack of every model")
    return names


def measure(sweep: Sweep, keys: Sequence[Key], names: Sequence[str], draws: Resamples) -> Measured:
    """Work the figures of a sweep out of its records.

    Args:
        sweep: one model.
        keys: the options.
        names: the samples.
        draws: of the bootstrap; the same for every model.

    Raises:
        RunError: these are not records of this task, or it has no headline metric.
    """
    truths = [sweep.truths[name] for name in names]
    sides = [TRAIN, *("/".join(key) for key in keys)]
    try:
        rows = {side: [sweep.records[side][name] for name in names] for side in sides}
        figures = [sweep.task.score(rows[side], truths).figure for side in sides]
        known = [figure for figure in figures if figure is not None]
        if len(known) < len(sides):
            raise RunError(f"{sweep.folder}: {sweep.task.headline} is not known of these samples")
        changes = [_flips(rows[side]) for side in sides[1:]]
        trained, *found = draws.of_each([*known, *changes])
    except _ODD as error:
        raise RunError(f"{sweep.folder}: not records of a sweep: {one_line(error, 100)}") from error
    values, flips = found[: len(keys)], [_known(one, draws.number) for one in found[len(keys) :]]
    drops = {key: trained - value for key, value in zip(keys, values, strict=True)}
    return Measured(sweep, trained, drops, dict(zip(keys, flips, strict=True)))


def _known(flips: Floats, number: int) -> Floats:
    """A flip rate that is 0 where there is nothing that could flip."""
    return np.concatenate([np.nan_to_num(flips[: 1 + number]), flips[1 + number :]])


def _flips(records: Sequence[Record]) -> Figure:
    """A flip rate; NaN where there is nothing that could flip."""
    changed, units = (
        np.array([record[name] for record in records], np.float64) for name in ("changed", "units")
    )
    return Ratio(changed, units)
