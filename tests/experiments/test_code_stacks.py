"""A stack that is a user's own Python: what it makes reaches the network, and what it breaks."""

import importlib.util
import json
import sys
import venv
from pathlib import Path

import numpy as np
import PIL
import pytest
import test_recording

from simulator import audit, cli, compare, explain, sweep
from simulator.cache import VARIABLE
from simulator.command.allowed import calling
from simulator.command.options import Progress
from simulator.data.folder import Item
from simulator.errors import UserError
from simulator.experiments.common import pair_of
from simulator.experiments.explain.experiment import ExplainOptions
from simulator.model.card import Card
from simulator.pipeline.front_end import front_end
from simulator.pipeline.local import LocalExecutor
from simulator.pipeline.plan import Arm, plan
from simulator.pipeline.runtimes import RuntimePool
from simulator.profile.implementations import choose
from simulator.profile.load import load

CODE = """
import os
import sys
from pathlib import Path

import numpy as np
from PIL import Image

from beside import MEAN


def preprocess(path):
    image = Image.open(path).convert("RGB").resize((32, 32), Image.Resampling.BOX)
    return (np.asarray(image, np.float32) - MEAN) / 64  # (32, 32, 3): the channels are last


def of_bytes(data: bytes) -> np.ndarray:
    import io
    return preprocess(io.BytesIO(data)).transpose(2, 0, 1)


def of_color(image):
    return of_picture(image.convert("RGB"))


def of_picture(image: Image.Image):
    import io
    return (np.asarray(image.resize((32, 32), Image.Resampling.BOX), np.float64) - MEAN) / 64


def of_file(path: Path):
    return of_bytes(path.read_bytes())


def of_none(image: "Image.Image | None"):
    return of_picture(image)


def of_array(image: np.ndarray):
    return of_picture(Image.fromarray(image))[None].transpose(0, 3, 1, 2)


def named(path):
    return {"x": preprocess(path)}


def raises(path):
    return preprocess(path)["no"]


def exits(path):
    sys.exit(3)


def vanishes(path):
    os._exit(5)


def hangs(path):
    while True:
        pass


def floods(path):
    for _ in range(3000):
        print("x" * 1000)
        print("y" * 1000, file=sys.stderr)
    return preprocess(path)


def wrong(path):
    return preprocess(path)[:16]


def bytes_of(path):
    return np.asarray(Image.open(path).convert("RGB").resize((32, 32)))


def nothing(path):
    preprocess(path)


def infinite(path):
    return preprocess(path).astype(float) * 1e300


def huge(path):
    return np.broadcast_to(np.float32(0), (2**15, 2**15))


def violet(path):
    return "violet"


def forks(path):
    os.fork()
    return preprocess(path)


def here(path):
    Path("made.txt").write_text(f"{os.getcwd()} {sys.argv[0]} {Path(path).is_absolute()}")
    return preprocess(path)


def color(path):
    return preprocess(path).mean(axis=(0, 1))  # as the tiny network answers


def best(path):
    return color(path).argmax()


def label(path):
    return "red green blue".split()[best(path)], 0.5


def marked(image):
    return of_picture(image)


marked.takes = "pil"


def picky(path):
    if "blue" in path:
        os._exit(7)
    if path.endswith("red1.jpg"):
        raise ValueError("no red")
    return preprocess(path)


def sizes(path):
    Path("size.txt").write_text(str(os.path.getsize(path)))
    return preprocess(path)


def where(path):
    Path("python.txt").write_text(sys.prefix)
    return preprocess(path)


number = 5
"""


