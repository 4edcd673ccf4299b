"""Campaigns and what they draw: uniform over bits, by strata, by seed and number alone."""

import re

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.contract.injection import Site, Target
from simulator.errors import ProfileError, UserError
from simulator.faults.campaign import FOLDER, load_campaign
from simulator.faults.draw import Population
from simulator.profile.suite import builtin_suites

SITES = (
    Site("in", "Input", Target.INPUT, "float32", (1, 3, 4, 4)),
    Site("a", "Conv", Target.WEIGHTS, "float32", (10, 3)),
    Site("a", "Conv", Target.NEURONS, "float32", (1, 100)),
    Site("b", "Conv", Target.WEIGHTS, "int8", (70,)),
    Site("b", "Conv", Target.BIASES, "int32", (7,)),
    Site("c", "Gemm", Target.WEIGHTS, "int8", (200,)),
)


def campaign(folder, **fields):
    place = folder / "mine.yaml"
    spec = {"schema": 1, "name": "mine", "summary": "", "targets": ["weights"], "faults": 5000}
    place.write_text(yaml.safe_dump(spec | fields))
    return load_campaign(str(place))


def drawn_of(population):
    count = population.campaign.spec.faults
    return [population.draw(number, 0, 10) for number in range(count)]


def test_the_built_in_ones_are_those_of_the_paper():
    found = {name: load_campaign(name).spec for name in builtin_suites(FOLDER)}

    assert set(found) == {
        f"{target}-{lasts}"
        for target in ("weights", "neurons")
        for lasts in ("transient", "permanent")
    }
    assert {one.kind for one in found.values() if one.lasts == "permanent"} == {"stuck_at_1"}
    assert {one.bits for one in found.values() if one.lasts == "permanent"} == {"exponent"}


def test_bits_are_drawn_uniformly(tmp_path):
    """960 bits of a, 560 of b, 1,600 of c: 3,120; expected counts of 5,000 within 5 sigma."""
    drawn = drawn_of(Population(SITES, campaign(tmp_path)))

    counts = {at: sum(one.sites == (at,) for one in drawn) for at in (1, 3, 5)}
    assert sum(counts.values()) == 5000
    for at, bits in ((1, 960), (3, 560), (5, 1600)):
        share = bits / 3120
        assert abs(counts[at] - 5000 * share) < 5 * (5000 * share * (1 - share)) ** 0.5
    of_a = np.bincount([one.faults[0].bit for one in drawn if one.sites == (1,)], minlength=32)
    expected = counts[1] / 32
    assert ((of_a - expected) ** 2 / expected).sum() < 70  # chi squared, 31 degrees, p 1e-4
    assert all(0 <= one.faults[0].index < SITES[one.sites[0]].elements for one in drawn)
    assert set(np.bincount([one.sample for one in drawn]) > 400) == {True}


@given(number=st.integers(0, 10**6), seed=st.integers(0, 10**6))
@settings(max_examples=50, deadline=None)
def test_a_fault_depends_on_seed_and_number_alone(tmp_path_factory, number, seed):
    folder = tmp_path_factory.mktemp("campaign")
    few, many = (
        Population(SITES, campaign(folder, faults=count, at_once=3)) for count in (1, 5000)
    )

    one = few.draw(number, seed, 10)
    assert one == many.draw(number, seed, 10)
    assert len({(one.sites[f.site], f.index, f.bit) for f in one.faults}) == 3


def test_several_bits_are_drawn_from_all_layers_alike(tmp_path):
    """Each of three bits is of a layer by its share of the bits, whatever the others are."""
    population = Population(SITES, campaign(tmp_path, at_once=3, faults=2000))
    drawn = drawn_of(population)

    hit = [[one.sites[fault.site] for fault in one.faults] for one in drawn]
    for at, bits in ((1, 960), (3, 560), (5, 1600)):
        share = bits / 3120
        for place in range(3):
            count = sum(one[place] == at for one in hit)
            assert abs(count - 2000 * share) < 5 * (2000 * share * (1 - share)) ** 0.5
    together = sum(one[0] == one[1] for one in hit)
    expected = 2000 * sum((bits / 3120) ** 2 for bits in (960, 560, 1600))
    assert abs(together - expected) < 5 * expected**0.5
    assert all(one.sites == tuple(sorted(set(one.sites))) for one in drawn)


def test_strata_have_equal_numbers_and_their_shares(tmp_path):
    own = campaign(tmp_path, strata="layer", allocation="equal", faults=300)
    population = Population(SITES, own)

    assert list(population.strata) == ["a", "b", "c"]
    assert list(population.strata.values()) == pytest.approx([960 / 3120, 560 / 3120, 1600 / 3120])
    drawn = drawn_of(population)
    assert np.bincount([one.stratum for one in drawn]).tolist() == [100, 100, 100]
    assert {(one.stratum, *one.sites) for one in drawn} == {(0, 1), (1, 3), (2, 5)}


def test_the_bits_of_the_exponent(tmp_path):
    population = Population(SITES, campaign(tmp_path, targets=["neurons"], bits="exponent"))

    assert population.bits == 800
    assert population.possible == 3200
    bits = {one.faults[0].bit for one in drawn_of(population)}
    assert bits == set(range(23, 31))


def test_integers_have_no_exponent_and_all_their_bits_count(tmp_path):
    population = Population(SITES, campaign(tmp_path, bits="exponent"))

    assert population.bits == 30 * 8 + 70 * 8 + 200 * 8


def test_permanent_faults_have_no_sample(tmp_path):
    drawn = drawn_of(Population(SITES, campaign(tmp_path, lasts="permanent", faults=5)))

    assert [one.sample for one in drawn] == [None] * 5


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"layers": ["d"]}, r"layers: no such layer can be reached: 'd' \(there are 3: a, b, c\)$"),
        (
            {"operators": ["Conf"]},
            r"operators: no such operator can be reached: 'Conf'; did you mean 'Conv'\? "
            r"\(there are 2: Conv, Gemm\)$",
        ),
        (
            {"layers": ["c"], "operators": ["Conv"]},
            "operators: none of these layers has such an operator",
        ),
        (
            {"strata": "layer", "allocation": "equal", "faults": 2},
            "faults: 2 are too few for allocation: equal; there are 3 strata",
        ),
        ({"bits": [31, 8]}, "bits: 31: the weights of 'b' are stored as int8, whose bits are 0"),
    ],
)
def test_what_an_artifact_has_not_is_refused(tmp_path, fields, message):
    with pytest.raises(UserError, match=message):
        Population(SITES, campaign(tmp_path, **fields))


def test_a_target_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(UserError, match="targets: the artifact has no biases, only neurons"):
        Population(SITES[2:3], campaign(tmp_path, targets=["biases"]))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"kind": "glitch"}, r"mine.yaml:\d: kind: unknown value 'glitch'"),
        ({"faults": 0}, r"mine.yaml:\d: faults: "),
        ({"bits": [3, 3]}, r"bits: one of them is there twice"),
        ({"bits": [32]}, r"bits"),
        ({"allocation": "equal"}, r"allocation: equal needs strata: bit, layer or operator"),
        ({"targets": []}, r"targets"),
        ({"layer": ["a"]}, r"layer"),
    ],
)
def test_documents_are_checked(tmp_path, fields, message):
    with pytest.raises(ProfileError) as caught:
        campaign(tmp_path, **fields)

    assert re.search(message, str(caught.value))
