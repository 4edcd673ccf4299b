"""AutoAttack's parts as a condition, held against the library on the same network."""

import threading

import numpy as np
import pytest
import tiny
from attacking import attacked, bound, pixels_of, with_program

import simulator
from simulator import registry
from simulator.conditions.attacks import steps
from simulator.conditions.attacks.record import record_of
from simulator.contract import SampleError, Stage, Victim
from simulator.errors import UserError
from simulator.profile.implementations import implementation

torch = pytest.importorskip("torch")
library = pytest.importorskip("pyautoattack")
SIZE, CLASSES = 20, 5
WHITE = ["apgd-ce", "apgd-dlr", "apgd-t", "fab", "fab-t"]
BUDGETS = {"linf": 0.05, "l2": 1.2, "l1": 30.0}
NORMS = {"linf": "Linf", "l2": "L2", "l1": "L1"}


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        draws = np.random.default_rng(3)
        first = draws.normal(size=(6, 3, 3, 3)).astype(np.float32) / 3
        last = draws.normal(size=(CLASSES, 6)).astype(np.float32) * 4
        self.first = torch.nn.Parameter(torch.from_numpy(first), requires_grad=False)
        self.last = torch.nn.Parameter(torch.from_numpy(last), requires_grad=False)

    def forward(self, x):
        hidden = torch.tanh(torch.nn.functional.conv2d(x, self.first, stride=2))
        return hidden.mean((2, 3)) @ self.last.T


NETWORK = Network()
CLEAN = np.random.default_rng(7).uniform(0.1, 0.9, (SIZE, SIZE, 3)).astype(np.float32)


def planes(rows):
    return torch.from_numpy(np.ascontiguousarray(rows.transpose(2, 0, 1)[None]))


def logits(rows):
    with torch.no_grad():
        return NETWORK(planes(rows))[0].numpy()


def at(rows):
    given = planes(rows).requires_grad_(True)
    with torch.enable_grad():
        scores = NETWORK(given)[0]

    def pull(cotangent):
        way = torch.from_numpy(cotangent)
        (found,) = torch.autograd.grad(scores, given, way, retain_graph=True)
        return found[0].permute(1, 2, 0).numpy()

    return scores.detach().numpy(), pull


def part(name, norm, count=12):
    counts = {"queries": 200} if name == "square" else {"steps": count}
    backend = registry.backend("autoattack")
    return implementation(Stage.ATTACK, backend, {"part": name, "norm": norm, **counts}).make()


def by_the_library(name, norm, seed, truth):
    """What the library itself makes of it, with PyTorch's own generator."""
    whole = library.AutoAttack(
        NETWORK, norm=NORMS[norm], eps=BUDGETS[norm], seed=seed, version="standard"
    )
    whole.fab.n_target_classes = whole.apgd_targeted.n_target_classes = CLASSES - 1
    loss = name.removeprefix("apgd-")
    if name in ("apgd-ce", "apgd-dlr"):
        more = {"n_restarts": whole.apgd.n_restarts, "use_largereps": whole.apgd.use_largereps}
        search = type(whole.apgd)(
            NETWORK, n_iter=12, norm=NORMS[norm], eps=BUDGETS[norm], seed=seed, loss=loss,
            device="cpu", logger=whole.logger, **more,
        )  # fmt: skip
    elif name == "apgd-t":
        search = type(whole.apgd_targeted)(
            NETWORK, n_iter=12, norm=NORMS[norm], eps=BUDGETS[norm], seed=seed, device="cpu",
            n_target_classes=CLASSES - 1, logger=whole.logger,
            use_largereps=whole.apgd_targeted.use_largereps,
        )  # fmt: skip
    elif name == "square":
        search = whole.square
        search.n_queries, search.seed = 200, seed
    else:
        search = whole.fab
        search.targeted, search.n_iter, search.seed = name == "fab-t", 12, seed
    found = search.perturb(planes(CLEAN), torch.tensor([truth]))
    return found[0].permute(1, 2, 0).detach().numpy()


@pytest.mark.parametrize("norm", sorted(BUDGETS))
@pytest.mark.parametrize("name", [*WHITE, "square"])
def test_a_part_is_the_librarys_to_the_bit(name, norm):
    """It sees our classifier through a function; what it draws comes from a generator of ours."""
    truth = int(logits(CLEAN).argmax())
    victim = Victim(logits, None if name == "square" else at)
    found = part(name, norm).attacked(CLEAN, truth, victim, BUDGETS[norm], 11)
    wanted = by_the_library(name, norm, 11, truth)
    np.testing.assert_array_equal(found, wanted)
    assert (found != CLEAN).any() or (logits(wanted).argmax() == truth)


