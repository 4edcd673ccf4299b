"""``simulate robustness`` under attacks: AR, AAI, WCAR from the records, and the model's own."""

import io
import json

import numpy as np
import pyarrow.parquet as pq
import pytest
import tiny
import yaml
from attacking import bound, with_program
from PIL import Image

import simulator
from simulator import cli, robustness
from simulator.cli.experiment import show
from simulator.command.experiment import EXPERIMENTS
from simulator.contract.encoded import inspect
from simulator.contract.recipe import Context
from simulator.errors import ProfileError, SampleError
from simulator.profile.suite import builtin_suites
from simulator.report import page
from simulator.robustness.document import FOLDER, load_suite

ATTACKS = {
    "fgsm": ["fgsm:40/255", "fgsm:85/255", "fgsm:130/255"],
    "pgd": ["pgd:linf,40/255,steps=3", "pgd:linf,85/255,steps=3", "pgd:linf,130/255,steps=3"],
}
SUITE = {
    "schema": 1, "name": "mine", "summary": "attacks and a camera link",
    "conditions": {"attacks": ATTACKS, "digital": {"jpeg": ["jpeg:5"]}},
}  # fmt: skip
STACKS = ["pillow_bilinear_fp32", "nv12_fp32"]


@pytest.fixture(scope="module")
def program(home):
    return with_program(home / "program")


@pytest.fixture(scope="module")
def pictures(home):
    """Red images from clear to faint, so that each budget turns some; one has a wrong label."""
    for name, color in tiny.COLORS.items():
        (home / "data" / name).mkdir(parents=True)
        for number, share in enumerate((0.2, 0.5, 1.0)):
            faint = 128 + share * (np.array(color) - 128)
            file = home / "data" / name / f"{name}{number}.png"
            file.write_bytes(tiny.encoded(tiny.picture(faint, seed=number), "png"))
    wrong = home / "data" / "red" / "red9.png"
    wrong.write_bytes(tiny.encoded(tiny.picture(tiny.COLORS["blue"]), "png"))
    return home / "data"


def suite(tmp_path, **changes):
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump({**SUITE, **changes}, sort_keys=False))
    return str(path)


@pytest.fixture(scope="module")
def attacked(program, pictures, home):
    (result,) = robustness(
        suite(home), STACKS, models=[program], data=pictures, out=home / "runs",
        fail_on=["attacks.stacks.nv12_fp32.WCAR.attacks.1.value < 0%"],
    )  # fmt: skip
    return result


def test_figures_follow_from_the_records(attacked):
    rows = pq.read_table(attacked.folder / "records.parquet").to_pylist()
    attacks = json.loads((attacked.folder / "summary.json").read_text())["attacks"]

    def right(side, text):
        found = {
            r["sample"]: r["correct"] for r in rows if (r["side"], r["condition"]) == (side, text)
        }
        return np.array([found[name] for name in sorted(found)], float)

    assert attacks["gradient"].startswith("model.pt2 (torch_export) by torch ")
    seen = set()
    for side in STACKS:
        clean, stack = right(side, None), attacks["stacks"][side]
        assert clean.mean() == pytest.approx(0.9)
        for name, texts in ATTACKS.items():
            for at, text in enumerate(texts):
                under = right(side, text)
                assert stack["AR"][name][str(at + 1)]["value"] == pytest.approx(under.mean())
                both = (under * clean).sum() / clean.sum()
                assert stack["AR_clean_correct"][name][str(at + 1)]["value"] == pytest.approx(both)
                lost = (clean.mean() - under.mean()) / clean.mean()
                assert stack["AAI"][name][str(at + 1)]["value"] == pytest.approx(lost)
                seen.add(round(under.mean(), 3))
        for at in range(3):
            each = [clean, *(right(side, texts[at]) for texts in ATTACKS.values())]
            worst = np.min(each, axis=0).mean()
            assert stack["WCAR"]["attacks"][str(at + 1)]["value"] == pytest.approx(worst)
    assert len(seen) >= 3, "budgets that turn none, some and all"
    assert set(attacks["stacks"][STACKS[0]]["WCAR"]) == {"attacks"}


ERASED = {"fgsm": ["fgsm:0.9/255", "fgsm:85/255"], "pgd": ["pgd:linf,1/255", "pgd:l2,4"]}


