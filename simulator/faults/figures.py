"""The figures of a campaign, from its rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from simulator.analysis import faults
from simulator.experiments.record_store import RecordStore
from simulator.experiments.session import Session
from simulator.experiments.summary import head, reference_of, running
from simulator.faults.campaign import Campaign
from simulator.faults.metrics import curves, metrics
from simulator.faults.on_stack import OnStack
from simulator.faults.persistence import persistence
from simulator.faults.protect import MARK
from simulator.faults.rates import Mask, Rates, ran
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
from simulator.tasks.impact import Due
from simulator.tasks.score import Record
from simulator.tasks.task import Task

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
    session: Session, campaign: Campaign, found: Sequence[OnStack], number: int, done: RecordStore
) -> FaultsSummary:
    """Return the summary of a run.

    Args:
        session: the model and the samples.
        campaign: that was run.
        found: of each stack.
        number: of faults.
        done: the samples without faults.
    """
    spec, card = campaign.spec, session.card
    first, names = found[0], [stack.stack.side for stack in found]
    figures = {stack.stack.side: _Figures(session, campaign, stack, number) for stack in found}
    notices = merged(notice for stack in found for notice in stack.stack.labelled_notices)
    return FaultsSummary(
        **head(card, len(first.items), len(done.skipped)),
        **done.failures(names, reference_of(names)),
        warnings=[*notices, *session.notes],
        campaign=spec.name,
        targets=list(spec.targets),
        kind=spec.kind,
        lasts=spec.lasts,
        at_once=spec.at_once,
        reading=first.options.model_dump(),
        allocation=spec.allocation,
        faults=number,
        stacks={
            side: figure.stack(figure.found.population.alike(first.population))
            for side, figure in figures.items()
        },
        paired={
            stack.stack.side: _paired(before, figures[stack.stack.side])
            for stack in found[1:]
            for before in [_before(stack, found)]
            if stack.population.alike(before.population)
        },
    )


def _before(stack: OnStack, found: Sequence[OnStack]) -> OnStack:
    """What a stack is compared with: itself without a range restriction, or the first one."""
    plain = stack.stack.side.removesuffix(MARK)
    same = [other for other in found if other.stack.side == plain and other is not stack]
    return same[0] if same else found[0]


class _Figures:
    """The figures of one stack."""

    def __init__(self, session: Session, campaign: Campaign, found: OnStack, number: int) -> None:
        self._task, self._campaign, self.found = session.card.task, campaign, found
        data = session.dataset
        self._rule = campaign.rule(data.rate) if campaign.permanent and data.film else None
        self.rows = ran(found.rows)
        given = (session.card.task.resamples, session.seed)
        self.rates = Rates(campaign, found.population, self.rows, number, *given)
        self._sdc = self._mask("sdc")
        self._refused = np.array(pc.fill_null(pc.equal(self.rows["why"], Due.REFUSED), False))
        self._due = self._mask("due") & ~self._refused

    def stack(self, same_faults: bool) -> FaultStack:
        found, every = self.found, np.ones(len(self.rows), bool)
        stack, lost = found.stack, self._mask("due")
        answers = self._answers(lost)
        clean, faulty = metrics(self._task, *answers)
        return FaultStack(
            **running(stack),
            method=found.injector.method,
            tap=found.injector.tap,
            layers=len({found.injector.sites[at].layer for at in found.population.chosen}),
            bits=found.population.bits,
            share_of_bits=found.population.bits / found.population.possible,
            same_faults=same_faults,
            SDC=self.rates.rate(self._sdc, every),
            DUE=self.rates.rate(self._due, every),
            refused=self.rates.rate(self._refused, every),
            masked=self.rates.rate(~self._sdc & ~lost, every),
            further={name: self._known(name) for name in further(self._task)},
            severity=self._severity(every),
            by_bit=self._by_bit(),
            by_layer=self._by("layer"),
            by_operator=self._by("operator"),
            clean=clean,
            faulty=faulty,
            curves=curves(self._task, *answers),
            worst=self._worst(),
            persistence=self._rule and persistence(found, self._task, self._rule),
            inferences_per_second=found.per_second,
        )

    def _mask(self, name: str) -> Mask:
        return np.array(pc.fill_null(self.rows[name], False))

    def _answers(self, lost: Mask) -> tuple[list[Record], list[Record | None], list[Any]]:
        """The answers of the campaign's inferences without and with faults, and the truths."""
        at = self.rows["at"].to_pylist()
        answers = self.rows.select([field.name for field in self._task.columns]).to_pylist()
        faulty = [None if gone else answer for gone, answer in zip(lost, answers, strict=True)]
        golden = [self.found.clean[sample] for sample in at]
        return golden, faulty, [self.found.items[sample].truth for sample in at]

    def _known(self, name: str) -> Rate:
        """The rate of another reading, of what it is defined for: not without truth, say."""
        defined = np.array(pc.is_valid(self.rows[name]))
        among = (defined | self._mask("due")) if defined.any() else defined
        return self.rates.rate(self._mask(name), among)

    def _severity(self, among: Mask) -> dict[str, Mean]:
        """The mean of each severity over the silent corruptions *among*."""
        silent = self._sdc & among
        events = self.rows.filter(pa.array(silent))
        keys = events["fault" if self._campaign.permanent else "at"].to_pylist()
        return {
            name: self.rates.mean(events[name].to_pylist(), silent, keys)
            for name in severities(self._task)
        }

    def _by_bit(self) -> dict[str, FaultGroup]:
        if self._campaign.spec.at_once > 1:
            return {}
        bits = np.array(pc.list_flatten(self.rows["bit"]))
        return {str(bit): self._group(bits == bit) for bit in sorted(set(bits.tolist()))[::-1]}

    def _by(self, name: str) -> dict[str, FaultGroup]:
        if self._campaign.spec.at_once > 1:
            return {}
        values = np.array(pc.list_flatten(self.rows[name]).to_pylist(), object)
        sites = self.found.injector.sites
        order = dict.fromkeys(getattr(sites[at], name) for at in self.found.population.chosen)
        return {one: self._group(values == one) for one in order if (values == one).any()}

    def _group(self, among: Mask) -> FaultGroup:
        return FaultGroup(
            SDC=self.rates.rate(self._sdc, among),
            DUE=self.rates.rate(self._due, among),
            severity=self._severity(among),
        )

    def _worst(self) -> list[FaultEvent]:
        names = severities(self._task)
        events = self.rows.filter(pa.array(self._sdc)).to_pylist()
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
                layer=_joined(row["layer"]),
                target=_joined(row["target"]),
                index=row["index"],
                bit=row["bit"],
                before=list(map(_finite, row["before"])),
                after=list(map(_finite, row["after"])),
                severity={name: _finite(row[name]) for name in names},
            )
            for row in events[:WORST]
        ]


