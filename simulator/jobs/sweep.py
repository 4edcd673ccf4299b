"""Sweep a suite: every option of every axis against the training stack, for any models."""

from __future__ import annotations

import math
import statistics as st
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simulator.errors import ModelError, UserError
from simulator.jobs.absent import COMBINED, TRAIN, absent_options
from simulator.jobs.common import (
    Result,
    default_folder,
    manifest,
    refuse_missing,
    request,
    run_and_keep,
    safe_name,
)
from simulator.profile import axes
from simulator.profile.choose import choose
from simulator.profile.load import load
from simulator.profile.suite import Suite, load_suite, overrides
from simulator.resample import Resamples
from simulator.stack import Chosen, Pair, notes
from simulator.store import RunWriter, check_free
from simulator.study import Answers, Progress, Study, Variant, answers


def sweep(
    suite: str,
    *,
    train: str | None = None,
    models: Sequence[str | Path | None] = (None,),
    data: str | Path | None = None,
    limit: int | None = None,
    seed: int = 0,
    out: str | Path | None = None,
    overwrite: bool = False,
    resume: bool = False,
    workers: int | None = None,
    memory: int | None = None,
    progress: Progress | None = None,
) -> list[Result]:
    """Run a suite for one or more models, each in one pass over the images.

    Args:
        suite: a suite's path, or a built-in name.
        train: the training stack; the suite's own by default.
        models: model cards; None is the built-in model.
        data: a folder of images, or a data card; the built-in images by default.
        limit: take a random subset of this many images.
        seed: of the subset and the calibration images.
        out: the folder that gets a run folder per model.
        overwrite: replace runs that are already there.
        resume: go on with the run of one model that is in *out* itself.
        workers: samples in flight.
        memory: MiB that the samples in flight may need together.
        progress: told how the run goes.

    Returns:
        One result per model.

    Raises:
        UserError: anything that the caller can fix.
    """
    loaded = load_suite(suite)
    base = _chosen(train or loaded.spec.train, [])
    axes.refuse_recorded(base[0])
    options = {
        (column, option): _chosen(train or loaded.spec.train, changes)
        for column, option, changes in loaded.options()
    }
    if loaded.spec.combined:
        options[COMBINED, COMBINED] = _chosen(
            train or loaded.spec.train, overrides(loaded.spec.combined)
        )
    refuse_missing([base, *options.values()])
    results: list[Result] = []
    for model in models:
        started = time.time()
        with Study(model, data, limit, seed, workers, memory, progress) as study:
            asked = request(
                "sweep", suite=suite, train=train, model=model, data=data, limit=limit, seed=seed
            )
            folder = Path(out) if out and resume else _folder(out, loaded, study, base, started)
            if folder in (result.folder for result in results):
                raise UserError(f"two model cards are called {study.card.spec.name!r}; rename one")
            if not resume:
                check_free(folder, overwrite)
            study.require_truth()
            sweeping = _Sweep(study, loaded, base, options, asked)
            results.append(sweeping.run(folder, overwrite, resume, started))
    return results


@dataclass(frozen=True, slots=True)
class _Sweep:
    """One model's part of a sweep."""

    study: Study
    suite: Suite
    base: Chosen
    options: Mapping[tuple[str, str], Chosen]
    asked: dict[str, Any]

    def run(self, folder: Path, overwrite: bool, resume: bool, started: float) -> Result:
        absent = absent_options(self.study, self.base, self.options)
        self.study.show.say("preparing the stacks")
        stacks = [self.study.stack(Variant(TRAIN, self.base, self._pair(self.base)))]
        kept: list[tuple[str, str]] = []
        for key, own in self.options.items():
            if key in absent:
                continue
            try:
                stacks.append(self.study.stack(Variant("/".join(key), own, self._pair(own))))
            except ModelError as error:
                absent[key] = str(error)
            else:
                kept.append(key)
        names = [stack.side for stack in stacks]
        merged = self.study.plan(stacks)
        start = manifest(stacks, self.study, []) | {"request": self.asked}
        with RunWriter(folder, start, self.study.card.task.columns, overwrite, resume) as run:
            done = run_and_keep(self.study, merged, run, names, timed=False)
            self.study.show.say("working out the figures")
            summary = table(answers(self.study.card.task, names, done), kept, self.study.seed) | {
                "schema": 1,
                "command": "sweep",
                "suite": self.suite.spec.name,
                "model": self.study.card.spec.name,
                "train": {"profile": self.base[0].name},
                "order": list(dict.fromkeys(column for column, _ in self.options)),
                "absent": {"/".join(key): why for key, why in absent.items()},
                "warnings": [
                    *notes(told for stack in stacks for told in stack.told),
                    *self.study.notes,
                ],
                "unique_steps": len(merged.nodes),
                "seconds": round(time.time() - started, 3),
                "gate": {"passed": True, "rules": []},
            }
            took = {"seconds": summary["seconds"], "workers": self.study.workers}
            run.finish(summary, took)
        return Result(summary, folder)

    def _pair(self, own: Chosen) -> Pair:
        return {"train": self.base, "deploy": own}


