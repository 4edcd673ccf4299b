"""What every name of a rule means, spelled out: names that people have in scripts go on meaning it.

The paths are those of ``summary.json``; the keys are a run's own: stacks, conditions, metrics.
"""

import pytest

from simulator.analysis.figures import by_name, figures
from simulator.results.faults import FaultsSummary
from simulator.results.pair import pair_summary
from simulator.results.robustness import RobustnessSummary
from simulator.results.summaries import commands, shape_of
from simulator.results.tail import TailSummary
from simulator.results.timed import LoadSummary
from simulator.tasks.classification.compare import ClassificationFlips
from simulator.typed import Unit

STACKS = ["train", "deploy", "board-2"]
KEYS = {
    "stack": STACKS, "other stack": STACKS[1:], "metric": ["top1"], "delta": ["top1"],
    "stage": ["total", "infer"], "condition": ["fog"], "clean or condition": ["clean", "fog"],
    "sequence": ["zoom"], "option": ["decode.pillow"], "percentile": ["p50"],
    "tail quality": ["tail_quality@99", "tail_quality@25ms"],
}  # fmt: skip

NAMES = {
    "flip_rate": "flips.rate",
    "flip_rate.low": "flips.ci95.0",
    "flip_rate.high": "flips.ci95.1",
    "failed.deploy": "failed.deploy.rate",
    "failed.deploy.low": "failed.deploy.ci95.0",
    "failed.deploy.high": "failed.deploy.ci95.1",
    "failed.deploy.count": "failed.deploy.count",
    "delta.top1": "delta.top1.value",
    "delta.top1.low": "delta.top1.ci95.0",
    "delta.top1.high": "delta.top1.ci95.1",
    "deploy.top1": "deploy.metric.top1",
    "train.top1": "train.metric.top1",
    "flips.top5_flip_rate": "flips.top5_flip_rate",
    "deploy.latency.p90": "latency_ms.deploy.total.p90",
    "deploy.latency.p99.9": "latency_ms.deploy.total.p99.9",
    "deploy.latency.mean": "latency_ms.deploy.total.mean",
    "deploy.latency.min": "latency_ms.deploy.total.min",
    "deploy.latency.max": "latency_ms.deploy.total.max",
    "deploy.latency.infer.p90": "latency_ms.deploy.infer.p90",
    "deploy.latency.total.p90": "latency_ms.deploy.total.p90",
}
"""Of a pair."""
ROBUSTNESS = {
    "deploy.NR.fog": "stacks.deploy.NR.fog.value",
    "deploy.NR.fog.low": "stacks.deploy.NR.fog.ci95.0",
    "deploy.NR.fog.high": "stacks.deploy.NR.fog.ci95.1",
    "deploy.NCI.fog": "stacks.deploy.NCI.fog.value",
    "deploy.CE.fog": "stacks.deploy.CE.fog.value",
    "deploy.relative_CE.fog": "stacks.deploy.relative_CE.fog.value",
    "deploy.clean": "stacks.deploy.clean.value",
    "deploy.clean.low": "stacks.deploy.clean.ci95.0",
    "deploy.mNR": "stacks.deploy.mNR.value",
    "deploy.mNCI": "stacks.deploy.mNCI.value",
    "deploy.mCE": "stacks.deploy.mCE.value",
    "deploy.mCE.high": "stacks.deploy.mCE.ci95.1",
    "deploy.relative_mCE": "stacks.deploy.relative_mCE.value",
    "interaction.deploy.fog": "interaction.deploy.fog.value",
    "interaction.deploy.fog.low": "interaction.deploy.fog.ci95.0",
    "interaction.deploy.fog.high": "interaction.deploy.fog.ci95.1",
    "against.deploy.fog": "against.interaction.deploy.fog.value",
    "against.deploy.fog.low": "against.interaction.deploy.fog.ci95.0",
    "against.deploy.fog.high": "against.interaction.deploy.fog.ci95.1",
    "deploy.FP.zoom": "sequences.stacks.deploy.FP.zoom.value",
    "deploy.FP.zoom.low": "sequences.stacks.deploy.FP.zoom.ci95.0",
    "deploy.FP.zoom.high": "sequences.stacks.deploy.FP.zoom.ci95.1",
    "deploy.FR.zoom": "sequences.stacks.deploy.FR.zoom.value",
    "deploy.uT5D.zoom": "sequences.stacks.deploy.uT5D.zoom.value",
    "deploy.T5D.zoom": "sequences.stacks.deploy.T5D.zoom.value",
    "deploy.mFP": "sequences.stacks.deploy.mFP.value",
    "deploy.mFP.low": "sequences.stacks.deploy.mFP.ci95.0",
    "deploy.mFP.high": "sequences.stacks.deploy.mFP.ci95.1",
    "deploy.mFR": "sequences.stacks.deploy.mFR.value",
    "deploy.muT5D": "sequences.stacks.deploy.muT5D.value",
    "deploy.mT5D": "sequences.stacks.deploy.mT5D.value",
    "deploy.mean_SR": "system_noise.stacks.deploy.mean_SR.value",
    "deploy.mean_SR.low": "system_noise.stacks.deploy.mean_SR.ci95.0",
    "deploy.mean_SR.high": "system_noise.stacks.deploy.mean_SR.ci95.1",
    "deploy.SNI": "system_noise.stacks.deploy.SNI.value",
    "deploy.std": "system_noise.stacks.deploy.std.value",
    "deploy.SR.decode.pillow": "system_noise.stacks.deploy.SR.decode.pillow.value",
}
FAULTS = {
    "SDC": "stacks.deploy.SDC.rate",
    "DUE": "stacks.deploy.DUE.rate",
    "deploy.SDC": "stacks.deploy.SDC.rate",
    "deploy.SDC.rate": "stacks.deploy.SDC.rate",
    "deploy.DUE.low": "stacks.deploy.DUE.ci95.0",
    "deploy.DUE.high": "stacks.deploy.DUE.ci95.1",
    "train.SDC": "stacks.train.SDC.rate",
}
ROUNDS = {
    "board-2.tail_quality@25ms": "tail.board-2.tail_quality@25ms",
    "board-2.tail_quality@99": "tail.board-2.tail_quality@99",
    "board-2.quality": "tail.board-2.quality",
    "board-2.latency.p50": "latency_ms.board-2.total.p50",
    "percentiles.board-2.p50.ms": "percentiles.board-2.p50.ms",
    "ratio.board-2.value": "ratio.board-2.value",
}
LOAD = {"board-2.qps": "served.board-2.qps"}


SHAPES = {
    "pair": (pair_summary(ClassificationFlips), NAMES),
    "robustness": (RobustnessSummary, ROBUSTNESS),
    "faults": (FaultsSummary, FAULTS),
    "rounds": (TailSummary, ROUNDS),
    "load": (LoadSummary, LOAD),
}


@pytest.mark.parametrize("of", SHAPES)
def test_a_name_means_what_it_always_meant(of):
    shape, names = SHAPES[of]
    known = by_name(figures(shape, KEYS))

    assert {name: known[name].path for name in names} == names


@pytest.mark.parametrize("of", SHAPES)
def test_no_two_figures_are_listed_under_one_name(of):
    listed = [one.names[0] for one in figures(SHAPES[of][0], KEYS)]

    assert len(listed) == len({*listed})


@pytest.mark.parametrize("command", commands())
def test_an_interval_says_its_unit(command):
    """Only the distance of two lists has none."""
    ends = [one for one in figures(shape_of(command), KEYS) if ".ci95." in one.path]

    assert all("T5D" in one.path for one in ends if one.about.unit is Unit.NUMBER)
