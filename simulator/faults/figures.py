"""The figures of a campaign, from its rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from simulator.analysis import faults, ivmod
from simulator.experiments.session import Session
from simulator.faults.campaign import Campaign
from simulator.faults.measured import Measured
from simulator.faults.persistence import persistence
from simulator.faults.protect import MARK
from simulator.notices import merged
from simulator.results.faults import (
    FaultEvent,
    FaultGroup,
    FaultsSummary,
    FaultStack,
    Mean,
    PairedFaults,
    Rate,
)
from simulator.results.shared import Metrics
from simulator.statistics.strata import Stratum, stratified
from simulator.tasks.impact import Due
from simulator.tasks.score import Record
from simulator.tasks.task import Task

Mask = NDArray[np.bool_]
FEW = 10
"""A mean of fewer events gets no interval: the bootstrap of few is far too narrow."""
WORST = 20
"""How many of the worst corruptions a summary lists."""


def severities(task: Task) -> list[str]:
    """Return the columns of a task's impact that say how severe a corruption is."""
    return [
        field.name
        for field in task.Impact.columns
        if pa.types.is_floating(field.type) or field.name.startswith("delta_")
    ]


def further(task: Task) -> list[str]:
    """Return the columns of a task's impact that are other readings of a corruption."""
    return [field.name for field in task.Impact.columns if pa.types.is_boolean(field.type)]


def vocabulary(task: Task, sides: Sequence[str]) -> dict[str, Sequence[str]]:
    """Return the names of a run's figures, to check gate rules before it is run."""
    return {
        **task.vocabulary(),
        "stack": sides,
        "other stack": sides[1:],
        "severity": severities(task),
        "fault rate": further(task),
    }


def summarized(
    session: Session,
    campaign: Campaign,
    found: Sequence[Measured],
    number: int,
    skipped: int,
) -> FaultsSummary:
    """Return the summary of a run."""
    spec, card = campaign.spec, session.card
    first = found[0]
    notices = merged(notice for one in found for notice in one.stack.labelled_notices)
    return FaultsSummary(
        model=card.spec.name,
        task=card.task.name,
        metric=card.task.headline,
        samples=len(first.items),
        sample_unit=card.modality.unit,
        skipped=skipped,
        warnings=[*notices, *session.notes],
        campaign=spec.name,
        targets=list(spec.targets),
        kind=spec.kind,
        lasts=spec.lasts,
        at_once=spec.at_once,
        faults=number,
        stacks={
            one.stack.side: _Figures(session, campaign, one).stack(
                one.population.alike(first.population)
            )
            for one in found
        },
        paired={
            one.stack.side: _paired(before, one)
            for one in found[1:]
            for before in [_before(one, found)]
            if one.population.alike(before.population)
        },
    )


def _before(one: Measured, found: Sequence[Measured]) -> Measured:
    """What a stack is compared with: itself without a range restriction, or the first one."""
    plain = one.stack.side.removesuffix(MARK)
    same = [other for other in found if other.stack.side == plain and other is not one]
    return same[0] if same else found[0]


