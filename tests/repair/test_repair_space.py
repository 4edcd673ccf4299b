"""The space of a repair: combinations, costs, Pareto's front, halving; and bad documents."""

import itertools

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from simulator.errors import ProfileError, UserError
from simulator.experiments.common import chosen, refuse_missing
from simulator.profile.suite import builtin_suites, overrides
from simulator.repair.confirm import answer, subsets
from simulator.repair.document import FOLDER, load_repairs
from simulator.repair.offered import offered
from simulator.repair.search import schedule
from simulator.repair.space import EXACT, Candidate, better_half, fronts, space
from simulator.repair.summary import repaired_profile
from simulator.results.repair import Confirmation

BGR = {"set": {"color.order": "bgr"}, "cost": {"ms": 1.5, "hours": 2}}
AREA = {"set": {"resize": "opencv-area"}, "cost": {"ms": "measured", "work": "one word"}}
BOX = {"set": {"resize": "pil-box"}, "cost": {"ms": -1.0}}
DOCUMENT = {
    "schema": 1, "name": "mine", "summary": "two axes",
    "axes": {"order": {"bgr": BGR}, "resize": {"area": AREA, "box": BOX}},
}  # fmt: skip


@pytest.fixture
def read(tmp_path):
    """Write a document and read it; *changed* replaces its fields."""

    def make(**changed):
        path = tmp_path / "mine.yaml"
        path.write_text(yaml.safe_dump({**DOCUMENT, **changed}, sort_keys=False))
        return load_repairs(str(path))

    return make


def option(**fields):
    return {"set": fields, "cost": {}}


def test_every_combination_has_at_most_one_option_of_an_axis(read):
    """Two axes with one and two options: 2 x 3 stacks, the deployment first."""
    names = [one.name for one in space(read(), "pillow_fp32", []).candidates]

    assert names[0] == "deploy"
    assert sorted(names[1:]) == [
        "order/bgr", "order/bgr + resize/area", "order/bgr + resize/box", "resize/area",
        "resize/box",
    ]  # fmt: skip


def test_costs_add_up_and_what_is_saved_is_free(read):
    whole = space(read(), "pillow_fp32", [])
    ms = {("resize", "area"): 0.4}
    both = (("order", "bgr"), ("resize", "area"))

    cost = whole.cost(both, ms)

    assert (cost.ms, cost.hours) == (pytest.approx(1.9), 2)
    assert whole.cost((("resize", "box"),), ms).ms == -1
    ranked = sorted(whole.candidates, key=lambda one: whole.rank(one.picks, ms))
    assert [one.name for one in ranked[:3]] == ["deploy", "resize/box", "resize/area"]


def test_what_one_option_saves_pays_for_no_other_one(read):
    """A box that saves 1 ms does not make the order, which costs 1.5 ms, cheaper than 1.2 ms."""
    axes = DOCUMENT["axes"] | {
        "threads": {"two": {"set": {"runtime.threads": 2}, "cost": {"ms": 1.2}}}
    }
    whole = space(read(axes=axes), "pillow_fp32", [])

    ranked = sorted(
        whole.candidates, key=lambda one: whole.rank(one.picks, {("resize", "area"): 9})
    )

    assert [one.name for one in ranked[:5]] == [
        "deploy", "resize/box", "threads/two", "resize/box + threads/two", "order/bgr",
    ]  # fmt: skip


def test_the_order_says_what_cheap_means(read):
    """2 hours and 1.5 ms, or no hours and 2 ms."""
    slow = AREA | {"cost": {"ms": 2.0}}
    axes = {"order": {"bgr": BGR}, "resize": {"slow": slow}}
    found = {}
    for order in ("ms", "hours"):
        whole = space(read(axes=axes, order=[order]), "pillow_fp32", [])
        found[order] = sorted(whole.candidates, key=lambda one: whole.rank(one.picks, {}))[1].name

    assert found == {"ms": "order/bgr", "hours": "resize/slow"}


def test_options_that_write_another_value_into_one_field_are_not_combined(read):
    axes = {
        "one": {"rgb": option(**{"resize.domain": "rgb", "resize.interpolation": "bilinear"})},
        "two": {"other": option(**{"resize.interpolation": "bicubic"})},
    }
    whole = space(read(axes=axes), "pillow_fp32", [])

    assert whole.left_out == {
        "one/rgb + two/other": "one/rgb and two/other both set resize.interpolation"
    }
    assert len(whole.candidates) == 3