@pytest.fixture
def code(tmp_path, monkeypatch):
    """The user's folder, in which they work."""
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "eval.py").write_text(CODE)
    (folder / "beside.py").write_text("MEAN = 127\n")
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def function(code, monkeypatch):
    """A function of that file, as Python itself imports it."""
    monkeypatch.syspath_prepend(str(code))
    spec = importlib.util.spec_from_file_location("users_eval", code / "eval.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield lambda name: getattr(module, name)
    sys.modules.pop("beside", None)


@pytest.fixture
def run(code, card, data, cache):
    def run_with(train, deploy="pillow_fp32", job=compare, **options):
        given = {"model": card, "data": data, "out": code.parent / "run", **options}
        return job(train, deploy, **given)

    run_with.card, run_with.data = card, data
    return run_with


def tensors(reference, card, data):
    """What the network gets of every image, by the image."""
    model = Card(card)
    with calling(ExplainOptions(train=reference, deploy=reference)):
        profile = load(reference)
        chain = front_end(model, profile, choose(profile))
    files = sorted(data.rglob("*.jpg"))[:3]
    with RuntimePool() as pool:
        executor = LocalExecutor(model.modality, pool, workers=1)
        opened = executor.open(plan({Arm("x"): chain}))
        found = {}
        for file in files:
            walk = opened.walk(executor.context(Item(file.name, file, None)))
            (found[file],) = walk.answers()
    return found


@pytest.mark.parametrize(
    "name", ["preprocess", "of_bytes", "of_picture", "of_array", "of_file", "of_none", "named"]
)
def test_the_network_gets_what_the_function_returns(name, code, function, card, data, cache):
    """Bit for bit: the same function called here on the same file, in the network's layout."""
    for file, tensor in tensors(f"eval.py:{name}", card, data).items():
        expected = np.asarray(function("preprocess")(file)).transpose(2, 0, 1)[None]
        assert tensor.dtype == np.float32 and tensor.shape == (1, 3, 32, 32)
        assert tensor.tobytes() == expected.astype(np.float32).tobytes()


def test_a_pair_of_code_and_a_profile(run):
    """The tiny network answers each image's color, whichever way it was resized."""
    found = run("eval.py:preprocess")

    assert [one.axis for one in found.summary.axes] == ["front_end"]
    assert found.summary.flips.count == 0
    assert found.summary.train.profile == "eval.py:preprocess"
    manifest = json.loads((found.folder / "manifest.json").read_text())
    choice = next(
        one for one in manifest["stacks"]["train"]["choices"] if one["stage"] == "front_end"
    )
    assert choice["options"]["file"].startswith("sha256:")
    assert (
        manifest["request"]["arguments"]["train"] == str(Path("eval.py").resolve()) + ":preprocess"
    )
    assert set(found.summary.latency_ms["train"]) >= {"front_end", "infer"}


def test_a_profile_that_names_code_needs_leave(run, code):
    (code / "mine.yaml").write_text(
        "schema: 1\nname: mine\nsummary: code\nextends: pillow_fp32\n"
        "front_end: {backend: python, file: eval.py, function: preprocess}\n"
    )
    with pytest.raises(
        UserError, match=r"mine.yaml:5: front_end runs code of its own.*--allow-code"
    ):
        run("mine.yaml")

    assert run("mine.yaml", allow_code=True).summary.flips.count == 0


def test_the_runtime_alone(run):
    found = run("eval.py:preprocess", "ort_int8", pixels="train")

    assert "front_end" not in [one.axis for one in found.summary.axes]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("raises", r"eval.py:raises raised IndexError: only integers.* \(eval.py:48\)"),
        ("exits", r"eval.py:exits called exit\(3\)"),
        ("vanishes", r"eval.py:vanishes ended with exit code 5"),
        ("wrong", r"gave float32 16x32x3; the network takes float32 1x3x32x32 \(NCHW\)"),
        ("bytes_of", r"gave uint8 32x32x3 of \d+ to \d+; the network takes float32 1x3x32x32"),
        ("nothing", "eval.py:nothing returned None; is its `return` missing"),
        ("huge", "eval.py:huge returned float32 32768x32768, more than 1,024 MiB"),
        ("violet", "eval.py:violet gave the answer 'violet', which is no label of the card"),
        ("raises:boxes", "raises:boxes: FILE.py:NAME expected, with :outputs or :answer behind it"),
        ("of_color", r"no attribute 'convert' .*got a path; for a picture, annotate"),
        ("infinite", "gave float64 32x32x3 with values that are not finite"),
        ("", r"eval.py: name the function, too: eval.py:NAME \(it has preprocess, of_bytes,"),
        ("number", "eval.py:number is a int; name a function"),
        ("absent", r"eval.py:absent: there is no 'absent' \(callable: .*preprocess"),
    ],
)
def test_what_is_wrong_with_a_function_is_one_line(name, why, run):
    with pytest.raises(UserError, match=why) as caught:
        run(f"eval.py:{name}" if name else "eval.py")

    assert "\n" not in str(caught.value)


def test_a_function_that_hangs(run):
    limit = ["train.front_end.timeout_s=0.5"]
    with pytest.raises(UserError, match=r"eval.py:hangs.* did not answer within 0.5 s"):
        run("eval.py:hangs", overrides=limit)


