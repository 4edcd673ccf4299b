"""The figures of robustness benchmarks against published tables."""

from __future__ import annotations

import numpy as np
import pytest

from simulator.analysis import robustness as figures

RESNET18 = (
    71.06,
    [25.88, 23.86, 19.76, 28.34, 21.88, 30.37, 29.80, 26.89, 29.96, 36.78, 60.05, 34.32, 38.50,
     39.59, 45.77],
    32.78,
    53.87,
)  # fmt: skip
"""RobustMQ, arXiv 2308.02350, Table 6, FP: clean, 15 conditions, mNR, mNCI."""
DOREFA_2 = (
    62.31,
    [15.38, 13.55, 9.26, 17.28, 16.49, 21.40, 21.11, 18.44, 22.03, 25.25, 50.16, 23.11, 32.98,
     27.45, 35.58],
    23.30,
    62.61,
)  # fmt: skip
KAMANN = {
    "MobileNet-V2": (72.0, [53.5, 49.0, 45.3, 49.1, 70.5, 6.4, 7.0, 6.6, 16.6, 26.9, 51.7, 46.7,
                            32.4, 27.2, 13.7, 38.9, 47.4, 17.3, 65.5]),
    "Xception-71": (78.6, [64.1, 60.9, 52.0, 60.4, 76.4, 14.9, 10.8, 19.4, 41.2, 50.2, 68.0, 58.7,
                           47.1, 40.2, 18.8, 50.4, 64.1, 20.2, 71.0]),
}  # fmt: skip
"""Kamann and Rother, CVPR 2020, Table 1: clean, 19 conditions; the fifth is PSF blur."""


def one(value: float) -> np.ndarray:
    return np.array([value])


@pytest.mark.parametrize(("clean", "cells", "mnr", "mnci"), [RESNET18, DOREFA_2])
def test_mnr_and_mnci_are_those_of_robustmq(
    clean: float, cells: list[float], mnr: float, mnci: float
) -> None:
    levels = {str(at): figures.natural_robustness(np.array([[c / 100]])) for at, c in
              enumerate(cells)}  # fmt: skip
    impacts = {name: figures.impact(one(clean / 100), nr) for name, nr in levels.items()}
    assert 100 * figures.mean_over(levels)[0] == pytest.approx(mnr, abs=0.006)
    assert 100 * figures.mean_over(impacts)[0] == pytest.approx(mnci, abs=0.01)


def test_cd_and_rcd_of_kamann_and_rother() -> None:
    """81.1 % and 84.6 %, worked out from the rows of Table 1; PSF blur is not in the means."""
    base_clean, base = KAMANN["MobileNet-V2"]
    clean, cells = KAMANN["Xception-71"]
    cd, rcd = {}, {}
    for at, (mine, theirs) in enumerate(zip(cells, base, strict=True)):
        levels, reference = np.array([[mine / 100]]), np.array([[theirs / 100]])
        cd[str(at)] = figures.degradation_ratio(levels, reference)
        rcd[str(at)] = figures.relative_degradation_ratio(
            one(clean / 100), levels, one(base_clean / 100), reference
        )
    assert 100 * figures.mean_over(cd, ["4"])[0] == pytest.approx(81.1, abs=0.05)
    assert 100 * figures.mean_over(rcd, ["4"])[0] == pytest.approx(84.6, abs=0.05)
    assert 100 * rcd["4"][0] == pytest.approx(100 * 2.2 / 1.5)


def test_relative_ce_of_a_condition_subtracts_clean_at_every_severity() -> None:
    """Worked on paper: (0.5 + 0.7) / 2 - 0.2 = 0.4 by (0.6 + 0.8) / 2 - 0.4 = 0.3."""
    levels, reference = np.array([[0.5], [0.3]]), np.array([[0.4], [0.2]])
    found = figures.relative_degradation_ratio(one(0.8), levels, one(0.6), reference)
    assert found[0] == pytest.approx(0.4 / 0.3)
    assert figures.degradation_ratio(levels, reference)[0] == pytest.approx(1.2 / 1.4)


@pytest.mark.parametrize(
    ("levels", "reference"), [([0.8], [0.4]), ([0.4], [0.5999]), ([0.9], [0.7]), ([0.4], [0.61])]
)
def test_no_loss_or_no_reference_loss_has_no_relative_ratio(
    levels: list[float], reference: list[float]
) -> None:
    found = figures.relative_degradation_ratio(
        one(0.8), np.array([levels]), one(0.6), np.array([reference])
    )
    assert np.isnan(found[0])


def test_a_figure_that_is_not_defined_is_not_in_the_mean() -> None:
    assert figures.mean_over({"a": one(0.5), "b": one(np.nan), "c": one(0.7)})[0] == 0.6
    assert np.isnan(figures.mean_over({"b": one(np.nan)})[0])
    assert np.isnan(figures.impact(one(0.0), one(0.0))[0])
    assert np.isnan(figures.degradation_ratio(np.array([[0.5]]), np.array([[1.0]]))[0])


def test_interaction_is_the_difference_of_the_differences() -> None:
    """Train 0.9 to 0.8, deploy 0.88 to 0.70: 8 points more are lost."""
    found = figures.interaction(one(0.9), one(0.8), one(0.88), one(0.70))
    assert found[0] == pytest.approx(-0.08)