def test_what_one_option_takes_away_stays_away(read):
    """In either order: the colour section that another option would extend is gone."""
    gone, put = (
        option(color={"source": None, "format": "rgb"}),
        option(**{"color.source": "encode"}),
    )
    for axes in ({"a": {"x": gone}, "b": {"y": put}}, {"b": {"y": put}, "a": {"x": gone}}):
        whole = space(read(axes=axes), "pillow_fp32", [])

        assert whole.written({"a": "x", "b": "y"})["color.source"] is None


def test_a_profile_extends_the_deployment_and_says_only_what_changes():
    """Antialiasing and subpixel_scale are DALI's; Pillow's box has no such fields."""

    def repaired(deploy, *changes):
        stack = Candidate((("resize", "box"),), chosen(deploy, changes))
        return yaml.safe_load(repaired_profile(stack, deploy))

    found = repaired("pillow_fp32", "resize=pil-box", "color.order=bgr", "runtime.threads=2")
    assert found["extends"] == "pillow_fp32"
    assert {*found} == {"schema", "name", "summary", "extends", "runtime", "resize", "color"}
    assert (found["resize"], found["color"]) == ({"interpolation": "box"}, {"order": "bgr"})
    assert repaired("dali_fp32", "resize=pil-box", "resize.antialias=null",
                    "resize.subpixel_scale=null")["resize"] == {
        "backend": "pillow", "interpolation": "box", "antialias": None, "subpixel_scale": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"axes": {}}, "at least one is needed"),
        ({"axes": {"order": {}}}, "axes.order: at least one option is needed"),
        ({"axes": {"a/b": {"x": BGR}}}, "a name without / and + is needed"),
        ({"axes": {"a": {"x": {"set": {}, "cost": {}}}}}, "mine.yaml:7: axes.a.x.set: at least 1"),
        ({"axes": {"a": {"x": {"set": {"a": 1}}}}}, "axes.a.x.cost"),
        ({"axes": {"a": {"x": BGR | {"cost": {"ms": "fast"}}}}}, "axes.a.x.cost.ms"),
        ({"axes": {"a": {"x": BGR | {"cost": {"ms": float("nan")}}}}}, "axes.a.x.cost.ms"),
        ({"order": ["euros"]}, "order.0"),
        ({"order": ["ms", "ms"]}, "a measure is there twice"),
        ({"axis": {}}, "did you mean 'axes'"),
    ],
)  # fmt: skip
def test_a_bad_document_is_refused_in_a_line_that_names_the_place(read, changed, said):
    with pytest.raises(ProfileError) as refused:
        read(**changed)

    assert all("mine.yaml:" in line for line in refused.value.problems)
    assert said in refused.value.problems[0]


def test_an_option_that_no_stack_can_have_is_refused_where_it_stands(read):
    repairs = read(axes={"order": {"bgr": BGR}, "resize": {"typo": option(resize="pil-bix")}})

    with pytest.raises(ProfileError, match=r"mine.yaml:\d+: axes.resize.typo: .*pil-box"):
        space(repairs, "pillow_fp32", [])


def test_too_many_combinations_are_refused(read):
    """Three options on each of six axes are 4 ** 6 = 4,096 stacks."""
    axes = {f"axis{at}": dict.fromkeys("abc", BGR) for at in range(6)}

    with pytest.raises(UserError, match="4,096 combinations of options, and 1,024 are the most"):
        space(read(axes=axes), "pillow_fp32", [])


@pytest.mark.parametrize("name", builtin_suites(FOLDER))
def test_the_built_in_documents_can_be_read(name):
    assert load_repairs(name).spec.name == name


@pytest.mark.parametrize(
    ("name", "deploy", "count"),
    [
        ("ascend-310", "ascend_nv12_int8", 2 * 3 * 2 * 3),
        ("model-file", "pillow_fp32", 2 * 3),
        ("model-file-int8", "openvino_int8", 2**4 * 3),
    ],
)
def test_every_combination_of_a_built_in_document_is_a_stack(name, deploy, count):
    whole = space(load_repairs(name), deploy, [])

    assert whole.left_out == {}
    assert len(whole.candidates) == count <= EXACT


