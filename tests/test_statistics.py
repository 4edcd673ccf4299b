import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.statistics import paired
from simulator.statistics.paired import (
    bonett_price,
    clopper_pearson,
    mcnemar_exact,
    mcnemar_midp,
    samples_needed,
    wilson,
)

# Newcombe, Statistics in Medicine 17 (1998) 857-872, table I: methods 3 (score) and 5 (exact).
NEWCOMBE = [
    (81, 263, (0.2553, 0.3662), (0.2527, 0.3676)),
    (15, 148, (0.0624, 0.1605), (0.0578, 0.1617)),
    (0, 20, (0.0000, 0.1611), (0.0000, 0.1684)),
    (1, 29, (0.0061, 0.1718), (0.0009, 0.1776)),
]


@st.composite
def rates(draw):
    n = draw(st.integers(1, 5000))
    return draw(st.integers(0, n)), n


@st.composite
def discordant(draw):
    b, c = draw(st.integers(0, 500)), draw(st.integers(0, 500))
    return b, c, max(1, b + c + draw(st.integers(0, 5000)))


@pytest.mark.parametrize(("k", "n", "score", "exact"), NEWCOMBE)
def test_rates_are_those_of_newcombes_table(k, n, score, exact):
    assert wilson(k, n) == pytest.approx(score, abs=5e-5)
    assert clopper_pearson(k, n) == pytest.approx(exact, abs=5e-5)


def test_clopper_pearson_without_a_success_has_a_closed_form():
    """(1 - p)**n = 0.025, so p = 1 - 0.025**(1/n)."""
    assert clopper_pearson(0, 10) == pytest.approx((0.0, 1 - 0.025 ** (1 / 10)), abs=1e-12)
    assert clopper_pearson(10, 10) == pytest.approx((0.025 ** (1 / 10), 1.0), abs=1e-12)


def test_bonett_price_is_that_of_its_author():
    """Bonett's R package statpsych, ci.prop.ps(.05, 12, 4, 26, 6): 0.2548067 to 0.6251933.

    https://search.r-project.org/CRAN/refmans/statpsych/html/ci.prop.ps.html
    """
    assert bonett_price(4, 26, 48) == pytest.approx((0.2548067, 0.6251933), abs=1e-7)


def test_bonett_price_worked_by_hand_says_deploy_minus_train():
    """7 lost, 1 won of 21: (2 - 8)/23 = -0.26087, variance (10/23 - 36/529)/23 = 0.0159448."""
    low, high = bonett_price(7, 1, 21)

    assert (low, high) == pytest.approx((-0.508359, -0.013380), abs=1e-6)


def test_mcnemar_worked_by_hand():
    """1 against 7: 2 (1 + 8) / 256 exactly, and 8/256 less for mid-p.

    Fagerland et al. 2013, Table 1 and its analysis: 0.070 and 0.039.
    """
    assert mcnemar_exact(7, 1) == pytest.approx(18 / 256, abs=1e-15)
    assert mcnemar_midp(7, 1) == pytest.approx(10 / 256, abs=1e-15)


def test_midp_of_equal_counts_takes_off_half_the_point_probability():
    """2 against 2: P(X = 2) of 4 is 6/16, so 1 - 3/16. 1 against 1: 1 - (2/4)/2. 3 and 3: 20/64.

    Fagerland et al. 2013, supplement "How to calculate the McNemar mid-p test": if n12 = n21, the
    mid-p-value is 1 - 0.5 binompdf(n12, n, 0.5).
    """
    assert mcnemar_midp(2, 2) == pytest.approx(13 / 16, abs=1e-15)
    assert mcnemar_midp(1, 1) == pytest.approx(3 / 4, abs=1e-15)
    assert mcnemar_midp(3, 3) == pytest.approx(1 - 10 / 64, abs=1e-15)