class _Figures:
    """The figures of one stack."""

    def __init__(self, session: Session, campaign: Campaign, found: Measured) -> None:
        self._task, self._campaign, self._found = session.card.task, campaign, found
        self._seed, self._resamples = session.seed, session.card.task.resamples
        self._lasting = campaign.permanent and session.dataset.film
        self._rows = found.rows.filter(pc.is_null(found.rows["skipped"]))
        self._fault = self._array("fault")
        self._sdc = self._mask("sdc")
        self._refused = np.array(pc.fill_null(pc.equal(self._rows["why"], Due.REFUSED), False))
        self._due = self._mask("due") & ~self._refused

    def stack(self, same_faults: bool) -> FaultStack:
        found, every = self._found, np.ones(len(self._rows), bool)
        stack, lost = found.stack, self._mask("due")
        clean, faulty = self._metrics(lost)
        return FaultStack(
            profile=stack.profile.name,
            overrides=list(stack.profile.overrides),
            effective={"compute": stack.effective.compute, **stack.effective.options},
            method=found.injector.method,
            tap=found.injector.tap,
            layers=len({found.injector.sites[at].layer for at in found.population.chosen}),
            bits=found.population.bits,
            share_of_bits=found.population.bits / found.population.possible,
            same_faults=same_faults,
            SDC=self._rate(self._sdc, every),
            DUE=self._rate(self._due, every),
            refused=self._rate(self._refused, every),
            masked=self._rate(~self._sdc & ~lost, every),
            further={name: self._known(name) for name in further(self._task)},
            severity=self._severity(every),
            by_bit=self._by_bit(),
            by_layer=self._by("layer"),
            by_operator=self._by("operator"),
            clean=clean,
            faulty=faulty,
            worst=self._worst(),
            persistence=persistence(found, self._task) if self._lasting else None,
            inferences_per_second=found.per_second,
        )

    def _array(self, name: str) -> NDArray[np.int64]:
        return np.asarray(self._rows[name].to_numpy(), np.int64)

    def _mask(self, name: str) -> Mask:
        return np.array(pc.fill_null(self._rows[name], False))

    def _metrics(self, lost: Mask) -> tuple[Metrics, Metrics]:
        """The task's metrics of the campaign's inferences, without and with faults."""
        at, names = self._array("at").tolist(), self._task.metrics
        if not at:
            return dict.fromkeys(names), dict.fromkeys(names)
        answers = self._rows.select([field.name for field in self._task.columns]).to_pylist()
        faulty = [None if gone else one for gone, one in zip(lost, answers, strict=True)]
        golden = [self._found.clean[sample] for sample in at]
        truths = [self._found.items[sample].truth for sample in at]
        both = ivmod.metrics(self._task, golden, faulty, truths)
        clean, under = ({name: found[name] for name in names} for found in both)
        return clean, under

    def _rate(self, hit: Mask, among: Mask) -> Rate:
        """A share of the inferences *among*; of a permanent fault they depend on each other."""
        of, count = int(among.sum()), int((hit & among).sum())
        if not of:
            return Rate(rate=None, ci95=[None, None], count=0, of=0)
        if among.all() and self._campaign.spec.allocation == "equal":
            return self._stratified(hit, among)
        if self._campaign.permanent:
            of_faults = self._fault[among].tolist()
            found = faults.lasting(hit[among].tolist(), of_faults, self._resamples, self._seed)
        else:
            found = faults.rate(count, of)
        return Rate(rate=found.value, ci95=list(found.ci95), count=count, of=of)

    def _known(self, name: str) -> Rate:
        """The rate of another reading, of what it is defined for: not without truth, say."""
        defined = np.array(pc.is_valid(self._rows[name]))
        among = (defined | self._mask("due")) if defined.any() else defined
        if among.any() and self._campaign.spec.allocation == "equal":
            return self._stratified(self._mask(name), among)
        return self._rate(self._mask(name), among)

    def _stratified(self, hit: Mask, among: Mask) -> Rate:
        """The rate of all bits, from as many faults in each stratum."""
        stratum, every = self._array("stratum"), self._found.population.strata
        parts = [
            Stratum(one.share, int((hit & own).sum()), int(own.sum()))
            for at, one in enumerate(every)
            for own in [among & (stratum == at)]
        ]
        count, of = int((hit & among).sum()), int(among.sum())
        if not all(one.trials for one in parts):
            return Rate(rate=None, ci95=[None, None], count=count, of=of)
        found = stratified(parts)
        return Rate(rate=found.value, ci95=[found.low, found.high], count=count, of=of)

    def _severity(self, among: Mask) -> dict[str, Mean]:
        """The mean of each severity over the silent corruptions *among*."""
        events = self._rows.filter(pa.array(self._sdc & among))
        keys = events["fault" if self._campaign.permanent else "at"].to_pylist()
        return {name: self._mean(events[name].to_pylist(), keys) for name in severities(self._task)}

    def _mean(self, values: Sequence[float | None], keys: Sequence[int]) -> Mean:
        known = [one if one is not None and np.isfinite(one) else None for one in values]
        found = faults.mean(known, keys, self._resamples, self._seed)
        ends = found.ci95 if found.events >= FEW else None
        return Mean(value=found.value, ci95=list(ends or (None, None)), of=found.events)

    def _by_bit(self) -> dict[str, FaultGroup]:
        if self._campaign.spec.at_once > 1:
            return {}
        bits = np.array(pc.list_flatten(self._rows["bit"]))
        return {str(bit): self._group(bits == bit) for bit in sorted(set(bits.tolist()))[::-1]}

    def _by(self, name: str) -> dict[str, FaultGroup]:
        values = np.array(self._rows[name].to_pylist(), object)
        sites = self._found.injector.sites
        order = dict.fromkeys(getattr(sites[at], name) for at in self._found.population.chosen)
        return {one: self._group(values == one) for one in order if (values == one).any()}

    def _group(self, among: Mask) -> FaultGroup:
        return FaultGroup(
            SDC=self._rate(self._sdc, among),
            DUE=self._rate(self._due, among),
            severity=self._severity(among),
        )

    def _worst(self) -> list[FaultEvent]:
        names = severities(self._task)
        events = self._rows.filter(pa.array(self._sdc)).to_pylist()
        events.sort(key=lambda row: tuple(-abs(row[name] or 0) for name in names[:1]))
        if self._campaign.permanent:  # the sample with which each fault is worst
            worst: dict[int, Record] = {}
            for row in events:
                worst.setdefault(row["fault"], row)
            events = list(worst.values())
        return [
            FaultEvent(
                fault=row["fault"],
                sample=row["sample"],
                layer=row["layer"],
                target=row["target"],
                index=row["index"],
                bit=row["bit"],
                before=list(map(_finite, row["before"])),
                after=list(map(_finite, row["after"])),
                severity={name: _finite(row[name]) for name in names},
            )
            for row in events[:WORST]
        ]


def _finite(value: float | None) -> float | None:
    return value if value is not None and np.isfinite(value) else None


def _paired(first: Measured, other: Measured) -> PairedFaults:
    """Compare the silent corruptions of the same faults in two stacks."""
    ours, theirs = (_by_inference(one.rows) for one in (first, other))
    both = [key for key in ours if key in theirs]
    found = faults.paired([ours[key] for key in both], [theirs[key] for key in both])
    return PairedFaults(
        than=first.stack.side,
        only_first=found.only_first,
        only_this=found.only_second,
        both=found.both,
        delta=found.delta,
        ci95=list(found.ci95),
        p=found.p,
    )


def _by_inference(rows: pa.Table) -> Mapping[tuple[int, int], bool]:
    ran = rows.filter(pc.is_null(rows["skipped"]))
    columns: Iterable[Any] = (ran[name].to_pylist() for name in ("fault", "at", "sdc"))
    return {(fault, at): sdc for fault, at, sdc in zip(*columns, strict=True)}
