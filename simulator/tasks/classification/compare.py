"""Two stacks on the same samples: which answers changed, and is it more than chance?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from simulator.errors import DataError
from simulator.statistics import paired
from simulator.tasks.score import Record, each, numbers

RESOLVE = 0.001
"""A delta of 0.1 points; the comparison says how many images it takes to resolve it."""


@dataclass(frozen=True, slots=True)
class Pair:
    """How often each pair of answers was seen.

    Attributes:
        samples: images that went through both stacks.
        labelled: those of them that have a label.
        flips: images whose prediction differs, labelled or not.
        train_right: labelled images that the train side gets right.
        deploy_right: labelled images that the deploy side gets right.
        right_to_wrong: labelled images right on the train side only.
        wrong_to_right: labelled images right on the deploy side only.
        wrong_to_wrong: labelled images wrong on both sides, in different ways.
    """

    samples: int
    labelled: int
    flips: int
    train_right: int
    deploy_right: int
    right_to_wrong: int
    wrong_to_right: int
    wrong_to_wrong: int


def count(train: Sequence[Record], deploy: Sequence[Record]) -> Pair:
    """Count the pairs of answers.

    Args:
        train: one record an image.
        deploy: the records of the same images, in the same order.

    Raises:
        ValueError: the two differ in length, or an image has a label on one side only.
    """
    if len(train) != len(deploy):
        raise ValueError(f"{len(train)} and {len(deploy)} records are not of the same images")
    before, known = numbers(train, "correct")
    after, also = numbers(deploy, "correct")
    if (known != also).any():
        raise ValueError("an image has a label on one side only; the answers are not paired")
    one, other = before > 0, after > 0
    (said, there), (then, still) = numbers(train, "prediction"), numbers(deploy, "prediction")
    flips = (said != then) | (there != still)
    return Pair(
        samples=len(train),
        labelled=int(known.sum()),
        flips=int(flips.sum()),
        train_right=int(one.sum()),
        deploy_right=int(other.sum()),
        right_to_wrong=int((one & ~other).sum()),
        wrong_to_right=int((other & ~one).sum()),
        wrong_to_wrong=int((known & ~one & ~other & flips).sum()),
    )


def compare(train: Sequence[Record], deploy: Sequence[Record]) -> dict[str, Any]:
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
        ValueError: the answers are not paired.
    """
    pair = count(train, deploy)
    if pair.samples == 0:
        raise DataError("no sample went through both stacks")
    top5 = _top5(train, deploy)
    return {
        "labelled": pair.labelled,
        "train": {"metric": {"top1": _rate(pair.train_right, pair.labelled), "top5": top5[0]}},
        "deploy": {"metric": {"top1": _rate(pair.deploy_right, pair.labelled), "top5": top5[1]}},
        "delta": {
            "top1": _delta(pair.right_to_wrong, pair.wrong_to_right, pair.labelled),
            "top5": top5[2],
        },
        "flips": {
            "count": pair.flips,
            "units": pair.samples,
            "rate": pair.flips / pair.samples,
            "ci95": list(paired.clopper_pearson(pair.flips, pair.samples)),
            "ci95_wilson": list(paired.wilson(pair.flips, pair.samples)),
            **_kinds(pair),
            **_sets(train, deploy),
        },
    }


def _rate(counted: int, of: int) -> float | None:
    return counted / of if of else None


def _delta(lost: int, won: int, judged: int) -> dict[str, Any] | None:
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
) -> tuple[float | None, float | None, dict[str, Any] | None]:
    """Top-5 of either stack and its delta, of the images where both are known."""
    (one, known), (other, also) = numbers(train, "top5"), numbers(deploy, "top5")
    judged = known & also
    count = int(judged.sum())
    before, after = (int(values[judged].sum()) for values in (one, other))
    lost = int((one[judged] > other[judged]).sum())
    delta = _delta(lost, lost + after - before, count)
    return _rate(before, count), _rate(after, count), delta


def _sets(train: Sequence[Record], deploy: Sequence[Record]) -> dict[str, Any]:
    """How often the set of the five best classes differs, in whatever order."""
    both = zip(each(train, "best"), each(deploy, "best"), strict=True)
    known = changed = 0
    for one, other in both:
        if one and other:
            known += 1
            changed += set(one) != set(other)
    return {"top5_flips": changed if known else None, "top5_flip_rate": _rate(changed, known)}


def _kinds(pair: Pair) -> dict[str, Any]:
    """The part of ``flips`` that needs labels."""
    lost, won, known = pair.right_to_wrong, pair.wrong_to_right, pair.labelled > 0
    return {
        "right_to_wrong": lost if known else None,
        "wrong_to_right": won if known else None,
        "wrong_to_wrong": pair.wrong_to_wrong if known else None,
        "mcnemar_p": paired.mcnemar_exact(lost, won) if known else None,
        "mcnemar_midp": paired.mcnemar_midp(lost, won) if known else None,
        "samples_for_tenth_point": _samples(lost + won, pair.labelled),
    }


def _samples(discordant: int, labelled: int) -> int | None:
    """None without labels, or with so few discordant pairs that such a delta cannot occur."""
    if not labelled or discordant / labelled < RESOLVE:
        return None
    return paired.samples_needed(discordant / labelled, RESOLVE)
