import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import jensenshannon
from scipy.stats import gaussian_kde

from simulator.latency.stopping import Rule, Stopping

QUICK = Rule(first=4, every=2, window=2, delta=0.2)


def kernels(times):
    kde = gaussian_kde(times)
    return kde, math.sqrt(kde.covariance[0, 0])


def rjsd(x, y):
    (p, h), (q, g) = kernels(x), kernels(y)
    low, high = min(x.min(), y.min()) - 9 * max(h, g), max(x.max(), y.max()) + 9 * max(h, g)
    points = np.linspace(low, high, math.ceil(10 * (high - low) / min(h, g)))
    return jensenshannon(p(points), q(points), base=2)


def as_written(times, rule):
    """The corrected Algorithm 1, line for line: (n,) rounds, and the gaps to delta that it met."""
    settled, gaps = [0] * times.shape[1], []
    for k in range(times.shape[1]):
        fits = []
        for r in range(rule.first, len(times) + 1, rule.every):
            apart = [rjsd(times[:r, k], times[:old, k]) for old in fits[-rule.window :]]
            gaps += [abs(value - rule.delta) for value in apart]
            if len(apart) == rule.window and max(apart) < rule.delta and not settled[k]:
                settled[k] = r
            fits.append(r)
    return settled, gaps


def stopped(times, rule=QUICK, floor=1.0):
    """Hand over round after round; return the state and where add() first said done."""
    state, done = Stopping(rule, times.shape[1], floor), 0
    for rounds in range(1, len(times) + 1):
        if state.add(times[:rounds]) and not done:
            done = rounds
    return state, done


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([0.0, 0.02, 0.2]),
    st.integers(1, 3),
    st.integers(1, 3),
)
@settings(max_examples=20, deadline=None)
def test_it_stops_where_the_algorithm_does(seed, drift, every, window):
    rng = np.random.default_rng(seed)
    times = 1e6 + 1e4 * (rng.normal(size=(18, 2)) + drift * np.arange(18)[:, None])
    rule = Rule(first=4, every=every, window=window, delta=0.2)
    expected, gaps = as_written(times, rule)
    assume(min(gaps) > 1e-3)

    state, _ = stopped(times, rule)

    assert state.settled.tolist() == expected


def test_the_algorithm_settles_some_and_not_others():
    """What the comparison above is made on holds both, or it would prove little."""
    rng = np.random.default_rng(0)
    times = 1e6 + 1e4 * rng.normal(size=(18, 8))
    times[:, 7] += 1e4 * np.arange(18)
    settled = np.array(as_written(times, QUICK)[0])

    assert (settled == 0).any() and (settled == 8).any() and (settled > 8).any()
    assert stopped(times)[0].settled.tolist() == settled.tolist()


def test_an_instance_that_changes_its_level_is_done_later():
    rng = np.random.default_rng(0)
    times = rng.normal(1e6, 1e4, size=(200, 3))
    times[50:, 1] += 2e5
    times[:, 2] += np.where(np.arange(200) < 60, 4e3 * np.arange(200), 0)

    state, done = stopped(times, Rule())

    assert state.settled[0] == 55
    assert (state.settled[1:] > 55).all()
    assert ((state.settled[1:] - 30) % 5 == 0).all()
    assert done == state.settled.max()


def test_an_outlier_among_constant_times_leaves_the_window_first():
    """10 s, or 1 ns, in round 52: fits from 55 on hold it: the oldest of the window at 80."""
    times = np.full((90, 3), 3_000_000)
    times[51, 1:] = 10_000_000_000, 1

    assert stopped(times, Rule())[0].settled.tolist() == [55, 80, 80]


def test_steps_far_below_the_floor_are_none():
    times = np.where(np.arange(40) < 5, 1000, 1001)[:, None]

    assert stopped(times, floor=100.0)[0].settled.tolist() == [8]
    assert stopped(times, floor=0.01)[0].settled[0] > 8


def test_done_is_sticky_and_ends_the_fits():
    """The first changes its level once it is done, while the second still grows."""
    times = np.full((200, 2), 1000)
    times[9:, 0] = 5000
    times[:16, 1] *= 2 ** np.arange(16)
    state, done = stopped(times)

    assert state.settled[0] == 8
    assert done == state.settled[1] > 16
    assert state.fits == (done - 4) / 2 + 1


@pytest.mark.parametrize("chunks", [[40], [3, 11, 40], [17, 17, 40]])
def test_recorded_rounds_handed_over_again_give_the_same_state(chunks):
    times = np.random.default_rng(0).integers(1000, 9000, size=(40, 6))
    state, _ = stopped(times)

    again = Stopping(QUICK, 6, 1.0)
    for rounds in chunks:
        answer = again.add(times[:rounds])

    assert again.settled.tolist() == state.settled.tolist()
    assert (again.fits, answer) == (state.fits, state.done)


def test_rounds_cannot_vanish_nor_instances_change():
    state = Stopping(QUICK, 2)
    state.add(np.ones((5, 2)))

    with pytest.raises(ValueError, match=r"at least 5, 2\); got \(4, 2\)"):
        state.add(np.ones((4, 2)))
    with pytest.raises(ValueError, match=r"got \(6, 3\)"):
        state.add(np.ones((6, 3)))
    with pytest.raises(ValueError, match="there must be an instance"):
        Stopping(QUICK, 0)
