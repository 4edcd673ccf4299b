"""Samples that a checkpoint cannot answer, while another one, or another of its stacks, can."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from simulator.checkpoints.measured import Key, Sweep
from simulator.experiments.common import TRAIN
from simulator.experiments.failures import Tally, Tried, tallied

_ANY = "any stack of any model"


def named(sweeps: Sequence[Sweep]) -> list[str]:
    """Return the names of the models; the folder of the run where two have the same."""
    times = Counter(sweep.summary.model for sweep in sweeps)
    return [
        sweep.summary.model if times[sweep.summary.model] == 1 else str(sweep.folder)
        for sweep in sweeps
    ]


def failures(sweeps: Sequence[Sweep], keys: Sequence[Key]) -> Tally:
    """Return ``failed`` and ``failures`` by model.

    A model fails on a sample where one of its stacks does, and any stack of any model answers.

    Args:
        sweeps: one of each model, all on the same samples.
        keys: the options that all of them ran.
    """
    models = dict(zip(named(sweeps), sweeps, strict=True))
    stacks = [TRAIN, *("/".join(key) for key in keys)]
    tried = [
        _tried(sample, models, stacks)
        for sample in dict.fromkeys(s for sweep in sweeps for s in sweep.lost)
    ]
    some = {sample.sample for sample in tried}
    whole = len(set(sweeps[0].manifest.data.images) - some)
    names = [*models, _ANY]
    found = tallied(tried, names, _ANY, dict.fromkeys(names, whole))
    del found["failed"][_ANY]
    return found


def _tried(sample: str, models: Mapping[str, Sweep], stacks: Sequence[str]) -> Tried:
    """A sample as the models answer it, each with the first of its stacks that does not."""
    failed, answered = {}, False
    for name, sweep in models.items():
        own = sweep.lost.get(sample, {})
        reasons = [f"{stack}: {own[stack]}" for stack in stacks if stack in own]
        answered = answered or len(reasons) < len(stacks)
        if reasons:
            failed[name] = reasons[0]
    if not answered:
        failed[_ANY] = "no stack answers it"
    return Tried(sample, [*models, _ANY], failed)
