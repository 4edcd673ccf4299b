"""The main job: two stacks, one model, one honest answer."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from simulator.analysis import controls, gate
from simulator.analysis.summary import SIDES, summarize, template
from simulator.errors import UserError
from simulator.jobs.common import (
    Result,
    default_folder,
    manifest,
    pair_of,
    refuse_missing,
    request,
    run_and_keep,
)
from simulator.jobs.pictures import draw
from simulator.profile import axes
from simulator.stack import Stack, notes
from simulator.store import RunWriter, check_free
from simulator.study import Progress, Study, Variant


def simulate(
    train: str,
    deploy: str,
    *,
    model: str | Path | None = None,
    data: str | Path | None = None,
    overrides: Sequence[str] = (),
    fail_on: Sequence[str] = (),
    limit: int | None = None,
    seed: int = 0,
    out: str | Path | None = None,
    overwrite: bool = False,
    resume: bool = False,
    workers: int | None = None,
    memory: int | None = None,
    strict: bool = False,
    progress: Progress | None = None,
) -> Result:
    """Run the same model on the same images through two stacks, and compare.

    Args:
        train: the training stack: a profile's path, or a built-in name.
        deploy: the deployment stack, likewise.
        model: a model card; the built-in model by default.
        data: a folder of images, or a data card; the built-in images by default.
        overrides: ``SIDE.KEY=VALUE``, for example ``deploy.resize.backend=opencv``.
        fail_on: gate rules; a rule whose condition holds fails the gate.
        limit: take a random subset of this many images.
        seed: of the subset and of the calibration images.
        out: the run folder; ``runs/<time>-<train>-vs-<deploy>`` by default.
        overwrite: replace a run that is already in *out*.
        resume: go on with the run that is in *out*.
        workers: samples in flight; the number of cores by default.
        memory: MiB that the samples in flight may need together.
        strict: a difference between what was asked for and what is in force is an error.
        progress: told how the run goes.

    Returns:
        The summary, and where the run was written.

    Raises:
        UserError: anything that the caller can fix; the message says how.
    """
    started = time.time()
    rules = [gate.parse(rule) for rule in fail_on]
    sides = pair_of(train, deploy, overrides)
    refuse_missing(sides.values())
    differing = axes.differing(sides["train"], sides["deploy"])
    folder = Path(out) if out else default_folder("", sides, started)
    if not resume:
        check_free(folder, overwrite)
    with Study(model, data, limit, seed, workers, memory, progress) as study:
        gate.evaluate(rules, template(study.card.task))
        stacks = study.stacks([Variant(side, sides[side], sides) for side in SIDES])
        if strict:
            _refuse_differences(stacks)
        merged = study.plan(stacks)
        start = manifest(stacks, study, overrides) | {
            "shared_stages": merged.shared(),
            "request": request(
                "run", train=train, deploy=deploy, model=model, data=data, limit=limit, seed=seed,
                overrides=overrides, fail_on=fail_on, strict=strict,
            ),
        }  # fmt: skip
        with RunWriter(folder, start, study.card.task.columns, overwrite, resume) as run:
            done = run_and_keep(study, merged, run, SIDES, timed=True)
            study.show.say("controls")
            same = controls.self_check(merged, done, study.workers)
            effects = controls.axis_effects(
                differing,
                stacks[0],
                stacks[1],
                study.card,
                study.source,
                done,
                study.workers,
            )
            summary = summarize(
                stacks, done, study.card, differing, effects, same, study.notes, seed
            )
            draw(study, stacks, merged, summary, run)
            summary["gate"] = gate.evaluate(rules, summary)
            took = {"seconds": round(time.time() - started, 3), "workers": study.workers}
            summary |= took
            run.finish(summary, took)
    return Result(summary, folder)


def _refuse_differences(stacks: Sequence[Stack]) -> None:
    lines = [w for w in notes(told for s in stacks for told in s.told) if "was asked for" in w]
    if lines:
        raise UserError("\n".join(f"--strict: {line}" for line in lines))