def test_worst_case_is_an_and_for_each_sample() -> None:
    """Clean and two attacks of accuracy 2/3 each leave a single robust sample of three."""
    points = np.array([[1.0, 1.0, 1.0], [1.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
    assert figures.worst_case(points).mean() == pytest.approx(1 / 3)


def test_flip_probability_compares_with_the_frame_before_or_with_the_first() -> None:
    """1 2 2 1: moves are 1-2, 2-2, 2-1 (2 of 3); against the first 2, 2, 1 (2 of 3)."""
    frames = np.array([[1, 2, 2, 1], [3, 3, 3, 3]])
    assert figures.flip_probability(frames, noise=False).tolist() == [2 / 3, 0.0]
    assert figures.flip_probability(frames, noise=True).tolist() == [2 / 3, 0.0]
    assert figures.flip_probability(frames, noise=False, difficulty=2).tolist() == [1.0, 0.0]


def original_distance(ranks: list[np.ndarray], noise: bool, difficulty: int) -> float:
    """T5D of one sequence from the ranks of all classes, word by word as the paper defines it.

    Hendrycks and Dietterich, ICLR 2019, metrics of ImageNet-P: sigma(i) is the rank that the class
    of rank i in one frame has in the other; pairs of frames as ImageNet-P/test.py walks them.
    """
    step, found = (1 if noise else difficulty), []
    for start in range(step):
        before = ranks[start]
        for after in ranks[start::step][1:]:
            distance = 0
            for i in range(1, 6):
                (klass,) = np.flatnonzero(before == i)
                sigma = after[klass]
                for j in range(min(i, sigma) + 1, max(i, sigma) + 1):
                    distance += 1 <= j - 1 <= 5
            found.append(distance)
            before = before if noise else after
    return float(np.mean(found))


@pytest.mark.parametrize(("noise", "difficulty"), [(True, 1), (False, 1), (False, 2), (False, 3)])
@pytest.mark.parametrize("spread", [0.1, 2.0])
def test_top5_distance_is_what_the_paper_defines(
    noise: bool, difficulty: int, spread: float
) -> None:
    """On the scores of 12 classes that wander a little or a lot; ties fall to the lower class."""
    draws = np.random.default_rng(difficulty)
    walk = draws.normal(0, spread, (4, 31, 12)).cumsum(axis=1) + draws.normal(0, 1, (4, 1, 12))
    order = np.argsort(-walk.round(1), axis=-1, kind="stable")
    wanted = [original_distance(list(one.argsort(axis=-1) + 1), noise, difficulty) for one in order]
    found = figures.top5_distance(order[..., :5], noise, difficulty)
    assert found.tolist() == pytest.approx(wanted)
    assert 0 < found.min() < found.max() < 15


def test_top5_distance_by_hand() -> None:
    """Equal; the first two swapped (1 + 1); nothing in common (5 + 4 + 3 + 2 + 1)."""
    best = np.array([[[1, 2, 3, 4, 5], other] for other in
                     ([1, 2, 3, 4, 5], [2, 1, 3, 4, 5], [6, 7, 8, 9, 0])])  # fmt: skip
    assert figures.top5_distance(best, noise=False).tolist() == [0, 2, 15]


def test_top5_distance_of_three_classes() -> None:
    """The last class becomes the first: 1 + 1 + 2 places."""
    best = np.array([[[0, 1, 2, -1, -1], [2, 0, 1, -1, -1]]])
    assert figures.top5_distance(best, noise=True).tolist() == [4]


def original_flips(predictions: list[list[int]], noise: bool, difficulty: int) -> float:
    """``flip_prob`` of https://github.com/hendrycks/robustness, ImageNet-P/test.py, as it walks."""
    result, step = 0.0, 1 if noise else difficulty
    for answers in predictions:
        flips = []
        for start in range(step):
            before = answers[start]
            for answer in answers[start::step][1:]:
                flips.append(before != answer)
                before = before if noise else answer
        result += np.mean(flips) / len(predictions)
    return result


@pytest.mark.parametrize(("noise", "difficulty"), [(True, 1), (False, 1), (False, 2), (False, 3)])
def test_flip_probability_is_what_the_original_walks(noise: bool, difficulty: int) -> None:
    frames = np.random.default_rng(difficulty).integers(0, 3, (20, 31))
    found = figures.flip_probability(frames, noise, difficulty).mean()
    assert found == pytest.approx(original_flips(frames.tolist(), noise, difficulty))


@pytest.mark.parametrize(
    ("flips", "printed"),
    [
        ([0.164, 0.207, 0.076, 0.049, 0.091, 0.039, 0.068, 0.090, 0.050, 0.145], 0.098),
        ([0.293, 0.335, 0.315, 0.318, 0.335, 0.233, 0.223, 0.254, 0.230, 0.298], 0.283),
        ([0.160, 0.200, 0.092, 0.070, 0.102, 0.059, 0.076, 0.097, 0.061, 0.147], 0.106),
    ],
)
def test_mfp_is_the_plain_mean_of_robustmqs_table_8(flips: list[float], printed: float) -> None:
    """RobustMQ, arXiv 2308.02350, Table 8: ResNet18 in FP32, DoReFa at 2 and LSQ at 8 bits."""
    by = {str(at): np.array([value]) for at, value in enumerate(flips)}
    assert round(float(figures.mean_over(by)[0]), 3) == printed


def test_mfr_is_a_mean_of_ratios_and_not_a_ratio_of_means() -> None:
    """0.1 / 0.2 and 0.2 / 0.8: 0.375, where the means give 0.3; no reference flips, no rate."""
    rates = {
        "a": figures.relative_to(np.array([0.1]), np.array([0.2])),
        "b": figures.relative_to(np.array([0.2]), np.array([0.8])),
        "never": figures.relative_to(np.array([0.2]), np.array([0.0])),
    }
    assert figures.mean_over(rates)[0] == pytest.approx(0.375)
    assert np.isnan(rates["never"][0])
