"""Strata that get different numbers of faults: the estimates, by simulation and by hand."""

import gc

import campaigns
import numpy as np
import pyarrow.parquet as pq
import pytest

from simulator import cli, faults
from simulator.errors import ProfileError, UserError
from simulator.faults.allocation import LEAST, Allocation
from simulator.faults.replay import replay
from simulator.statistics.strata import Stratum, stratified

RATES = np.array([0, 0, 0, 0, 0, 0.01, 0.4, 0.05])
"""Of eight bits, as of INT8: one is hot."""
SHARES = [1 / 8] * 8
FAULTS, TIMES = 500, 1000
BITS = [31, 30, 29, 4, 3, 2, 1, 0]


def document(folder, **fields):
    given = {"strata": "bit", "allocation": "neyman", "faults": 240, "bits": BITS}
    return campaigns.document(folder, **(given | fields))


def simulated(allocation, rng):
    """Run a campaign on bits whose rates are known."""
    numbers = np.arange(FAULTS)
    stratum = numbers % len(SHARES)
    sdc = rng.random(FAULTS) < RATES[stratum]
    pilot = allocation.pilot
    weights = allocation.learnt(stratum[:pilot], sdc[:pilot])
    for number in range(pilot, FAULTS):
        stratum[number] = allocation.stratum(number, weights)
    sdc[pilot:] = rng.random(FAULTS - pilot) < RATES[stratum[pilot:]]
    part, shares = allocation.parts(numbers, stratum, FAULTS)
    trials, events = np.bincount(part), np.bincount(part[sdc], minlength=len(shares))
    return stratified(
        [Stratum(*one) for one in zip(shares, events.tolist(), trials.tolist(), strict=True)]
    )


def test_neyman_is_unbiased_covers_and_has_less_variance_than_equal_numbers():
    """A thousand campaigns; equal numbers have a variance that is known exactly."""
    allocation, rng = Allocation.of("neyman", SHARES, FAULTS, "mine"), np.random.default_rng(0)
    true = RATES.mean()
    found = [simulated(allocation, rng) for _ in range(TIMES)]
    values = np.array([one.value for one in found])
    error = values.std() / TIMES**0.5

    assert abs(values.mean() - true) < 3 * error
    assert error * 3 < 0.03 * true  # what would be seen of a bias
    assert np.mean([one.low <= true <= one.high for one in found]) >= 0.95
    equal = (RATES * (1 - RATES)).sum() / 8**2 / (FAULTS / 8)
    assert values.var() < 0.75 * equal


def test_wherever_it_stops_the_strata_have_their_numbers():
    """After each fault of the main part a stratum has its weight of them, within a few."""
    allocation = Allocation.of("neyman", SHARES, 1000, "mine")
    assert allocation.pilot == 200
    assert [allocation.stratum(number, None) for number in range(200)] == [*range(8)] * 25
    weights = [1, 0, 0, 2, 0, 1, 4, 0]
    main = [allocation.stratum(number, weights) for number in range(200, 3000)]
    assert np.bincount(main[: LEAST * 8]).tolist() == [LEAST] * 8
    counts = np.cumsum(np.eye(8)[main[LEAST * 8 :]], axis=0)
    wanted = np.arange(1, len(counts) + 1)[:, None] * np.array(weights) / 8
    assert np.abs(counts - wanted).max() < 4


def test_every_stratum_has_two_in_the_pilot_and_two_behind_it():
    assert Allocation.of("neyman", [0.25] * 4, 16, "mine").pilot == 8
    with pytest.raises(UserError, match="faults: 15 are too few for allocation: neyman; there are"):
        Allocation.of("neyman", [0.25] * 4, 15, "mine")


def by_hand(rows, **wanted):
    """The rate of some of the rows, each weighed by what it was drawn from."""
    pilot, share = 48, 48 / 240  # a fifth, which is more than two of each of the eight bits
    weights = []
    for row in rows:
        first = row["fault"] < pilot
        same = [
            one for one in rows
            if one["stratum"] == row["stratum"] and (one["fault"] < pilot) == first
        ]  # fmt: skip
        weights.append((share if first else 1 - share) / 8 / len(same))
    both = zip(weights, rows, strict=True)
    chosen = [(weight, row["sdc"]) for weight, row in both if row | wanted == row]
    return sum(w for w, sdc in chosen if sdc) / sum(w for w, _ in chosen)


def test_a_campaign_weighs_every_figure(place, tmp_path):
    result = campaigns.run(place, document(tmp_path), tmp_path / "run")
    rows = pq.read_table(tmp_path / "run" / "faults.parquet").to_pylist()
    stack = result.summary.stacks["deploy"]
    counts = np.bincount([row["stratum"] for row in rows])
    assert len(rows) == 240
    assert max(counts) > 2 * min(counts) >= 2 * (48 / 8 + LEAST)
    assert stack.sdc.rate == pytest.approx(by_hand(rows))
    assert stack.sdc.rate != pytest.approx(stack.sdc.count / stack.sdc.of, rel=0.05)
    for layer, group in stack.by_layer.items():
        assert group.sdc.rate == pytest.approx(by_hand(rows, layer=[layer]))
        assert group.sdc.ci95[0] <= group.sdc.rate <= group.sdc.ci95[1]
        assert group.sdc.of == sum(row["layer"] == [layer] for row in rows)
    for bit, group in stack.by_bit.items():
        assert group.sdc.rate == pytest.approx(by_hand(rows, bit=[int(bit)]))
    others = [stack.sdc, stack.due, stack.refused]
    assert stack.masked.rate == pytest.approx(1 - sum(one.rate for one in others))
    low, high = stack.masked.ci95
    assert 1 - sum(one.ci95[1] for one in others) <= low < stack.masked.rate < high < 1
    told = " ".join(result.summary.verdict.lost)
    count, of = stack.sdc.count, stack.sdc.of
    assert "of faults corrupt an answer silently, weighted by stratum" in told
    assert f"; {count} of {of} as they were drawn" in told


