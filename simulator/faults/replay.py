"""``simulate replay-fault``: one fault of a finished campaign again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from simulator.command.allowed import calling
from simulator.errors import RunError, UserError
from simulator.experiments.claim import trusting
from simulator.experiments.common import load_stacks
from simulator.experiments.job import Job
from simulator.faults.campaign import Campaign, load_campaign
from simulator.faults.draw import Population
from simulator.faults.experiment import Faults, FaultsOptions
from simulator.faults.inject import injection
from simulator.faults.parts import Hit
from simulator.faults.rates import learnt
from simulator.faults.run import built
from simulator.faults.table import read_faults
from simulator.faults.verdict import Row
from simulator.results.read import read_run


@dataclass(frozen=True, slots=True)
class Replayed:
    """One inference with a fault, then and now.

    Attributes:
        fault: its number.
        stack: the stack.
        sample: the sample.
        equal: whether every column is equal.
        values: the value of each column that is not empty, then and now.
    """

    fault: int
    stack: str
    sample: str
    equal: bool
    values: Mapping[str, tuple[Any, Any]]


def replay(folder: Path, number: int, allow_code: bool = False) -> list[Replayed]:
    """Put one fault into the same artifacts again, and compare its rows with those of the run.

    Args:
        folder: of a finished run of ``simulate faults``.
        number: of the fault.
        allow_code: run code that the folder names, where the run was not begun here.

    Raises:
        RunError: the folder holds no such run, or the campaign's document has changed since.
        UserError: there is no such fault.
    """
    manifest, summary, records = read_run(folder)
    if summary["command"] != "faults":
        raise RunError(f"{folder}: a run of simulate {summary['command']}, not of faults")
    if not 0 <= number < summary["faults"]:
        raise UserError(f"--fault {number}: {folder} has the faults 0 to {summary['faults'] - 1}")
    experiment = Faults()
    request = manifest["request"]
    asked = FaultsOptions(**experiment.again(request["arguments"]))
    campaign = load_campaign(asked.campaign, asked.number)
    if campaign.described() != manifest["campaign"]:
        raise RunError(f"{campaign.path}: not what it was when {folder} was made")
    with trusting(request, allow_code), calling(asked):
        return _replayed(folder, number, records, asked, campaign)


def _replayed(
    folder: Path, number: int, records: pa.Table, asked: FaultsOptions, campaign: Campaign
) -> list[Replayed]:
    sides = load_stacks(asked.profiles, asked.train, asked.deploy, asked.changes)
    with Job(Faults(), asked).session() as session:
        names = records.filter(pc.is_null(records["skipped"]))["sample"].unique().to_pylist()
        by_name = {item.name: item for item in session.dataset.items}
        items = [by_name[name] for name in names]
        stored = read_faults(folder, session.card.task)
        options = campaign.options(session.card.task)
        found: list[Replayed] = []
        leaders: list[tuple[Population, str]] = []
        plain, guarded = built(session, sides, asked.protect)
        for stack in (*plain, *guarded):
            own = stored.filter(pc.equal(stored["stack"], stack.side))
            before = own.filter(pc.equal(own["fault"], number)).to_pylist()
            runtimes = session.executor.runtimes
            opened = injection(stack, session.card.task, options, items).open(runtimes)
            population = Population(opened.injector.sites, campaign)
            leaders.append((population, stack.side))
            first = next(side for one, side in leaders if one.alike(population))
            weights = learnt(population, stored.filter(pc.equal(stored["stack"], first)))
            drawn = population.draw(number, session.seed, len(items), weights)
            hits = tuple(Hit(drawn, row["at"], row["sample"]) for row in before)
            now = opened(hits, session.executor.reader(items))
            found += [_compared(*pair) for pair in zip(before, now, strict=True)]
    return found


def _compared(before: Row, now: Row) -> Replayed:
    values = {
        name: (value, now.get(name))
        for name, value in before.items()
        if value is not None or now.get(name) is not None
    }
    equal = all(repr(then) == repr(again) for then, again in values.values())
    return Replayed(before["fault"], before["stack"], before["sample"], equal, values)