@pytest.fixture(scope="module")
def erased(program, pictures, home):
    """Budgets below and of one level; faint and noisy photographs, resized on the way."""
    for seed, file in enumerate(sorted(pictures.rglob("*.png"))):
        place = home / "large" / file.relative_to(pictures).with_suffix(".jpg")
        place.parent.mkdir(parents=True, exist_ok=True)
        image = np.asarray(Image.open(file).resize((96, 80), Image.Resampling.NEAREST))
        noise = np.random.default_rng(seed).integers(0, 256, image.shape)
        faint = (0.02 * image + 0.98 * noise).astype(np.uint8)
        place.write_bytes(tiny.encoded(faint, quality=60))
    only = suite(home, name="erased", conditions={"attacks": ERASED})
    (result,) = robustness(
        only, ["pillow_bilinear_fp32", "opencv_fp32"], models=[program], data=home / "large",
        out=home / "erased",
    )  # fmt: skip
    return result


def test_a_budget_below_one_level_is_in_no_figure(erased, capsys):
    """No picture of 8 bits but the clean one is within 0.9 levels; one level can be carried."""
    attacks = erased.summary.attacks
    assert attacks.not_carried == ["fgsm:0.9/255"]
    for side, one in attacks.stacks.items():
        for figure in (one.ar, one.ar_clean_correct, one.aai):
            assert figure["fgsm"]["1"] is None
            assert figure["pgd"]["1"] is not None
            assert figure["fgsm"]["2"] is not None
        stack = erased.summary.stacks[side]
        assert len(stack.levels["fgsm"]) == 2
        assert stack.nr["fgsm"].value == pytest.approx(one.ar["fgsm"]["2"].value)
        both = [one.ar["pgd"][at].value for at in ("1", "2")]
        assert stack.nr["pgd"].value == pytest.approx(np.mean(both))
    assert len(attacks.model["fgsm"].exact) == 2
    assert show(EXPERIMENTS.of("robustness"), [erased], False) == 0
    assert "fgsm:0.9/255: cannot be carried by 8 bits" in " ".join(capsys.readouterr().out.split())
    assert "cannot be carried by 8 bits" in page.write(erased.folder).read_text()


def test_attacks_are_held_against_the_unattacked_file(erased):
    """AAI and WCAR of a stack whose own decode and resize answer otherwise than the file's."""
    rows = pq.read_table(erased.folder / "records.parquet").to_pylist()

    def right(side, text):
        own = [r for r in rows if (r["side"], r["condition"]) == (side, text)]
        return np.array([r["correct"] for r in sorted(own, key=lambda r: r["sample"])], float)

    differ = False
    for side, one in erased.summary.attacks.stacks.items():
        file = right(side, "unattacked")
        differ = differ or (file != right(side, None)).any()
        assert one.unattacked["pgd"].value == pytest.approx(file.mean())
        for at, text in enumerate(ERASED["pgd"], 1):
            lost = (file.mean() - right(side, text).mean()) / file.mean()
            assert one.aai["pgd"][str(at)].value == pytest.approx(lost)
        worst = np.min([file, right(side, "pgd:linf,1/255")], axis=0)
        assert one.wcar["attacks"]["1"].value == pytest.approx(worst.mean())
    assert differ, "a stack that answers the original otherwise than the resized file"


@pytest.mark.parametrize("command", ["run", "corrupt"])
def test_a_budget_that_vanishes_is_refused(program, pictures, tmp_path, capsys, command):
    given = ["--under", "pgd:l2,0.003", "--data", str(pictures), "--model", str(program),
             "--out", str(tmp_path / "out")]  # fmt: skip
    more = {"run": ["--train", "pillow_fp32", "--deploy", "opencv_fp32"], "corrupt": ["corrupt"]}
    assert cli.main([*more[command], *given]) == 2
    assert "pgd:l2,0.003 cannot be carried by 8 bits" in capsys.readouterr().err


def test_a_tensor_carries_what_a_picture_cannot(program, pictures, home, tmp_path):
    """With saved=float each stack's network gets the attacked tensor: it answers as in float."""
    rows = {"fgsm": ["fgsm:0.9/255,saved=float", "fgsm:85/255,saved=float"],
            "pgd": ["pgd:linf,0.9/255,saved=float", "pgd:linf,85/255,saved=float"]}  # fmt: skip
    floats = suite(tmp_path, conditions={"attacks": rows})
    (result,) = robustness(floats, STACKS, models=[program], data=pictures, out=tmp_path / "o")
    attacks = result.summary.attacks
    assert attacks.not_carried == []
    for name in rows:
        for one in attacks.stacks.values():
            assert [f.value for f in one.ar[name].values()] == pytest.approx(
                attacks.model[name].exact
            )
            assert one.unattacked[name].value == pytest.approx(attacks.model[name].clean[0])
    assert attacks.model["pgd"].exact[1] < attacks.model["pgd"].clean[1]


