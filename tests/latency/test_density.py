import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.spatial.distance import jensenshannon
from scipy.stats import gaussian_kde, norm

from simulator.statistics.density import (
    RESOLUTION_NS,
    Fit,
    divergence,
    fit,
    pairwise,
    pooled_divergence,
)

# A normal density with mean 0 against one of mean d, both of width 1; and of widths 1 and s.
SHIFTED = [0.1, 0.5, 1.0, 3.0, 6.0]
WIDENED = [0.2, 0.9, 1.5, 10.0]


@st.composite
def samples(draw, least=2):
    """(R, 3) times around 1 to 2 ms: two narrow peaks, one broad one, or what is between."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape, size = draw(st.floats(0.05, 3)), (draw(st.integers(least, 60)), 3)
    return 1e6 * (1 + rng.beta(shape, shape, size) + 0.01 * rng.normal(size=size))


def single(mean, width):
    """One normal density: a fit to one time."""
    return Fit(np.array([[float(mean)]]), np.array([float(width)]))


def rjsd_of_normals(d, s):
    """By adaptive quadrature; in bits, as base 2 wants it."""
    p, q = norm(0, 1), norm(d, s)

    def bits(x):
        middle = (p.pdf(x) + q.pdf(x)) / 2
        return sum(f.pdf(x) * math.log2(f.pdf(x) / middle) for f in (p, q) if f.pdf(x) > 0) / 2

    reach = 12 * max(1, s)
    return math.sqrt(quad(bits, -reach, d + reach, limit=500, points=[-2, 0, d, d + 2 * s])[0])


def dense(x, y):
    """SciPy's densities and divergence, ten even points in the narrower bandwidth."""
    p, q = gaussian_kde(x), gaussian_kde(y)
    widths = [math.sqrt(kde.covariance[0, 0]) for kde in (p, q)]
    low, high = min(x.min(), y.min()), max(x.max(), y.max())
    reach = 9 * max(widths)
    count = math.ceil(10 * (high - low + 2 * reach) / min(widths))
    points = np.linspace(low - reach, high + reach, count)
    return jensenshannon(p(points), q(points), base=2)


@given(samples())
@settings(max_examples=40, deadline=None)
def test_densities_are_those_of_scipy(times):
    fitted = fit(times, floor=1e-9)
    points = fitted.grid()

    ours = fitted.density(points)

    for i in range(3):
        theirs = gaussian_kde(times[:, i])
        # Times are up to 2e6 with 2e-16 of rounding: a density at z bandwidths moves by z t e / h.
        slack = 40 * 2e6 * np.finfo(float).eps / fitted.bandwidth[i]
        near = theirs(points[:, i]) > 0
        assert fitted.bandwidth[i] ** 2 == pytest.approx(theirs.covariance[0, 0], rel=1e-12)
        assert ours[near, i] == pytest.approx(
            theirs(points[:, i])[near], rel=max(1e-12, slack), abs=1e-30
        )


def test_densities_are_those_of_scipy_to_the_last_digits_and_in_many_blocks():
    times = np.random.default_rng(0).normal(10, 3, size=(40, 700))
    points = np.linspace(0, 20, 90)[:, None] * np.ones(700)

    ours = fit(times, floor=1e-9).density(points)

    for i in (0, 1, 363, 364, 365, 699):
        assert ours[:, i] == pytest.approx(gaussian_kde(times[:, i])(points[:, i]), rel=1e-12)


def test_the_bandwidth_worked_by_hand():
    """1, 2, 3, 4: the variance is 5/3, and 4**(-1/5) = 0.757858."""
    assert fit([[1], [2], [3], [4]], floor=0.1).bandwidth == pytest.approx(
        0.7578583 * 1.2909944, rel=1e-6
    )


@pytest.mark.parametrize("rounds", [1, 2, 30])
def test_constant_times_are_a_normal_density_as_wide_as_the_floor(rounds):
    fitted = fit(np.full((rounds, 2), 1_000_000), floor=2.0)
    points = np.array([[1e6 - 2, 1e6], [1e6, 1e6 + 4], [1e6 + 2, 1e6 + 6]])

    assert (fitted.bandwidth == 2).all()
    assert fitted.density(points) == pytest.approx(norm(1e6, 2).pdf(points), rel=1e-12)