def table(found: Answers, keys: Sequence[tuple[str, str]], seed: int = 0) -> dict[str, Any]:
    """Work out every figure of a sweep.

    Args:
        found: the answers; the first stack is the training stack.
        keys: (column, option) of the other stacks, in order.
        seed: of the bootstrap, where the task needs one.

    Returns:
        ``metric``, the task's headline, and under its name the training stack's value; per
        column its options with that metric, ``drop`` (trained minus option, as SysNoise's Δ), its
        interval, and flips; ``mean_drop`` and ``max_drop`` of a column; and RobustMQ's systematic
        metrics over all options: ``SR`` each option's metric, ``SNI`` = (ACC - mean SR) / ACC,
        ``std`` with ddof = 1.

    Raises:
        UserError: nobody has annotated the images.
    """
    task = found.task
    metric = task.headline
    columns: dict[str, dict[str, Any]] = {}
    draws = Resamples(len(found.items), seed, task.resamples)
    train = found.score(TRAIN)
    trained = train.metrics[metric]
    if trained is None:
        raise UserError(f"a sweep's table is made of {metric}; give images with labels")
    for key in keys:
        column, option = key
        compared = task.compare(train, found.score("/".join(key)), draws)
        columns.setdefault(column, {"options": {}})["options"][option] = _entry(compared, metric)
    for figures in columns.values():
        drops = [entry["drop"] for entry in figures["options"].values()]
        rates = [entry["flip_rate"] for entry in figures["options"].values()]
        figures |= {
            "mean_drop": st.fmean(drops),
            "max_drop": max(drops),
            "mean_flip_rate": st.fmean(rates),
            "max_flip_rate": max(rates),
        }
    return {
        "samples": len(found.items),
        "skipped": found.skipped,
        "task": task.name,
        "metric": metric,
        "unit": task.unit,
        metric: trained,
        "columns": columns,
        "systematic": _systematic(trained, columns, metric),
    }


def _entry(compared: Mapping[str, Any], metric: str) -> dict[str, Any]:
    """An option's figures, from the comparison with the training stack."""
    delta, flips = compared["delta"][metric], dict(compared["flips"])
    low, high = delta["ci95"]
    return {
        **compared["deploy"]["metric"],
        "drop": 0.0 - delta["value"],
        "drop_ci95": [0.0 - high, 0.0 - low],
        "p": delta["p"],
        "flips": flips.pop("count"),
        "units": flips.pop("units"),
        "flip_rate": _known(flips.pop("rate")),
        "flip_ci95": flips.pop("ci95"),
        **flips,
    }


def _known(rate: float) -> float:
    """A rate; 0 where there is nothing that could flip."""
    return 0.0 if math.isnan(rate) else rate


def _systematic(trained: float, columns: Mapping[str, Any], metric: str) -> dict[str, Any]:
    rates = [
        entry[metric]
        for column, figures in columns.items()
        if column != COMBINED
        for entry in figures["options"].values()
    ]
    mean = st.fmean(rates) if rates else None
    return {
        "mean_SR": mean,
        "SNI": (trained - mean) / trained if trained and mean is not None else None,
        "std": st.stdev(rates) if len(rates) > 1 else None,
        "ACC_of": TRAIN,
    }


def _chosen(train: str, changes: Sequence[str]) -> Chosen:
    profile = load(train, changes)
    return profile, choose(profile)


def _folder(
    out: str | Path | None, suite: Suite, study: Study, base: Chosen, started: float
) -> Path:
    if out:
        return Path(out) / safe_name(study.card.spec.name)
    names = {"train": base, "deploy": base}
    return default_folder(f"{suite.spec.name}-{study.card.spec.name}", names, started)
