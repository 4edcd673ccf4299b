"""The arithmetic of attacks, against numpy loops written for this test and against foolbox."""

import numpy as np
import pytest

from simulator.conditions.attacks import steps

RNG = np.random.default_rng(7)
CLEAN = RNG.uniform(0, 1, (4, 5, 3)).astype(np.float32)
WEIGHTS = RNG.normal(size=(60, 8)), RNG.normal(size=(8, 3))
TRUTH = 1


def gradient(pixels):
    """The derivative of the cross-entropy of two layers with a ReLU, by the chain rule."""
    hidden = pixels.reshape(-1).astype(np.float64) @ WEIGHTS[0]
    scores = np.maximum(hidden, 0) @ WEIGHTS[1]
    shares = np.exp(scores - scores.max())
    shares /= shares.sum()
    shares[TRUTH] -= 1
    back = (WEIGHTS[1] @ shares) * (hidden > 0)
    return (WEIGHTS[0] @ back).reshape(pixels.shape).astype(np.float32)


def nearest(change, norm, budget):
    """The projection onto a ball, by bisection of the shift or the scale, without a sort."""
    if norm == "linf":
        return np.minimum(np.maximum(change, -budget), budget)
    if norm == "l2":
        return change / max(1.0, np.sqrt(np.sum(change * change)) / budget)
    if np.abs(change).sum() <= budget:
        return change
    low, high = 0.0, np.abs(change).max()
    for _ in range(200):
        middle = (low + high) / 2
        left = np.maximum(np.abs(change) - middle, 0).sum()
        low, high = (middle, high) if left > budget else (low, middle)
    return np.sign(change) * np.maximum(np.abs(change) - high, 0)


def plain_pgd(norm, budget, step, count, start):
    at = start.astype(np.float64)
    for _ in range(count):
        found = gradient(at.astype(np.float32)).astype(np.float64)
        size = {"l2": np.sqrt((found**2).sum()), "l1": np.abs(found).sum()}
        move = np.sign(found) if norm == "linf" else found / size[norm]
        change = nearest(at + step * move - CLEAN, norm, budget)
        at = np.minimum(np.maximum(CLEAN + change, 0), 1)
    return at


@pytest.mark.parametrize(("norm", "budget"), [("linf", 0.1), ("l2", 0.7), ("l1", 3.0)])
def test_pgd_is_what_plain_loops_give(norm, budget):
    start = np.clip(CLEAN + RNG.uniform(-0.05, 0.05, CLEAN.shape), 0, 1).astype(np.float32)
    found = steps.pgd(CLEAN, start, norm, budget, budget / 5, 12, gradient)
    np.testing.assert_allclose(found, plain_pgd(norm, budget, budget / 5, 12, start), atol=1e-6)
    assert steps.length(found - CLEAN, norm) <= budget * (1 + 1e-6)
    assert found.min() >= 0 and found.max() <= 1 and found.dtype == np.float32


def test_fgsm_is_one_step_of_the_whole_budget():
    by_hand = np.clip(CLEAN + 0.2 * np.sign(gradient(CLEAN)), 0, 1)
    np.testing.assert_allclose(steps.fgsm(CLEAN, 0.2, gradient), by_hand, atol=1e-7)


@pytest.mark.parametrize("norm", steps.NORMS)
def test_a_start_is_drawn_from_the_ball_uniformly(norm):
    """The volume inside of radius r grows as r to the power of the dimensions, here 3."""
    rng = np.random.default_rng(0)
    found = np.array([
        steps.length(steps.drawn((1, 1, 3), norm, 2.0, rng), norm) for _ in range(4000)
    ])  # fmt: skip
    assert found.max() <= 2.0 * (1 + 1e-9)
    shares = [np.mean(found < 2.0 * radius) for radius in (0.5, 0.8)]
    np.testing.assert_allclose(shares, [0.5**3, 0.8**3], atol=0.03)


def test_a_gradient_of_zero_moves_nothing():
    for norm in steps.NORMS:
        found = steps.pgd(CLEAN, CLEAN, norm, 1, 0.1, 3, np.zeros_like)
        np.testing.assert_array_equal(found, CLEAN)


ATTACKS = {
    "fgsm": ("LinfFastGradientAttack", {"random_start": False}),
    "linf": ("LinfProjectedGradientDescentAttack", {}),
    "l2": ("L2ProjectedGradientDescentAttack", {}),
}


@pytest.mark.parametrize(("name", "budget"), [("fgsm", 8 / 255), ("linf", 8 / 255), ("l2", 0.5)])
def test_foolbox_moves_the_same_pixels(name, budget):
    """The same start gives the same image within 1e-6; foolbox has (N, C, H, W)."""
    torch, foolbox = pytest.importorskip("torch"), pytest.importorskip("foolbox")
    torch.manual_seed(3)
    network = torch.nn.Sequential(
        torch.nn.Conv2d(3, 6, 3), torch.nn.Tanh(), torch.nn.Flatten(), torch.nn.Linear(6 * 36, 4)
    ).eval()
    clean = torch.rand(1, 3, 8, 8)
    label = network(clean).argmax(1)

    def gradients(pixels):
        given = torch.from_numpy(pixels)[None].requires_grad_(True)
        loss = torch.nn.functional.cross_entropy(network(given), label)
        return torch.autograd.grad(loss, given)[0][0].numpy()

    kind, options = ATTACKS[name]
    if name != "fgsm":
        options = {"rel_stepsize": 3 / 40, "steps": 20, "random_start": False}
    attack = getattr(foolbox.attacks, kind)(**options)
    model = foolbox.PyTorchModel(network, bounds=(0, 1))
    wanted = attack.run(model, clean, foolbox.criteria.Misclassification(label), epsilon=budget)
    pixels = clean[0].numpy()
    if name == "fgsm":
        found = steps.fgsm(pixels, budget, gradients)
    else:
        found = steps.pgd(pixels, pixels, name, budget, 3 / 40 * budget, 20, gradients)
    np.testing.assert_allclose(found, wanted[0].detach().numpy(), atol=1e-6)


@pytest.mark.parametrize("norm", steps.NORMS)
def test_rounded_pixels_stay_within_the_budget_and_near_the_exact_ones(norm):
    """Without the budget the rounding is the nearest; with it no pixel is more than a level off."""
    rng = np.random.default_rng(4)
    clean = rng.integers(0, 256, (16, 16, 3)).astype(np.uint8)
    change = rng.normal(size=clean.shape) / 100
    exact = np.clip(clean / 255 + change, 0, 1).astype(np.float32)
    budget = steps.length(exact - clean / np.float32(255), norm)
    nearest = np.rint(exact * 255).astype(np.uint8)
    assert np.array_equal(steps.within(nearest, clean, exact, norm, 1e6), nearest)
    for share in (1.0, 0.98):
        found = steps.within(nearest, clean, exact, norm, budget * share)
        moved = (found.astype(np.float64) - clean) / 255
        assert steps.length(moved, norm) <= budget * share * (1 + 2e-5)
        assert np.abs(found.astype(int) - nearest).max() <= 1
    away = np.abs(nearest.astype(int) - clean) > np.abs(exact * 255.0 - clean) + 1e-3
    assert away.any()
    assert not (found != nearest)[~away].any() or norm == steps.LINF