def test_threads_do_not_mix_their_draws():
    truth, attack = int(logits(CLEAN).argmax()), part("square", "linf")
    alone = [attack.attacked(CLEAN, truth, Victim(logits), 0.02, seed) for seed in range(4)]
    found = [None] * 4

    def work(seed):
        found[seed] = attack.attacked(CLEAN, truth, Victim(logits), 0.02, seed)

    threads = [threading.Thread(target=work, args=[seed]) for seed in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert all(np.array_equal(*pair) for pair in zip(alone, found, strict=True))


def test_a_part_says_what_it_needs():
    truth = int(logits(CLEAN).argmax())
    with pytest.raises(SampleError, match="apgd-ce: it follows gradients"):
        part("apgd-ce", "linf").attacked(CLEAN, truth, Victim(logits), 0.1, 0)
    with pytest.raises(SampleError, match="square: its tiles in l2 do not fit into 4x20 pixels"):
        part("square", "l2").attacked(CLEAN[:4], truth, Victim(logits), 0.1, 0)
    few = Victim(lambda rows: logits(rows)[:3], at)
    with pytest.raises(SampleError, match="apgd-t: 4 classes are needed, and there are 3"):
        part("apgd-t", "linf").attacked(CLEAN, 0, few, 0.1, 0)


@pytest.fixture
def program(tmp_path):
    return with_program(tmp_path / "program")


def red():
    return np.full((32, 32, 3), (150, 130, 50), np.uint8)


SHORT = ",parts=apgd-ce+fab+square,steps=10,queries=60"


@pytest.mark.parametrize(
    "text", [f"autoattack:linf,12/255{SHORT}", f"autoattack:l2,3{SHORT}",
             f"autoattack:l1,200{SHORT}", "square:linf,14/255,queries=300"],
)  # fmt: skip
def test_red_becomes_green_within_the_budget(program, text):
    """20 levels lie between them: 10 of each pixel, of the whole picture 1.8 in L2 and 80 in L1."""
    condition = bound(text, program)
    found = attacked(condition, red())
    record = record_of(found.data)
    assert (record.clean, record.exact) == (0, 1)
    norm, budget = text.partition(":")[2].split(",")[:2]
    top, _, under = budget.partition("/")
    size = float(top) / float(under or 1)
    moved = (pixels_of(found).astype(np.float64) - red()) / 255
    assert 0 < steps.length(moved, norm) <= size * (1 + 1e-4)
    assert record.rounded_length == pytest.approx(steps.length(moved, norm), rel=1e-4)
    assert found.data == attacked(condition, red()).data
    if norm != "linf":  # there the best change of a linear network has no choice
        assert found.data != attacked(condition, red(), name="b.png").data


@pytest.mark.parametrize("kind", ["autoattack", "square"])
def test_wrong_images_and_those_that_withstand_stay_as_they_are(program, kind):
    short = SHORT if kind == "autoattack" else ",queries=60"
    found = attacked(bound(f"{kind}:linf,12/255{short}", program), red(), truth=2)
    np.testing.assert_array_equal(pixels_of(found), red())
    assert record_of(found.data).clean == 0
    found = attacked(bound(f"{kind}:linf,2/255{short}", program), red())
    np.testing.assert_array_equal(pixels_of(found), red())
    assert record_of(found.data).rounded == 0


def test_what_withstands_as_many_evaluations_as_there_may_be_stays(program):
    text = f"autoattack:linf,12/255{SHORT}"
    one, many = (attacked(bound(f"{text},evaluations={limit}", program), red())
                 for limit in (12, 10_000))  # fmt: skip
    np.testing.assert_array_equal(pixels_of(one), red())
    assert record_of(many.data).exact == 1
    with pytest.raises(UserError, match="end apgd-ce before its 10 steps"):
        bound(f"{text},evaluations=11", program)


def test_square_asks_the_stack_that_is_named(tmp_path, cache):
    """A card without a program, and answers of ONNX Runtime: no gradient is needed."""
    place = tiny.card(tmp_path / "card")
    folder = tiny.data(tmp_path / "photographs", each=1)
    text = "square:linf,120/255,queries=400,on=opencv_fp32"
    result = simulator.compare(
        "pillow_bilinear_fp32", "opencv_fp32", model=place, data=folder, under=text, quick=True
    )
    rows = result.records().to_pylist()
    assert len(rows) == 6
    assert sum(row["correct"] for row in rows) <= 2
    with pytest.raises(UserError, match="nowhere"):
        simulator.compare(
            "pillow_bilinear_fp32", "opencv_fp32", model=place, data=folder,
            under="square:linf,8/255,on=nowhere",
        )  # fmt: skip


def test_a_data_set_cannot_be_written_with_a_stacks_answers(program, tmp_path):
    data = tiny.data(tmp_path / "photographs", each=1)
    with pytest.raises(UserError, match="asks a stack, and none is run here"):
        simulator.corrupt(
            tmp_path / "out", under=["square:linf,8/255,on=opencv_fp32"], data=data, model=program
        )