def test_a_fork_that_comes_back_gives_no_answer(run):
    assert run("eval.py:forks").summary.flips.count == 0


def test_a_function_that_prints_is_silent(run, capfd):
    assert run("eval.py:floods").summary.flips.count == 0

    assert "xxxx" not in capfd.readouterr().out


def test_a_function_is_where_its_user_is(run, code):
    run("eval.py:here")

    told = (code / "made.txt").read_text().split()
    assert told == [str(code), str(code / "eval.py"), "True"]


@pytest.mark.parametrize(
    ("name", "gives"), [("color", "outputs"), ("best", "answer"), ("label", "answer")]
)
def test_a_function_that_goes_on_is_found_by_trying_it(name, gives, run):
    """The tiny network answers the color of an image, which the function finds as well."""
    found = run("pillow_fp32", f"eval.py:{name}")

    assert found.summary.flips.count == 0
    assert [one.axis for one in found.summary.axes] == ["runtime"]
    asked = json.loads((found.folder / "manifest.json").read_text())["request"]["arguments"]
    assert asked["deploy"].endswith(f"eval.py:{name}:{gives}")


def test_what_an_attribute_says(code, card, data, cache):
    one, other = (tensors(f"eval.py:{name}", card, data) for name in ("of_picture", "marked"))

    for file, tensor in one.items():
        assert tensor.tobytes() == other[file].tobytes()


def test_another_python_needs_numpy_only(run, code, tmp_path):
    """An environment with numpy, and with Pillow, which the function itself imports."""
    home = tmp_path / "env"
    venv.create(home)
    (packages,) = home.glob("lib/python*/site-packages")
    for module in (np, PIL):
        place = Path(module.__file__).parent
        for one in (place, place.with_name(f"{place.name.lower()}.libs")):
            if one.is_dir():
                (packages / one.name).symlink_to(one)
    for one in Path(PIL.__file__).parent.parent.glob("[pP]illow.libs"):
        if not (packages / one.name).exists():
            (packages / one.name).symlink_to(one)

    found = run("eval.py:where", python=str(home / "bin" / "python"))

    assert found.summary.flips.count == 0
    assert (code / "python.txt").read_text() == str(home)


class Stop(Progress):
    """Interrupts after two images."""

    def advance(self, done, total):
        if done == 2:
            raise KeyboardInterrupt


@pytest.mark.parametrize("sent", ["another's stack", "another's cache"])
def test_a_folder_that_others_sent_runs_no_code(sent, run, code, capsys, monkeypatch):
    with pytest.raises(KeyboardInterrupt):
        run("eval.py:preprocess", progress=Stop())
    manifest = code.parent / "run" / "manifest.json"
    if sent == "another's stack":
        manifest.write_text(manifest.read_text().replace(":preprocess", ":here"))
    else:
        monkeypatch.setenv(VARIABLE, str(code / "cache"))

    assert cli.main(["resume", str(manifest.parent)]) == 2
    assert "front_end runs code of its own; where you trust it" in capsys.readouterr().err
    assert not (code / "made.txt").exists()
    if sent == "another's cache":
        assert cli.main(["resume", str(manifest.parent), "--allow-code"]) == 0


def test_a_changed_function_does_not_go_on(run, code, capsys):
    with pytest.raises(KeyboardInterrupt):
        run("eval.py:preprocess", progress=Stop())
    folder, same = code.parent / "run", (code / "eval.py").read_text()
    (code / "eval.py").write_text(same.replace("/ 64", "/ 65"))

    assert cli.main(["resume", str(folder)]) == 2
    assert "stacks" in capsys.readouterr().err
    (code / "eval.py").write_text(same)
    assert cli.main(["resume", str(folder)]) == 0


def test_explain_takes_the_front_end_as_a_whole(run):
    found = run("eval.py:preprocess", "ort_int8", job=explain)

    assert found.summary.axes == ["front_end", "precision"]


def test_a_sweep_leaves_out_what_only_describes_the_code(run, cache):
    (result,) = sweep(
        "sysnoise", train="eval.py:preprocess", models=[run.card], data=run.data, limit=2
    )

    assert set(result.summary.columns) == {"fp16", "int8"}
    why = result.summary.left_out["decode/opencv"]
    assert "decode only describes what python makes" in why


def test_a_change_of_what_only_describes_it_is_refused(run):
    with pytest.raises(UserError, match=r"train.resize.interpolation=box: changes nothing"):
        run("eval.py:preprocess", overrides=["train.resize.interpolation=box"])