def test_mcnemar_on_the_textbooks_approval_ratings():
    """150 against 86 of Agresti, Categorical Data Analysis, 10.1: R's binom.test gives 3.716e-05.

    Here summed in whole numbers, which nothing rounds.
    """
    tail = sum(math.comb(236, k) for k in range(87))

    assert mcnemar_exact(150, 86) == pytest.approx(2 * tail / 2**236, rel=1e-10)
    assert mcnemar_exact(150, 86) == pytest.approx(3.716e-05, abs=5e-9)


def test_fewer_than_six_discordant_pairs_are_never_significant():
    few = paired.MIN_DISCORDANT - 1

    assert mcnemar_exact(few, 0) == 2 * 0.5**5 == 0.0625
    assert mcnemar_exact(few + 1, 0) == 0.03125


def test_without_discordant_pairs_p_is_one():
    assert mcnemar_exact(0, 0) == mcnemar_midp(0, 0) == 1.0


def test_samples_of_the_design_page():
    """(1.959964 sqrt(.005) + 0.841621 sqrt(.004999))**2 / 1e-6 = 0.1980965**2 / 1e-6 = 39242.2."""
    assert samples_needed(0.005, 0.001) == 39243


def test_samples_where_every_discordant_pair_points_one_way():
    """Psi = d = 0.5: (1.959964 * 0.7071068 + 0.841621 * 0.5)**2 / 0.25 = 13.03."""
    assert samples_needed(0.5, 0.5) == 14


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: wilson(3, 2), "k must be 0 to n"),
        (lambda: clopper_pearson(0, 0), "n at least 1"),
        (lambda: clopper_pearson(1, 2, confidence=95), "confidence must be above 0 and below 1"),
        (lambda: bonett_price(2, 2, 3), "b \\+ c must be at most n"),
        (lambda: mcnemar_exact(-1, 2), "cannot be negative"),
        (lambda: samples_needed(0.0005, 0.001), "cannot occur where only 0.0005"),
        (lambda: samples_needed(0.005, 0.0), "d must be above 0"),
    ],
)
def test_refuses(call, says):
    with pytest.raises(ValueError, match=says):
        call()


@given(rates())
def test_intervals_of_a_rate_hold_it_and_mirror(rate):
    k, n = rate
    for interval in (wilson, clopper_pearson):
        low, high = interval(k, n)
        assert 0 <= low <= k / n <= high <= 1
        assert interval(n - k, n) == pytest.approx((1 - high, 1 - low), abs=1e-9)


@given(discordant())
def test_bonett_price_holds_the_delta_and_mirrors(pairs):
    b, c, n = pairs
    low, high = bonett_price(b, c, n)

    assert -1 <= low <= (c - b) / n <= high <= 1
    assert bonett_price(c, b, n) == pytest.approx((-high, -low), abs=1e-12)


@given(st.integers(0, 2000), st.integers(0, 2000))
def test_mcnemar_takes_no_side_and_midp_is_the_smaller(b, c):
    assert mcnemar_exact(b, c) == mcnemar_exact(c, b)
    assert 0 <= mcnemar_midp(b, c) <= mcnemar_exact(b, c) <= 1


def wald(b: int, c: int, n: int) -> tuple[float, float]:
    half = 1.959964 * math.sqrt((b + c) / n - ((c - b) / n) ** 2) / math.sqrt(n)
    return (c - b) / n - half, (c - b) / n + half


def test_bonett_price_covers_at_small_discordance_where_wald_does_not():
    """4 lost and 1 won in a thousand; issue 2 says 0.895 of Wald. Standard error here 0.002."""
    n, p_b, p_c = 1000, 0.004, 0.001
    drawn = np.random.default_rng(0).multinomial(n, [p_b, p_c, 1 - p_b - p_c], size=20_000)
    tables, times = np.unique(drawn[:, :2], axis=0, return_counts=True)

    def coverage(interval):
        ends = [interval(int(b), int(c), n) for b, c in tables]
        return (
            sum(
                int(k)
                for (low, high), k in zip(ends, times, strict=True)
                if low <= p_c - p_b <= high
            )
            / times.sum()
        )

    assert coverage(bonett_price) >= 0.94
    assert coverage(wald) < 0.91