POINTS = st.dictionaries(
    st.integers(0, 40),
    st.tuples(st.integers(0, 9), st.tuples(st.integers(0, 5), st.integers(0, 3))),
)


def beats(one, other):
    return one != other and one[0] <= other[0] and one[1] <= other[1]


@given(POINTS)
def test_a_front_is_what_nothing_beats_by_its_definition(points):
    layers = fronts(points)

    assert sorted(name for layer in layers for name in layer) == sorted(points)
    left = dict(points)
    for layer in layers:
        unbeaten = {a for a in left if not any(beats(left[b], left[a]) for b in left)}
        assert set(layer) == unbeaten
        left = {name: point for name, point in left.items() if name not in unbeaten}


@given(POINTS, st.integers(1, 20))
def test_the_better_half_keeps_the_best_loss_and_beats_what_it_drops(points, keep):
    kept = better_half(points, keep)

    assert len(kept) == min(keep, len(points))
    dropped = set(points) - {*kept}
    assert not any(beats(points[a], points[b]) for a in dropped for b in kept)
    if points:
        assert min(points.values())[0] == points[kept[0]][0]


@given(st.integers(1, 1024), st.integers(1, 5000))
def test_halving_ends_with_every_sample(stacks, samples):
    ends = schedule(stacks, samples)

    assert ends[-1] == samples
    assert all(a < b for a, b in itertools.pairwise(ends))
    assert len(ends) == 1 or stacks > 64


def test_halving_by_hand():
    """256 stacks are 16 after four halvings; 250 samples are 15, 31, 62 and 125 before them."""
    assert schedule(256, 250) == [15, 31, 62, 125, 250]
    assert schedule(64, 250) == [250]


def confirmation(passes, rate):
    flips = {"count": rate or 0, "units": 100, "rate": rate and rate / 100, "ci95": None}
    return Confirmation.model_validate(
        {
            "samples": 100, "labelled": 0, "delta": {}, "flips": flips, "metric": {},
            "passes": passes, "rules": [], "p": None, "p_holm": None, "delta_p_holm": None,
        }
    )  # fmt: skip


@given(
    st.lists(
        st.tuples(st.booleans(), st.integers(0, 9), st.integers(0, 100)), min_size=1, max_size=9
    )
)
def test_the_chosen_one_is_the_cheapest_that_passes(drawn):
    found = {str(at): confirmation(passes, rate) for at, (passes, _, rate) in enumerate(drawn)}
    cost = {str(at): cost for at, (_, cost, _) in enumerate(drawn)}

    chosen, nearest = answer(dict.fromkeys(found, True), found, cost.__getitem__)

    passing = [name for name in found if found[name].passes]
    if not passing:
        assert chosen is None
        assert found[nearest].flips.rate == min(one.flips.rate for one in found.values())
    else:
        assert chosen == nearest and chosen in passing
        assert cost[chosen] == min(cost[name] for name in passing)


def test_a_rate_that_is_not_known_is_no_rate_of_zero():
    found = {"unknown": confirmation(False, None), "known": confirmation(False, 7)}

    assert answer(dict.fromkeys(found, True), found, list(found).index) == (None, "known")


@pytest.mark.parametrize(("changes", "count"), [(1, 2), (2, 4), (3, 8), (4, 16), (5, 12)])
def test_of_many_changes_only_those_alone_and_all_but_one_are_run(changes, count):
    """Of four all 2 ** 4; of five none, five, five times all but one, and all: 12."""
    assert len(subsets(tuple((f"axis{at}", "x") for at in range(changes)))) == count


def test_what_cannot_run_here_is_not_offered_and_named():
    """A profile of ONNX Runtime with OpenVINO inside: the package of PyPI is not built so."""
    changes = ["runtime.provider=openvino", "precision.compute=fp16", "precision.storage=fp32"]
    train = chosen("pillow_fp32", [*changes, "resize=opencv-area"])
    deploy = chosen("pillow_fp32", ())

    spec = offered(train, deploy, "pillow_fp32", ()).spec

    every = [one for some in spec.axes.values() for one in some.values()]
    refuse_missing([chosen("pillow_fp32", overrides(one.set_)) for one in every])
    (why,) = {why for name, why in spec.left_out.items() if name.endswith("/as_trained")}
    assert "here has no OpenVINOExecutionProvider" in why
