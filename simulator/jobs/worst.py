"""The worst case of a suite: the combination of options that loses most."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from simulator.errors import RunError, UserError
from simulator.jobs.absent import absent_options
from simulator.jobs.common import (
    Result,
    default_folder,
    manifest,
    refuse_missing,
    request,
    run_and_keep,
)
from simulator.profile import axes
from simulator.profile.choose import choose
from simulator.profile.load import load
from simulator.profile.suite import load_suite
from simulator.stack import Chosen, notes
from simulator.store import MANIFEST, SUMMARY, RunWriter, check_free, write_json
from simulator.study import Answers, Progress, Study, Variant, answers

EXHAUSTIVE = 64
"""So many combinations are all tried; with more, only the greedy path is."""

Picks = tuple[tuple[str, str], ...]
"""(column, option) in the order in which they were combined."""


def worst(
    suite: str,
    *,
    train: str | None = None,
    model: str | Path | None = None,
    data: str | Path | None = None,
    limit: int | None = None,
    seed: int = 0,
    out: str | Path | None = None,
    overwrite: bool = False,
    resume: bool = False,
    workers: int | None = None,
    memory: int | None = None,
    progress: Progress | None = None,
) -> Result:
    """Combine a suite's options step by step, each time the one that loses most.

    Args:
        suite: a suite's path, or a built-in name.
        train: the training stack; the suite's own by default.
        model: a model card; the built-in model by default.
        data: labelled images, a folder or a data card; the built-in ones by default.
        limit: take a random subset of this many images.
        seed: of the subset and the calibration images.
        out: the run folder; each step is a run folder below it.
        overwrite: replace a run that is already there.
        resume: go on with the search that is in *out*.
        workers: samples in flight.
        memory: MiB that the samples in flight may need together.
        progress: told how the run goes.

    Returns:
        ``path``: what was added at each step, with the headline metric and its drop after it;
        ``exhaustive``: the worst of all combinations, where there are at most 64, else None.

    Source:
        SysNoise, section 4.4 and Figure 3 (step-by-step combination).
    """
    started = time.time()
    loaded = load_suite(suite)
    base = train or loaded.spec.train
    options: dict[str, dict[str, list[str]]] = {}
    for column, option, changes in loaded.options():
        options.setdefault(column, {})[option] = changes
    with Study(model, data, limit, seed, workers, memory, progress) as study:
        first = _chosen(base, options, ())
        folder = (
            Path(out)
            if out
            else default_folder(
                f"worst-{loaded.spec.name}", {"train": first, "deploy": first}, started
            )
        )
        asked = request(
            "worst", suite=suite, train=train, model=model, data=data, limit=limit, seed=seed
        )
        if not resume:
            check_free(folder, overwrite)
        _mark(folder, asked, "running")
        study.require_truth()
        absent = _drop_absent(study, base, options)
        search = _Search(study, base, options, folder, (overwrite, resume))
        path = search.greedy()
        count = math.prod(len(of) + 1 for of in options.values())
        best = search.exhaustive() if count <= EXHAUSTIVE else None
    summary = {
        "schema": 1,
        "command": "worst",
        "suite": loaded.spec.name,
        "model": study.card.spec.name,
        "train": {"profile": first[0].name},
        "samples": search.samples,
        "task": study.card.spec.task,
        "metric": study.card.task.headline,
        study.card.task.headline: search.trained,
        "path": path,
        "combinations": count,
        "exhaustive": best,
        "absent": absent,
        "warnings": [*notes(search.warnings), *study.notes],
        "skipped": search.skipped,
        "seconds": round(time.time() - started, 3),
        "gate": {"passed": True, "rules": []},
    }
    _mark(folder, asked, "complete", summary)
    return Result(summary, folder)


def _mark(
    folder: Path, asked: dict[str, Any], status: str, summary: dict[str, Any] | None = None
) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if summary is not None:
            write_json(folder / SUMMARY, summary)
        write_json(folder / MANIFEST, {"status": status, "request": asked})
    except OSError as error:
        raise RunError(f"{folder}: cannot be written: {error.strerror}") from error


class _Search:
    def __init__(
        self,
        study: Study,
        base: str,
        options: Mapping[str, Mapping[str, list[str]]],
        folder: Path,
        again: tuple[bool, bool],
    ) -> None:
        self.study, self.base, self.options = study, base, options
        self.folder, self.again = folder, again
        self.runs = 0
        self.samples = 0
        self.trained = 0.0
        self.skipped = 0
        self.warnings: list[tuple[str, str]] = []

    def greedy(self) -> list[dict[str, Any]]:
        taken: Picks = ()
        path = []
        while candidates := [
            (*taken, (column, option))
            for column, of in self.options.items()
            for option in of
            if self._compatible((*taken, (column, option)))
        ]:
            value = self._values(candidates)
            taken = min(candidates, key=lambda picks: value[picks])
            path.append(self._step(taken, value[taken]))
        return path

    def exhaustive(self) -> dict[str, Any]:
        columns = [[None, *((column, o) for o in of)] for column, of in self.options.items()]
        combinations = [
            tuple(pick for pick in picks if pick is not None)
            for picks in itertools.product(*columns)
        ]
        value = self._values([p for p in combinations if p and self._compatible(p)])
        found = min(value, key=lambda picks: value[picks])
        return {**self._step(found, value[found]), "picks": ["/".join(p) for p in found]}

    def _compatible(self, picks: Picks) -> bool:
        """Whether no two options write the same axis of the profile."""
        written = [
            {axes.axis_of(change.partition("=")[0]) for change in self.options[column][option]}
            for column, option in picks
        ]
        return sum(map(len, written)) == len(set().union(*written))

    def _step(self, picks: Picks, value: float) -> dict[str, Any]:
        metric = self.study.card.task.headline
        return {"added": "/".join(picks[-1]), metric: value, "drop": self.trained - value}

    def _values(self, candidates: Sequence[Picks]) -> dict[Picks, float]:
        """Run the training stack and all candidates in one plan."""
        train = _chosen(self.base, self.options, ())
        own = [train, *(_chosen(self.base, self.options, picks) for picks in candidates)]
        refuse_missing(own)
        names = ["train", *(" ".join("/".join(p) for p in picks) for picks in candidates)]
        variants = [
            Variant(name, chosen, {"train": train, "deploy": chosen})
            for name, chosen in zip(names, own, strict=True)
        ]
        stacks = self.study.stacks(variants)
        merged = self.study.plan(stacks)
        self.runs += 1
        folder = self.folder / f"step-{self.runs}"
        start, task = manifest(stacks, self.study, []), self.study.card.task
        with RunWriter(folder, start, task.columns, *self.again) as run:
            done = run_and_keep(self.study, merged, run, names, timed=False)
            found = answers(task, names, done)
            values = [self._headline(found, name) for name in names]
            run.finish({task.headline: dict(zip(names, values, strict=True))}, {})
        self.warnings += [told for stack in stacks for told in stack.told]
        self.skipped = max(self.skipped, found.skipped)
        self.samples, self.trained = len(found.items), values[0]
        return dict(zip(candidates, values[1:], strict=True))

    @staticmethod
    def _headline(found: Answers, name: str) -> float:
        value = found.score(name).metrics[found.task.headline]
        if value is None:
            raise UserError(
                f"the worst case is the largest loss of {found.task.headline}; give images with "
                "labels"
            )
        return value


def _chosen(base: str, options: Mapping[str, Mapping[str, list[str]]], picks: Picks) -> Chosen:
    changes = [change for column, option in picks for change in options[column][option]]
    profile = load(base, changes)
    return profile, choose(profile)


def _drop_absent(
    study: Study, base: str, options: dict[str, dict[str, list[str]]]
) -> dict[str, str]:
    """Take out the options that the model has no use for; return why."""
    own = {
        (column, option): _chosen(base, options, ((column, option),))
        for column, of in options.items()
        for option in of
    }
    absent = absent_options(study, _chosen(base, options, ()), own)
    for column, option in absent:
        del options[column][option]
        if not options[column]:
            del options[column]
    return {"/".join(key): why for key, why in absent.items()}