def test_means_of_severities_are_weighed(place, tmp_path):
    result = campaigns.run(
        place, document(tmp_path, strata="layer", allocation="equal", faults=120), tmp_path / "run"
    )
    rows = pq.read_table(tmp_path / "run" / "faults.parquet").to_pylist()
    sizes = {"first": 288, "second": 30, "third": 15}
    known = [
        (sizes[row["layer"][0]], row["score_loss"]) for row in rows
        if row["sdc"] and row["score_loss"] is not None
    ]  # fmt: skip
    assert len({size for size, _ in known}) > 1
    weighed = sum(size * loss for size, loss in known) / sum(size for size, _ in known)
    found = result.summary.stacks["deploy"].severity["score_loss"]
    assert found.value == pytest.approx(weighed)


def test_the_same_faults_in_two_stacks(place, tmp_path):
    """The first one's pilot decides for both."""
    result = faults(
        document(tmp_path), ["pillow_fp32", "opencv_fp32"], model=place / "card.yaml",
        data=place / "data", out=tmp_path / "run",
    )  # fmt: skip
    rows = pq.read_table(tmp_path / "run" / "faults.parquet").to_pylist()
    first, other = (
        [(*row["layer"], *row["index"], *row["bit"]) for row in rows if row["stack"] == side]
        for side in result.summary.stacks
    )
    assert first == other
    (pair,), stacks = result.summary.paired.values(), result.summary.stacks.values()
    one, two = (stack.sdc for stack in stacks)
    assert all(stack.same_faults for stack in stacks)
    assert pair.both + pair.only_first == one.count
    assert pair.both + pair.only_this == two.count
    assert pair.delta == pytest.approx(two.rate - one.rate)
    assert pair.ci95[0] <= pair.delta <= pair.ci95[1]


def test_killed_in_the_main_part_and_continued_gives_equal_rows(place, tmp_path):
    campaign = document(tmp_path, targets=["neurons"], faults=1500)
    campaigns.killed(campaign, place, tmp_path / "killed")

    assert cli.main(["resume", str(tmp_path / "killed")]) == 0
    campaigns.run(place, campaign, tmp_path / "whole")

    tables = [pq.read_table(tmp_path / name / "faults.parquet") for name in ("killed", "whole")]
    assert repr(tables[0].to_pylist()) == repr(tables[1].to_pylist())
    assert all(one.equal for one in replay(tmp_path / "killed", 1499))


@pytest.mark.parametrize("rule", ["proportional", "equal", "neyman"])
def test_it_goes_on_until_the_interval_is_narrow(place, tmp_path, rule):
    """The first 80 faults are those of a campaign of 80."""
    campaign = document(tmp_path, targets=["neurons"], faults=80, allocation=rule)
    few = campaigns.run(place, campaign, tmp_path / "few")
    many = campaigns.run(place, campaign, tmp_path / "many", until=0.06)

    low, high = many.summary.stacks["deploy"].sdc.ci95
    assert high - low <= 0.06 < np.diff(few.summary.stacks["deploy"].sdc.ci95)[0]
    rows = [pq.read_table(one.folder / "faults.parquet").to_pylist() for one in (few, many)]
    assert repr(rows[1][:80]) == repr(rows[0])
    assert many.summary.faults == len(rows[1])


def test_a_long_campaign_is_drawn_in_pieces(place, tmp_path, monkeypatch):
    """In the rows nothing shows that it was divided; no more faults than a piece has are held."""
    from simulator.faults import on_stack
    from simulator.faults.draw import Drawn

    campaign = document(tmp_path, faults=100)
    campaigns.run(place, campaign, tmp_path / "whole")
    sizes, held, add = [], [], on_stack.FaultTable.add

    def counted(self, *given):
        sizes.append(len(given[-1]))
        held.append(sum(isinstance(one, Drawn) for one in gc.get_objects()))
        add(self, *given)

    monkeypatch.setattr(on_stack, "DRAWN", 30)
    monkeypatch.setattr(on_stack.FaultTable, "add", counted)
    campaigns.run(place, campaign, tmp_path / "pieces")
    assert sizes == held == [20, 30, 30, 20]  # the pilot is a piece of its own
    tables = [pq.read_table(tmp_path / name / "faults.parquet") for name in ("whole", "pieces")]
    assert repr(tables[0].to_pylist()) == repr(tables[1].to_pylist())


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"strata": "none"}, "allocation: neyman needs strata: bit, layer or operator"),
        ({"lasts": "permanent"}, "allocation: neyman is for transient faults"),
        ({"at_once": 2}, "allocation: neyman is for one bit at once"),
    ],
)
def test_what_it_is_not_for_is_refused(place, tmp_path, fields, message):
    with pytest.raises(ProfileError, match=message):
        campaigns.run(place, document(tmp_path, **fields), tmp_path / "run")
