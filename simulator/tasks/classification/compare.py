"""Two stacks on the same samples: which answers changed, and is it more than chance?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from simulator.errors import DataError
from simulator.statistics import paired
from simulator.tasks.figures import Comparison, Figures, Flips
from simulator.tasks.score import Record, each, numbers
from simulator.typed import About, Interval, Probability, Share, Unit

RESOLVE = 0.001
"""A delta of 0.1 points; the comparison says how many images it takes to resolve it."""


class ClassificationFlips(Flips):
    """Classes that differ; kinds and tests are of labelled images, None where there are none."""

    ci95_wilson: Annotated[Interval | None, About(Unit.SHARE)] = Field(
        description="Wilson's 95 % interval of the rate"
    )
    right_to_wrong: int | None = Field(description="right on the training stack only")
    wrong_to_right: int | None = Field(description="right on the deployment stack only")
    wrong_to_wrong: int | None = Field(description="wrong on both, in different ways")
    mcnemar_p: Probability | None = Field(description="McNemar's exact test")
    mcnemar_midp: Probability | None = Field(description="McNemar's mid-p test")
    top5_flips: int | None = Field(
        description="samples whose set of five best classes differs; None where it was not recorded"
    )
    top5_flip_rate: Share | None = Field(description="of the samples where it was recorded")
    samples_for_tenth_point: int | None = Field(
        description="samples that a delta of 0.1 points would take; None where it cannot occur"
    )


def compare(train: Sequence[Record], deploy: Sequence[Record]) -> Comparison:
    """Compare two stacks on the images that went through both.

    Flips are counted over all images. Whatever needs a label (accuracy, delta, the kinds of flips,
    McNemar) is counted over the labelled images, and is None where there are none.

    Args:
        train: one record an image.
        deploy: the records of the same images, in the same order.

    Returns:
        Parts of ``summary.json``: ``labelled``, ``train``, ``deploy``, ``delta``, ``flips``. Rates
        and deltas are fractions; a delta is deploy minus train; intervals are [lower, upper].

    Raises:
        DataError: there is no image.
        ValueError: the two differ in length, or an image has a label on one side only.
    """
    if len(train) != len(deploy):
        raise ValueError(f"{len(train)} and {len(deploy)} records are not of the same images")
    if not len(train):
        raise DataError("no sample went through both stacks")
    (before, known), (after, also) = numbers(train, "correct"), numbers(deploy, "correct")
    if (known != also).any():
        raise ValueError("an image has a label on one side only; the answers are not paired")
    (said, there), (then, still) = numbers(train, "prediction"), numbers(deploy, "prediction")
    differ = (said != then) | (there != still)
    right, now_right = before > 0, after > 0
    lost, won = int((right & ~now_right).sum()), int((now_right & ~right).sum())
    labelled, flips, samples = int(known.sum()), int(differ.sum()), len(train)
    judged = {
        "right_to_wrong": lost,
        "wrong_to_right": won,
        "wrong_to_wrong": int((known & ~right & ~now_right & differ).sum()),
        "mcnemar_p": paired.mcnemar_exact(lost, won),
        "mcnemar_midp": paired.mcnemar_midp(lost, won),
        "samples_for_tenth_point": _samples(lost + won, labelled),
    }
    before5, after5, delta5 = _top5(train, deploy)
    before1, after1 = (_rate(int(side.sum()), labelled) for side in (right, now_right))
    return {
        "labelled": labelled,
        "train": {"metric": {"top1": before1, "top5": before5}},
        "deploy": {"metric": {"top1": after1, "top5": after5}},
        "delta": {"top1": _delta(lost, won, labelled), "top5": delta5},
        "flips": {
            "count": flips,
            "units": samples,
            "rate": flips / samples,
            "ci95": list(paired.clopper_pearson(flips, samples)),
            "ci95_wilson": list(paired.wilson(flips, samples)),
            **(judged if labelled else dict.fromkeys(judged)),
            **_sets(train, deploy),
        },
    }


def _rate(counted: int, of: int) -> float | None:
    return counted / of if of else None


def _delta(lost: int, won: int, judged: int) -> Figures | None:
    if not judged:
        return None
    return {
        "value": (won - lost) / judged,
        "ci95": list(paired.bonett_price(lost, won, judged)),
        "p": paired.mcnemar_exact(lost, won),
        "method": "Bonett-Price",
    }


def _top5(
    train: Sequence[Record], deploy: Sequence[Record]
) -> tuple[float | None, float | None, Figures | None]:
    """Top-5 of either stack and its delta, of the images where both are known."""
    (one, known), (other, also) = numbers(train, "top5"), numbers(deploy, "top5")
    judged = known & also
    count = int(judged.sum())
    before, after = one[judged], other[judged]
    delta = _delta(int((before > after).sum()), int((after > before).sum()), count)
    return _rate(int(before.sum()), count), _rate(int(after.sum()), count), delta


def _sets(train: Sequence[Record], deploy: Sequence[Record]) -> Figures:
    """How often the set of the five best classes differs, in whatever order."""
    both = zip(each(train, "best"), each(deploy, "best"), strict=True)
    differ = [set(one) != set(other) for one, other in both if one and other]
    changed = sum(differ)
    rate = _rate(changed, len(differ))
    return {"top5_flips": changed if differ else None, "top5_flip_rate": rate}


def _samples(discordant: int, labelled: int) -> int | None:
    """None without labels, or with so few discordant pairs that such a delta cannot occur."""
    if not labelled or discordant / labelled < RESOLVE:
        return None
    return paired.samples_needed(discordant / labelled, RESOLVE)