def test_the_floor_is_the_clocks_and_at_least_a_nanosecond():
    assert RESOLUTION_NS >= 1
    assert fit([[5], [5]]).bandwidth[0] == RESOLUTION_NS


@pytest.mark.parametrize("outlier", [1, 10_000_000_000])
def test_an_outlier_among_constant_times_is_a_defined_density(outlier):
    """Of 31 times one is late or early: 1/31 of the density is around it, and the rest is not."""
    times = np.full((31, 1), 2_000_000)
    times[-1] = outlier
    fitted = fit(times)
    points = fitted.grid()

    above = np.where(points > (outlier + 2_000_000) / 2, fitted.density(points), 0)
    assert np.trapezoid(fitted.density(points), points, axis=0) == pytest.approx([1], abs=1e-3)
    share = np.trapezoid(above, points, axis=0)
    assert share == pytest.approx([1 / 31 if outlier > 2_000_000 else 30 / 31], abs=1e-3)
    assert divergence(fit(times[:-1]), fitted) == pytest.approx([1], abs=1e-3)


@given(samples())
@settings(deadline=None)
def test_the_grid_ascends_reaches_and_resolves(times):
    fitted = fit(times)
    points, h = fitted.grid(), fitted.bandwidth

    even = points[(points >= times.min(0) - 3.01 * h) & (points <= times.max(0) + 3.01 * h)]
    steps = np.diff(points, axis=0)
    assert even.size
    assert (steps >= 0).all()
    assert (steps[6:-6] <= h / 2).all()
    assert (points[0] < times.min(0) - 3 * h).all() and (points[-1] > times.max(0) + 3 * h).all()
    assert np.trapezoid(fitted.density(points), points, axis=0) == pytest.approx(1, abs=1e-3)


def test_the_grid_resolves_the_widest_span_there_is():
    """Two times at the ends and the rest in the middle: no span is larger in bandwidths."""
    times = np.full((50, 1), 500.0)
    times[:2, 0] = 0, 1000
    fitted = fit(times, floor=1e-9)

    assert 1000 / fitted.bandwidth[0] == pytest.approx(math.sqrt(2 * 49) * 50**0.2)
    assert np.diff(fitted.grid(), axis=0)[6:-6].max() <= fitted.bandwidth[0] / 3


@pytest.mark.parametrize(("d", "s"), [(d, 1) for d in SHIFTED] + [(0, s) for s in WIDENED])
def test_two_normal_densities_are_as_far_apart_as_the_integral_says(d, s):
    assert divergence(single(0, 1), single(d, s)) == pytest.approx(
        [rjsd_of_normals(d, s)], abs=1e-3
    )


def test_nested_widths_of_many_orders_of_magnitude():
    """The narrower lies in a 1e10th of the wider: they share nothing."""
    assert divergence(single(0, 1), single(0, 1e10)) == pytest.approx([1], abs=1e-4)


@given(samples(least=5), samples(least=5))
@settings(max_examples=25, deadline=None)
def test_divergences_are_those_of_scipy_on_a_dense_grid(one, other):
    ours = divergence(fit(one, 1e-9), fit(other, 1e-9))

    assert ours == pytest.approx([dense(one[:, i], other[:, i]) for i in range(3)], abs=1e-3)


@given(samples(), samples())
@settings(max_examples=25, deadline=None)
def test_a_divergence_takes_no_side_and_knows_no_neighbours(one, other):
    a, b = fit(one), fit(other)

    both = divergence(a, b)

    assert ((both >= 0) & (both <= 1)).all()
    assert divergence(b, a) == pytest.approx(both, abs=1e-12)
    assert divergence(a.only(slice(1, 2)), b.only(slice(1, 2))) == pytest.approx(
        both[1:2], abs=1e-9
    )
    assert (divergence(a, a) == 0).all()


