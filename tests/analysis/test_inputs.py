"""What the input does to the latency, on data of known slope and known distributions."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.spatial.distance import jensenshannon

from simulator.latency.inputs import (
    COMPARED,
    Inputs,
    equal_size,
    influence,
    instances,
    medians,
    regression,
    tallness,
)
from simulator.latency.times import NEVER, Times

MS = 1_000_000


def sized(widths, heights):
    names = [f"{at}.jpg" for at in range(len(widths))]
    sizes = {"width": list(widths), "height": list(heights), "bytes": [1] * len(widths)}
    return Inputs(names, sizes)


def times(ms):
    return Times((np.array(ms) * MS).round().astype(np.int64), {})


def test_a_line_without_noise():
    """2 ms and 3 ms more per megapixel."""
    pixels = np.array([1e5, 5e5, 1e6, 4e6])

    found = regression(pixels, 2 + 3 * pixels / 1e6)

    assert found["ms_per_megapixel"] == pytest.approx(3)
    assert found["intercept_ms"] == pytest.approx(2)
    assert found["r2"] == pytest.approx(1)
    assert found["ci95"] == pytest.approx([3, 3])


def test_tall_images_of_equal_pixels_take_longer():
    """2 ms and 3 ms more per megapixel, and 0.5 ms more for tall images, without noise."""
    inputs = sized([600, 400, 800, 500, 300, 900], [400, 600, 500, 800, 300, 600])
    ms = 2 + 3 * inputs.pixels / 1e6 + 0.5 * np.array([0, 1, 0, 1, 0, 0])

    found = tallness(inputs, times([ms]))

    assert (found.tall, found.others) == (2, 4)
    assert (found.ms, *found.ci95) == pytest.approx((0.5, 0.5, 0.5))
    assert tallness(sized([4, 5, 6, 7, 8], [3] * 5), times([np.arange(5.0)])) is None


def test_images_that_are_answered_together_are_one_observation():
    """Four copies of a latency are no evidence: the line is that through the six queries."""
    rng = np.random.default_rng(1)
    inputs = sized(rng.integers(100, 900, 24), [1000] * 24)
    pixels = inputs.pixels.reshape(6, 4).sum(axis=1) / 1e6
    query = (1 + 2 * pixels + rng.normal(0, 1, 6)).round(6)
    batched = replace(times([np.repeat(query, 4)]), together=4)

    found = influence({"a": batched}, inputs)["a"]

    expected = stats.linregress(pixels, query)
    assert (found.size.ms_per_megapixel, found.size.p) == pytest.approx(
        (expected.slope, expected.pvalue)
    )
    assert found.equal_size is found.instances is None


def test_a_line_with_noise_is_that_of_least_squares():
    """numpy.polyfit and the formulas of the textbook: its covariance is that of n - 2."""
    rng = np.random.default_rng(0)
    pixels = rng.uniform(1e5, 8e6, 50)
    ms = 5 + 0.7 * pixels / 1e6 + rng.normal(0, 1.5, 50)

    found = regression(pixels, ms)

    (slope, intercept), covariance = np.polyfit(pixels / 1e6, ms, 1, cov=True)
    error = np.sqrt(covariance[0, 0])
    r = np.corrcoef(pixels, ms)[0, 1]
    assert found["ms_per_megapixel"] == pytest.approx(slope)
    assert found["intercept_ms"] == pytest.approx(intercept)
    assert found["ci95"] == pytest.approx(stats.t.interval(0.95, 48, slope, error))
    assert found["r2"] == pytest.approx(r**2)
    assert found["p"] == pytest.approx(2 * stats.t.sf(slope / error, 48))
    assert found["ci95"][0] < 0.7 < found["ci95"][1]


def test_two_sizes_have_a_slope_and_a_constant_time_has_none():
    """Means 2 and 4 ms at 1 and 2 megapixels."""
    pixels = np.array([1e6, 1e6, 2e6, 2e6])

    assert regression(pixels, np.array([1.5, 2.5, 3, 5]))["ms_per_megapixel"] == pytest.approx(2)
    flat = regression(pixels, np.full(4, 3.0))
    assert flat == {"ms_per_megapixel": 0, "ci95": [0, 0], "intercept_ms": 3, "r2": 0, "p": 1}


@pytest.mark.parametrize("pixels", [[1e6], [1e6, 2e6], [1e6] * 5])
def test_one_size_or_two_images_have_no_slope(pixels):
    assert regression(np.array(pixels), np.arange(len(pixels)) * 1.0) is None


def test_a_median_is_over_rounds():
    assert medians(times([[1, 10], [2, 30], [9, 20]])).tolist() == [2, 20]


def test_a_failure_counts_as_the_longest_answer():
    one = times([[1, 10], [2, 30], [9, 20]])
    total = one.total.copy()
    total[0, 0] = NEVER

    assert medians(Times(total, {})).tolist() == [9, 20]


def test_instances_of_the_most_frequent_size():
    """4x3 is there three times; 3x4 has as many pixels and another shape."""
    inputs = sized([4, 3, 4, 9, 4, 3], [3, 4, 3, 9, 3, 4])

    found = equal_size(times([[5, 1, 7, 1, 9.5, 1]]), inputs)

    assert found == {
        "width": 4, "height": 3, "instances": 3, "min_ms": 5, "median_ms": 7, "max_ms": 9.5,
    }  # fmt: skip


def test_where_no_two_images_have_one_size_there_are_no_equals():
    assert equal_size(times([[5, 1]]), sized([4, 3], [3, 4])) is None


def test_the_heat_map_is_symmetric_and_right():
    """Against scipy on two normal-ish instances: the first and the last of four."""
    rng = np.random.default_rng(0)
    ms = rng.normal([5, 5.05, 9, 5.2], 0.1, (40, 4))
    inputs = sized([10, 20, 30, 40], [10, 10, 10, 10])

    found = instances(times(ms), inputs)

    apart = np.array(found["rjsd"])
    assert found["samples"] == ["0.jpg", "1.jpg", "2.jpg", "3.jpg"]
    assert (apart == apart.T).all() and (np.diagonal(apart) == 0).all()
    assert ((apart >= 0) & (apart <= 1)).all()
    assert (apart[2, [0, 1, 3]] == 1).all()
    grid = np.linspace(4, 7, 3001)
    p, q = (stats.gaussian_kde(ms[:, at])(grid) for at in (0, 3))
    assert apart[0, 3] == pytest.approx(jensenshannon(p, q, base=2), abs=1e-3)


def test_of_many_instances_some_of_every_size_are_compared():
    """Small to large, the smallest and the largest among them."""
    rng = np.random.default_rng(0)
    widths = rng.permutation(np.arange(1, 101))
    found = instances(times(rng.normal(5, 1, (5, 100))), sized(widths, [1] * 100))

    chosen = [int(widths[int(name.removesuffix(".jpg"))]) for name in found["samples"]]
    assert len(chosen) == COMPARED == len(found["rjsd"]) == len(found["rjsd"][0])
    assert chosen == sorted(set(chosen))
    assert (chosen[0], chosen[-1]) == (1, 100)
    assert max(np.diff(chosen)) <= 5


def test_few_rounds_have_no_distribution_of_an_instance():
    inputs = sized([1, 2], [1, 1])

    assert instances(times(np.ones((4, 2))), inputs) is None
    assert instances(times(np.ones((5, 2))), inputs)["rjsd"] == [[0, 0], [0, 0]]


def test_one_instance_alone():
    found = influence({"deploy": times(np.ones((6, 1)))}, sized([3], [4]))["deploy"]

    assert found == {
        "size": None, "equal_size": None, "instances": {"samples": ["0.jpg"], "rjsd": [[0]]},
    }  # fmt: skip


def test_each_stack_has_its_own():
    inputs = sized([1000, 2000, 3000], [1000] * 3)
    found = influence({"a": times([[1, 2, 3]]), "b": times([[3, 2, 1]])}, inputs)

    assert found["a"]["size"]["ms_per_megapixel"] == pytest.approx(1)
    assert found["b"]["size"]["ms_per_megapixel"] == pytest.approx(-1)
