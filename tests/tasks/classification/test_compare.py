import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.errors import DataError
from simulator.tasks.audio_classification.task import AudioClassification
from simulator.tasks.classification.compare import compare

# (train's prediction, deploy's prediction, label): 7 right before and 5 after, 5 of 10 flip,
# 3 lost, 1 won, 1 from wrong to wrong.
TEN = [
    (0, 0, 0),
    (1, 1, 1),
    (2, 2, 2),
    (3, 3, 3),
    (4, 0, 4),  # lost
    (5, 1, 5),  # lost
    (6, 2, 6),  # lost
    (1, 7, 7),  # won
    (1, 2, 8),  # wrong to wrong
    (1, 1, 9),  # equally wrong
]


def answer(prediction, label):
    correct = None if label is None else prediction == label
    return {"prediction": prediction, "correct": correct, "best": None, "top5": None}


def sides(rows):
    return [answer(t, label) for t, _, label in rows], [answer(d, label) for _, d, label in rows]


def test_ten_by_hand():
    got = compare(*sides(TEN))
    flips = got["flips"]

    assert got["labelled"] == 10
    assert got["train"] == {"metric": {"top1": 0.7, "top5": None}}
    assert got["deploy"] == {"metric": {"top1": 0.5, "top5": None}}
    assert got["delta"]["top5"] is flips["top5_flips"] is flips["top5_flip_rate"] is None
    assert (flips["count"], flips["rate"]) == (5, 0.5)
    assert (flips["right_to_wrong"], flips["wrong_to_right"], flips["wrong_to_wrong"]) == (3, 1, 1)


def test_intervals_and_p_values_of_the_ten_by_hand():
    """Of 4 discordant pairs 1 was won: p = 2 (1 + 4)/16 = 0.625, mid-p 4/16 less.

    Bonett-Price: (2 - 4)/12 = -1/6 ± 1.959964 sqrt((6/12 - 1/36)/12) = ± 0.388813. Clopper-Pearson
    5 of 10: 0.1871 to 0.8129 (any table); Wilson 0.5 ± 1.959964 sqrt(.025 + .0096036)/1.3841459.
    """
    got = compare(*sides(TEN))

    assert got["delta"]["top1"]["value"] == pytest.approx(-0.2, abs=1e-15)
    assert got["delta"]["top1"]["ci95"] == pytest.approx([-0.555480, 0.222147], abs=1e-5)
    assert got["flips"]["mcnemar_p"] == pytest.approx(0.625)
    assert got["flips"]["mcnemar_midp"] == pytest.approx(0.375)
    assert got["flips"]["ci95"] == pytest.approx([0.1871, 0.8129], abs=5e-5)
    assert got["flips"]["ci95_wilson"] == pytest.approx([0.236593, 0.763407], abs=1e-5)


def test_samples_for_a_tenth_of_a_point_by_hand():
    """Psi = 0.4: (1.959964 sqrt(.4) + 0.841621 sqrt(.399999))**2 / 1e-6 = 3,139,551 or so."""
    got = compare(*sides(TEN))["flips"]["samples_for_tenth_point"]

    assert got == pytest.approx(0.4 * (1.959964 + 0.841621) ** 2 / 1e-6, rel=1e-5)


def test_power_names_the_discordant_rate_and_not_the_flip_rate():
    """Of the ten 5 flip, and 4 turn right or wrong: the sample size is computed from 40 %."""
    (_, power) = AudioClassification.view().lines({**compare(*sides(TEN)), "unit": "sound"})[-1]

    assert " sounds (80 % power)" in power
    assert power.endswith("(80 % power), where 40.00% of the answers turn right or wrong")


def test_top5_by_hand():
    """Of eight: 5 listed before and 4 after, 2 lost, 1 won; three sets differ, one in order only.

    Bonett-Price: (2 - 3)/10 = -0.1 ± 1.959964 sqrt((.5 - .01)/10) = ± 0.433861.
    """
    train = [True, True, True, True, True, False, False, False]
    deploy = [True, True, True, False, False, True, False, False]
    moved = [[1, 2, 3, 4, 5]] * 4 + [[5, 4, 3, 2, 1]] + [[1, 2, 3, 4, 6]] * 3
    records = [
        [{"prediction": 1, "correct": False, "best": best, "top5": listed}
         for best, listed in zip(lists, points, strict=True)]
        for lists, points in (([[1, 2, 3, 4, 5]] * 8, train), (moved, deploy))
    ]  # fmt: skip
    got = compare(*records)

    assert (got["train"]["metric"]["top5"], got["deploy"]["metric"]["top5"]) == (5 / 8, 4 / 8)
    assert got["delta"]["top5"]["value"] == pytest.approx(-1 / 8)
    assert got["delta"]["top5"]["ci95"] == pytest.approx([-0.533861, 0.333861], abs=1e-5)
    assert (got["flips"]["top5_flips"], got["flips"]["top5_flip_rate"]) == (3, 3 / 8)


def test_without_labels_only_flips_are_left():
    got = compare(*sides([(t, d, None) for t, d, _ in TEN]))

    assert (got["labelled"], got["flips"]["count"], got["flips"]["rate"]) == (0, 5, 0.5)
    assert got["delta"] == {"top1": None, "top5": None}
    assert got["train"]["metric"]["top1"] is got["deploy"]["metric"]["top1"] is None
    rest = ["right_to_wrong", "wrong_to_right", "wrong_to_wrong", "mcnemar_p", "mcnemar_midp"]
    assert [got["flips"][key] for key in [*rest, "samples_for_tenth_point"]] == [None] * 6


def test_what_needs_labels_counts_the_labelled_only():
    """The ten and ten without a label, of which three flip."""
    more = [(0, 1, None)] * 3 + [(0, 0, None)] * 7
    got = compare(*sides(TEN + more))

    assert (got["flips"]["count"], got["flips"]["rate"]) == (8, 0.4)
    assert (got["labelled"], got["train"]["metric"]["top1"]) == (10, 0.7)
    assert got["delta"] == compare(*sides(TEN))["delta"]


def test_too_few_flips_for_any_tenth_of_a_point():
    """No pair of 10 is discordant, so no delta of 0.1 points can occur at this rate."""
    got = compare(*sides([(0, 0, 0)] * 10))

    assert got["flips"]["samples_for_tenth_point"] is None


def test_nothing_to_compare():
    with pytest.raises(DataError, match="no sample went through both stacks"):
        compare([], [])


def test_unpaired_answers_are_a_bug():
    with pytest.raises(ValueError, match="not of the same images"):
        compare([answer(0, 0)], [])
    with pytest.raises(ValueError, match="one side only"):
        compare([answer(0, 0)], [answer(0, None)])


rows = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 3), st.none() | st.integers(0, 3)), min_size=1
)


KINDS = ("right_to_wrong", "wrong_to_right", "wrong_to_wrong")


@given(rows)
def test_counts_add_up_and_swap(drawn):
    train, deploy = sides(drawn)
    one, other = compare(train, deploy), compare(deploy, train)
    labelled, (lost, won, wrong) = one["labelled"], (one["flips"][kind] or 0 for kind in KINDS)
    before, after = (one[side]["metric"]["top1"] or 0 for side in ("train", "deploy"))

    assert (after - before) * labelled == pytest.approx(won - lost)
    counted = lost + won + wrong
    assert counted <= one["flips"]["count"] <= counted + len(drawn) - labelled
    assert [other["flips"][kind] or 0 for kind in KINDS] == [won, lost, wrong]
    assert (other["train"], other["deploy"]) == (one["deploy"], one["train"])