def test_many_instances_are_as_one():
    rng = np.random.default_rng(0)
    a, b = (fit(rng.normal(1e6, 1e4, size=(n, 700))) for n in (30, 55))

    together = divergence(a, b)

    alone = [divergence(a.only(slice(i, i + 1)), b.only(slice(i, i + 1)))[0] for i in range(700)]
    assert together == pytest.approx(alone, abs=1e-9)


def test_equal_constants_do_not_differ_and_others_do():
    thirty, more = np.full((30, 2), 100_000), np.full((55, 2), 100_000)
    more[:, 1] += 100

    apart = divergence(fit(thirty, 1.0), fit(more, 1.0))

    assert apart == pytest.approx([0, 1], abs=1e-6)
    assert divergence(fit(thirty), fit(thirty)).tolist() == [0, 0]


def test_a_tick_of_the_clock_is_as_far_as_two_normals_a_width_apart():
    a, b = fit(np.full((30, 1), 50), 1.0), fit(np.full((55, 1), 51), 1.0)

    assert divergence(a, b) == pytest.approx([rjsd_of_normals(1, 1)], abs=1e-3)


def test_subnormal_densities_between_two_times_count_nothing():
    """Times at 0 and far off: half of 5e-324 is 0, which SciPy's divergence divides by."""
    far = np.linspace(76.9, 77.5, 100)
    a, b = np.zeros((400, 100)), np.zeros((350, 100))
    a[-1], b[-1] = far, far

    found = divergence(Fit(a, np.full(100, 1.0)), Fit(b, np.full(100, 0.9)))

    assert found == pytest.approx(np.full(100, rjsd_of_normals(0, 0.9)), abs=1e-3)


def test_pairs_are_those_of_the_instances():
    times = np.random.default_rng(0).normal([10, 10, 12, 50], [1, 1, 2, 3], size=(50, 4))

    found = pairwise(fit(times, 1e-9))

    expected = [
        [0 if i == j else dense(times[:, i], times[:, j]) for j in range(4)] for i in range(4)
    ]
    assert found == pytest.approx(np.array(expected), abs=1e-3)
    assert (np.diag(found) == 0).all() and (found == found.T).all()
    assert pairwise(fit(times[:, :1])).tolist() == [[0]]


@pytest.mark.parametrize("heavy", [0.1, 0.5, 1.0])
def test_pooled_divergences_are_those_of_scipy(heavy):
    rng = np.random.default_rng(0)
    x, y = 1e6 * rng.lognormal(0, heavy, 3000), 1.02e6 * rng.lognormal(0, heavy, 2000)

    found = pooled_divergence(fit(x[:, None]), fit(y[:, None]))

    assert found == pytest.approx(dense(x, y), abs=1e-3)


def test_pooled_constants_and_outliers():
    constant = np.full((5000, 1), 1_000_000)
    outlier = constant.copy()
    outlier[-1] = 10_000_000_000
    of = [fit(times, 1.0) for times in (constant, outlier, constant[:300] + 1000)]

    assert pooled_divergence(of[0], of[0]) == pooled_divergence(of[1], of[1]) == 0
    assert pooled_divergence(of[0], of[1]) == pytest.approx(1, abs=1e-3)
    assert pooled_divergence(of[0], of[2]) == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: fit([1, 2, 3]), "times must be finite"),
        (lambda: fit(np.empty((0, 3))), "times must be finite"),
        (lambda: fit([[1.0], [math.nan]]), "times must be finite"),
        (lambda: fit([[1], [2]], floor=0), "floor must be above 0"),
        (lambda: divergence(fit([[1, 2]]), fit([[1]])), "the fits have 2 and 1 instances"),
        (lambda: pairwise(fit(np.ones((2, 65)))), "at most 64 instances can be compared; got 65"),
        (lambda: pooled_divergence(fit([[1, 2]]), fit([[1]])), "one instance each; got 2 and 1"),
    ],
)
def test_refuses(call, says):
    with pytest.raises(ValueError, match=says):
        call()