def _joined(names: Sequence[str]) -> str:
    """One name for all bits, or each bit's own."""
    return ", ".join(names if len(set(names)) > 1 else names[:1])


def _finite(value: float | None) -> float | None:
    return value if value is not None and np.isfinite(value) else None


def _paired(first: OnStack, other: _Figures) -> PairedFaults:
    """Compare the silent corruptions of the same faults in two stacks."""
    before = _by_inference(ran(first.rows))
    keys = list(_by_inference(other.rows).items())
    both = np.array([key in before for key, _ in keys], bool)
    ours = np.array([before.get(key, False) for key, _ in keys], bool)
    theirs = np.array([sdc for _, sdc in keys], bool)
    found = faults.paired(ours[both].tolist(), theirs[both].tolist())
    delta: float | None = found.delta
    ends: list[float | None] = list(found.ci95)
    if other.rates.weighted:
        delta, ends = other.rates.delta(theirs & ~ours, ours & ~theirs, both)
    return PairedFaults(
        than=first.stack.side,
        only_first=found.only_first,
        only_this=found.only_second,
        both=found.both,
        delta=delta,
        ci95=ends,
        p=found.p,
    )


def _by_inference(rows: pa.Table) -> Mapping[tuple[int, int], bool]:
    columns: Iterable[Any] = (rows[name].to_pylist() for name in ("fault", "at", "sdc"))
    return {(fault, at): sdc for fault, at, sdc in zip(*columns, strict=True)}