def test_a_float_tensor_is_the_attack_before_it_was_rounded(program, pictures):
    """(pixels + budget * sign(gradient) - mean) / std; the picture differs by half a level."""
    item = sorted(pictures.rglob("*.png"))[4]
    source = inspect(item.name, item.read_bytes())
    context = Context(item.name, source, 0)
    made = {
        saved: bound(f"fgsm:10.5/255,saved={saved}", program).applied(0)
        for saved in ("float", "png")
    }
    blank = np.zeros((1, 3, 32, 32), np.float32)

    tensor = made["float"](blank, context)

    levels = np.asarray(Image.open(io.BytesIO(made["png"](source, context).data)), np.float64)
    pixels = tensor[0].transpose(1, 2, 0) * 64 + 127
    inside = (pixels > 1) & (pixels < 254)
    assert np.abs(pixels - levels)[inside] == pytest.approx(0.5, abs=1e-3)
    with pytest.raises(SampleError, match="does not take float32"):
        made["float"](blank.astype(np.uint8), context)


def test_a_row_needs_a_budget_that_can_be_carried(tmp_path):
    row = {"attacks": {"fgsm": ["fgsm:0.2/255", "fgsm:0.5/255"]}}
    with pytest.raises(ProfileError, match=r"0\.5/255 cannot be carried by 8 bits.*none is left"):
        load_suite(suite(tmp_path, conditions=row))


def test_the_models_own_answers_are_those_of_a_stack_like_the_reference(attacked):
    """Pillow decodes and resizes, ONNX Runtime runs: only the rounding lies between."""
    attacks = attacked.summary.attacks
    for name in ATTACKS:
        own = [one.value for one in attacks.stacks[STACKS[0]].ar[name].values()]
        assert attacks.model[name].rounded == pytest.approx(own)
        assert attacks.model[name].clean == pytest.approx([0.9] * 3)
        assert attacks.model[name].exact[2] <= attacks.model[name].exact[0]


def test_the_screen_and_the_tables_have_wcar(attacked, capsys):
    assert show(EXPERIMENTS.of("robustness"), [attacked], False) == 0
    out = capsys.readouterr().out
    assert "WCAR attacks 1" in out and "fgsm:40/255" in out and "gradient of model.pt2" in out
    assert show(EXPERIMENTS.of("robustness"), [attacked], False, "markdown") == 0
    title, _, first, second = capsys.readouterr().out.splitlines()
    assert "WCAR attacks 3" in title
    assert len(first.split("|")) == len(second.split("|")) == len(title.split("|"))
    assert "What attacks leave" in page.write(attacked.folder).read_text()


def test_attacks_of_a_category_have_the_same_number_of_budgets(tmp_path):
    uneven = {"attacks": {"fgsm": ["fgsm:1/255"], "pgd": ["pgd:l2,1", "pgd:l2,2"]}}
    with pytest.raises(ProfileError, match="attacks: each attack needs as many budgets"):
        load_suite(suite(tmp_path, conditions=uneven))


LINF, L2, L1 = [0.5 / 255, 2 / 255, 8 / 255], [0.5, 2, 8], [100, 400, 1600]
ROBUSTART = {"fgsm": LINF, "pgd_linf": LINF, "pgd_l2": L2, "pgd_l1": L1}


@pytest.mark.parametrize(("name", "rows"), [
    ("robustmq-attacks", ROBUSTART),
    ("robustmq-autoattack", {
        **ROBUSTART, "autoattack_linf": LINF, "autoattack_l2": L2, "autoattack_l1": L1,
        "square_linf": LINF,
    }),
])  # fmt: skip
def test_the_built_in_suites_have_the_budgets_of_robustart(name, rows):
    assert name in builtin_suites(FOLDER)
    found = {
        one.name: [level.condition.budget.size for level in one.levels]
        for one in load_suite(name).series
    }
    assert found == {name: pytest.approx(budgets) for name, budgets in rows.items()}


def test_an_attacked_folder_is_written_as_png(program, pictures, tmp_path, cache):
    """simulate corrupt takes the model, and what it writes is what stacks get."""
    code = cli.main(
        ["corrupt", "--under", "fgsm:85/255", "--data", str(pictures), "--model", str(program),
         "--out", str(tmp_path / "out")]
    )  # fmt: skip
    assert code == 0
    folder = tmp_path / "out" / "fgsm" / "85_255"
    first = Image.open(io.BytesIO(next(folder.rglob("*.png")).read_bytes()))
    assert first.size == (32, 32)
    common = {"model": program, "quick": True}
    pair = ("pillow_bilinear_fp32", "opencv_fp32")
    files = simulator.compare(*pair, data=folder, **common).records().to_pylist()
    live = simulator.compare(*pair, data=pictures, under="fgsm:85/255", **common)
    assert [r["digest"] for r in files] == [r["digest"] for r in live.records().to_pylist()]