def test_what_it_extends(run):
    found = run("eval.py:preprocess", overrides=["train.extends=openvino_fp16"])

    assert {one.axis for one in found.summary.axes} >= {"front_end", "runtime"}


@pytest.mark.parametrize(
    ("kind", "extended"), [("audio", "librosa_fp32"), ("text", "text_fp32"), ("image", None)]
)
def test_what_it_extends_follows_from_the_model(code, kind, extended):
    (code / "card.yaml").write_text(f"input: {{kind: {kind}}}\n")
    asked = ExplainOptions(
        train="eval.py:preprocess", deploy="eval.py:here", model=str(code / "card.yaml")
    )
    with calling(asked):
        pair = pair_of(asked.train, asked.deploy, [])

    wanted = load(extended or "pillow_fp32").spec
    assert [profile.spec.runtime for profile, _ in pair.values()] == [wanted.runtime] * 2
    assert {profile.spec.modality for profile, _ in pair.values()} == {kind}


def test_an_audit_that_names_code_needs_leave(code, cache):
    (code / "audit.yaml").write_text(
        "schema: 1\nname: mine\nsummary: code\ntrain: pillow_fp32\n"
        "deploy: {mine: eval.py:preprocess}\nlimit: 2\nrules: none\n"
    )
    with pytest.raises(UserError, match=r"eval.py:preprocess: front_end runs code of its own"):
        audit("audit.yaml")


def test_a_recording_is_named_by_its_manifest(run, code, card, data):
    rows = {}
    for name in test_recording.names(data):
        rows[name] = np.full((1, 3, 32, 32), 0.5, np.float32)
    np.savez(code / "dump.npz", **rows)
    manifest = test_recording.write(code, card, "tensors")

    found = run("pillow_fp32", str(manifest), job=explain)

    assert found.summary.axes == ["front_end"]
    with pytest.raises(UserError, match=r"makes the network's input as a whole: write front_end"):
        run(
            "pillow_fp32", overrides=[f"deploy.decode={{backend: recorded, recording: {manifest}}}"]
        )


@pytest.mark.parametrize("named", ["tools/deep/one.py:preprocess", "tools.deep.one:preprocess"])
def test_imports_from_the_folders_around(named, run, code):
    """Without ``__init__.py``, relatively and from the folder in which the user works."""
    folder = code / "tools" / "deep"
    folder.mkdir(parents=True)
    (code / "tools" / "scale.py").write_text("SCALE = 64\n")
    (folder / "one.py").write_text(
        "from eval import preprocess as made\nfrom ..scale import SCALE\n"
        "def preprocess(path):\n    return made(path) * 64 / SCALE\n"
    )

    assert run(named).summary.flips.count == 0


def test_the_users_own_module_has_the_name_of_ours(run, code):
    (code / "backends.py").write_text("SCALE = 64\n")
    (code / "scaled.py").write_text(
        "from backends import SCALE\nfrom eval import preprocess as made\n"
        "def preprocess(path):\n    return made(path) * 64 / SCALE\n"
    )

    assert run("scaled.py:preprocess").summary.flips.count == 0


def test_an_interpreter_that_is_not_there(run):
    with pytest.raises(UserError, match=r"^/nowhere/python cannot be started: No such file") as got:
        run("eval.py:preprocess", python="/nowhere/python")

    assert "install" not in str(got.value)


def test_code_gets_the_disturbed_image(code, run, data):
    """What it writes down of each image is not what lies there, but its JPEG of quality 10."""
    run("eval.py:sizes", under="jpeg:10", limit=1)

    seen = int((code / "size.txt").read_text())
    assert seen not in {place.stat().st_size for place in data.rglob("*.jpg")}


def test_a_condition_that_acts_inside_code_is_refused(run):
    with pytest.raises(UserError, match=r"flip:22: it acts on the weights, which is inside"):
        run("eval.py:color:outputs", under="flip:22")


def test_what_breaks_on_some_images_costs_these(run, data):
    """Of two images of each color, the function dies on the blue ones and raises on one red."""
    found = run("pillow_fp32", "eval.py:picky", limit=None)

    assert found.summary.samples == 3
    whys = [one.why for one in found.summary.failures]
    assert sum("eval.py:picky ended with exit code 7" in why for why in whys) == 2
    assert sum("eval.py:picky raised ValueError: no red (eval.py:" in why for why in whys) == 1
