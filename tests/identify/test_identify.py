"""Which stack made a recording: real stacks are recorded, and found again."""

import hashlib
import io
import json
import shutil
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
import pytest
import tiny_tasks
import torch
import yaml
from recorded_stacks import record
from shared_data import shared

import simulator
from simulator import cli
from simulator.cluster.connection import leave
from simulator.data.recording import load_recording
from simulator.errors import DataError, ProfileError, UserError
from simulator.experiments.common import chosen
from simulator.experiments.session import Session
from simulator.identify import run, search
from simulator.identify.composer import Composer
from simulator.identify.search import blocks
from simulator.identify.space import load_space
from simulator.profile.load import load
from simulator.results.read import read_summary

GONE = {"exif": None, "idct": None, "chroma_upsampling": None}
SPACE = {
    "schema": 1, "name": "small", "summary": "a few options", "train": "pillow_fp32",
    "columns": {
        "decode": {
            "pillow": {"decode": {"backend": "pillow", **GONE, "exif": "ignore"}},
            "apply": {"decode": {"backend": "pillow", **GONE, "exif": "apply"}},
            "opencv": {"decode": {"backend": "opencv", **GONE, "exif": "ignore"}},
            "ifast": {
                "decode": {
                    "backend": "turbojpeg", "exif": None, "idct": "ifast",
                    "chroma_upsampling": "plain",
                },
            },
        },
        "resize": {
            "pil-bicubic": {"resize": "pil-bicubic"},
            "pil-bilinear": {"resize": "pil-bilinear"},
            "opencv-nearest": {"resize": "opencv-nearest"},
            "opencv-bicubic": {"resize": "opencv-bicubic"},
        },
        "order": {"rgb": {"color.order": "rgb"}, "bgr": {"color.order": "bgr"}},
    },
}  # fmt: skip
IFAST = "decode={backend: turbojpeg, exif: null, idct: ifast, chroma_upsampling: plain}"
STACK = [IFAST, "resize=opencv-bicubic", "color.order=bgr"]
PICKS = {"decode": "ifast", "resize": "opencv-bicubic", "order": "bgr"}


EQUAL = {"decode": "pillow", "resize": "pil-bilinear", "order": "rgb"}


@pytest.fixture(scope="module")
def space(tmp_path_factory):
    return written(SPACE, tmp_path_factory.mktemp("space") / "space.yaml")


def written(document, path):
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    return path


@pytest.fixture(scope="module")
def board(tmp_path_factory):
    """Four tensors of a stack of the space."""
    return record(tmp_path_factory.mktemp("board"), "tensors", STACK)


@pytest.fixture
def changed(board, tmp_path):
    """A function that writes the same recording with other arrays, or another manifest."""

    def write(change=dict, **manifest):
        with np.load(board.with_name("board.npz")) as arrays:
            np.savez(tmp_path / "board.npz", **change({**arrays}))
        return written(yaml.safe_load(board.read_text()) | manifest, tmp_path / "recording.yaml")

    return write


def command(recording, space, folder):
    """Run the command; its exit code, what it printed, the folder and the summary."""
    words = ("identify", "--recording", recording, "--space", space, "--out", folder)
    with redirect_stdout(io.StringIO()) as said:
        code = cli.main([*map(str, words)])
    return code, said.getvalue(), folder, read_summary(folder)[1]


@pytest.fixture(scope="module")
def answer(board, space, tmp_path_factory):
    """The finished run of the tensors; see :func:`command`."""
    return command(board, space, tmp_path_factory.mktemp("answer") / "run")


def named(summary):
    return {axis: one.option for axis, one in summary.axes.items() if one.applies}


def found(path, space, folder, **options):
    return simulator.identify(path, space=space, out=folder, workers=2, **options)


def test_the_stack_that_made_tensors_is_found_and_its_profile_gives_them(board, answer, tmp_path):
    code, said, folder, summary = answer

    assert code == 0
    assert said.startswith("board is reproduced to the bit on all 4 images: decode ifast,")
    assert "ifast" in (folder / "report.html").read_text()
    assert (named(summary), summary.exact, summary.equal, summary.samples) == (PICKS, True, 4, 4)
    place = folder / run.PROFILE
    profile, choices = chosen(str(place), [])
    assert (profile.name, choices["decode"].backend.name) == ("identified", "turbojpeg")
    assert load_recording(board).spec.name in profile.spec.summary
    assert yaml.safe_load(place.read_text())["evidence"]["decode"]["kind"] == "assumed"
    again = record(tmp_path / "again", "tensors", [], base=str(place))
    first, second = (np.load(one.with_name("board.npz")) for one in (board, again))
    assert all(np.array_equal(first[name], second[name]) for name in first.files)


@pytest.mark.parametrize(
    ("kind", "after", "known"),
    [
        ("outputs", None, PICKS),
        ("predictions", None, PICKS),
        ("frames", "decode", {"decode": "ifast"}),
        ("frames", "resize", {"decode": "ifast", "resize": "opencv-bicubic"}),
        ("frames", "geometry", {"decode": "ifast", "resize": "opencv-bicubic"}),
    ],
)
def test_the_stack_that_made_a_recording_is_found(kind, after, known, space, tmp_path):
    path = record(tmp_path / "board", kind, STACK, after=after)

    summary = found(path, space, tmp_path / "run").summary

    assert (named(summary), summary.exact, summary.equal) == (known, True, 4)


@pytest.mark.prove
def test_workers_of_a_cluster_find_what_one_process_finds(space, tmp_path, request):
    request.addfinalizer(leave)
    path = record(tmp_path / "board", "predictions", STACK)

    here, there = (found(path, space, tmp_path / name, executor=name) for name in ("local", "ray"))

    one, two = (run.summary.model_dump(exclude={"seconds"}) for run in (here, there))
    assert one == two
    assert there.records().drop_columns(["ns"]).equals(here.records().drop_columns(["ns"]))
    manifest = json.loads((there.folder / "manifest.json").read_text())
    assert set(manifest["executor"]["nodes"]) == {"searched", "identified"}


def test_a_base_with_batches_is_refused_in_a_line(board, tmp_path):
    base = {"schema": 1, "name": "base", "extends": "pillow_fp32", "summary": "four at once",
            "runtime": {"batch": 4}}  # fmt: skip
    train = str(written(base, tmp_path / "base.yaml"))

    with pytest.raises(UserError, match=r"^base: a search needs one sample at a time; leave out"):
        found(board, written(SPACE | {"train": train}, tmp_path / "space.yaml"), tmp_path / "run")


def test_options_that_give_equal_bits_are_named(space, tmp_path):
    path = record(tmp_path / "board", "tensors", ["resize=pil-bilinear"])

    summary = found(path, space, tmp_path / "run").summary

    assert named(summary) == EQUAL
    assert "apply" in summary.axes["decode"].equal  # no image has an EXIF rotation
    assert summary.axes["resize"].equal == summary.axes["order"].equal == []
    assert summary.telling is not None and "exif" in summary.telling.probe
    assert "Not told apart by these images: decode" in " ".join([summary.verdict.cause])


def test_what_is_near_has_its_distance(board, answer, tmp_path):
    other = record(tmp_path / "other", "tensors", [*STACK[:2], "color.order=rgb"])
    pairs = [np.load(one.with_name("board.npz")) for one in (board, other)]
    gaps = {name: np.abs(pairs[0][name] - pairs[1][name]) for name in pairs[0].files}
    order = answer[-1].axes["order"]

    assert order.next == "rgb"
    assert order.mean == pytest.approx(np.mean([gap.mean() for gap in gaps.values()]), rel=1e-5)
    assert order.largest == pytest.approx(max(gap.max() for gap in gaps.values()))
    assert order.seen_in == max(gaps, key=lambda name: gaps[name].mean())


def test_a_stack_that_is_not_in_the_space_gets_its_nearest_and_exit_code_1(space, tmp_path):
    """OpenCV's bicubic is nearer to its Lanczos than the others; no image has an EXIF rotation."""
    path = record(tmp_path / "board", "tensors", ["resize=opencv-lanczos"])

    code, said, folder, summary = command(path, space, tmp_path / "run")

    assert code == cli.GATE_FAILED
    assert said.startswith("No stack that was compared gives board.")
    assert named(summary) == EQUAL | {"resize": "opencv-bicubic"}
    assert (summary.exact, summary.equal) == (False, 0) and summary.mean > 0
    assert "apply" in summary.axes["decode"].equal
    assert not any(one.changes == {"decode": "apply"} for one in summary.runners_up)
    assert cli.main(["resume", str(folder)]) == cli.GATE_FAILED  # though nothing is left to do


def test_a_part_of_the_images_called_by_their_hashes(changed, space, tmp_path):
    with Session.open(None, None, None, 0, 1, None, None) as session:
        digests = {one.name: session.digests[one.path] for one in session.dataset.items}
    path = changed(lambda of: {digests[name]: one for name, one in of.items()}, match="sha256")

    summary = found(path, space, tmp_path / "run").summary

    assert named(summary) == PICKS
    assert (summary.samples, summary.absent) == (4, len(digests) - 4)


def without_red(arrays):
    return {name: array[..., 1:] for name, array in arrays.items()}


@pytest.mark.parametrize(
    ("change", "manifest", "said"),
    [
        (dict, {"model": "0" * 64}, "recorded with 000000000000…, but the model here is"),
        (without_red, {}, "the model card expects float32 tensors of shape"),
        (lambda of: {"elsewhere": of[min(of)]}, {}, "are not in it, matched by name"),
    ],
)
def test_a_recording_of_something_else_is_refused_in_a_line(
    changed, space, tmp_path, change, manifest, said
):
    with pytest.raises(DataError, match=said) as refused:
        found(changed(change, **manifest), space, tmp_path / "run")

    assert "\n" not in str(refused.value)


def test_predictions_of_what_is_no_classifier_are_refused(tmp_path):
    card = tiny_tasks.card(tmp_path / "card")
    digest = hashlib.sha256((card.parent / "model.onnx").read_bytes()).hexdigest()
    path = record(tmp_path / "board", "predictions", [], model=digest)

    with pytest.raises(DataError, match="these are class indices, and the model does") as refused:
        found(path, None, tmp_path / "run", model=card, data=tiny_tasks.data(tmp_path / "data"))
    assert len(str(refused.value).splitlines()) == 1


def test_a_network_of_sounds_is_refused(tmp_path):
    """There are no images whose sizes could be compared; it was an AttributeError."""
    audio = shared("audio")
    card = Path(__file__).parents[1] / "cards" / "digits.yaml"
    digest = hashlib.sha256((audio / "fsdd_logmel_cnn.onnx").read_bytes()).hexdigest()
    path = record(tmp_path / "board", "predictions", [], model=digest)

    with pytest.raises(UserError, match=r"identify finds the stack of images, .* is for audio"):
        found(path, None, tmp_path / "run", model=card, data=card.with_name("digits_test.yaml"))


def test_images_that_are_damaged_or_match_nothing_do_not_hide_the_right_stack(
    changed, space, tmp_path
):
    """Of four the first one has integers, and the last one another width."""

    def change(arrays):
        first, last = min(arrays), max(arrays)
        return arrays | {first: arrays[first].astype(np.int64), last: arrays[last][..., 1:]}

    path = changed(change)
    summary = found(path, space, tmp_path / "run").summary

    assert (named(summary), summary.samples) == (PICKS, 3)
    assert (summary.equal, summary.exact) == (2, False)
    name = min(np.load(path.with_name("board.npz")).files)
    assert [one.text for one in summary.warnings if name in one.text] == [
        f"{name} was left out: board.npz: {name}: expected floats, got int64"
    ]


def test_no_condition_and_no_time_are_refused(space, tmp_path):
    with pytest.raises(UserError, match="minutes must be above 0, got -1"):
        found("x.yaml", space, tmp_path / "run", minutes=-1)
    with pytest.raises(TypeError, match="unknown option 'under'"):
        found("x.yaml", space, tmp_path / "run", under="jpeg:40")


def test_the_search_stops_when_its_time_is_over_and_says_so(board, space, tmp_path, monkeypatch):
    monkeypatch.setattr(search, "FEW", 1)

    stopped = found(board, space, tmp_path / "run", minutes=1e-9).summary
    whole = found(board, space, tmp_path / "whole", minutes=60).summary

    assert stopped.stopped and not whole.stopped
    assert (stopped.samples, named(whole)) == (4, PICKS)
    assert stopped.compared < whole.compared / 4


def test_the_base_is_that_of_the_space_and_its_first_stack_need_not_run(tmp_path):
    colors = {
        "nothing": {"resize.domain": "yuv", "color.format": "rgb"},
        "rgb": {"color.order": "rgb"},
        "bgr": {"color.order": "bgr"},
    }
    kernels = {"bicubic": {"resize": "pil-bicubic"}, "lanczos": {"resize": "pil-lanczos"}}
    columns = {"colors": colors, "resize": kernels}
    document = SPACE | {"train": "pillow_bilinear_fp32", "columns": columns}
    space = written(document, tmp_path / "space.yaml")
    path = record(tmp_path / "board", "tensors", ["resize=pil-lanczos"])

    summary = found(path, space, tmp_path / "run").summary

    assert summary.base.profile == "pillow_bilinear_fp32"
    assert named(summary) == {"colors": "rgb", "resize": "lanczos"}

    columns["colors"] = {"nothing": colors["nothing"]}
    written(document, space)
    with pytest.raises(ProfileError, match="no combination of the space") as refused:
        found(path, space, tmp_path / "none")
    assert len(str(refused.value).splitlines()) == 1


def test_an_interrupted_run_goes_on_to_the_same_answer(answer, tmp_path):
    folder, before = shutil.copytree(answer[2], tmp_path / "run"), answer[-1]
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(manifest | {"status": "running"}))
    (folder / "summary.json").unlink()

    assert cli.main(["resume", str(folder)]) == 0

    after = read_summary(folder)[1]
    assert after.model_copy(update={"seconds": before.seconds}) == before


def test_composed_stacks_are_those_that_profiles_load(space):
    whole = load_space(space)
    with Session.open(None, None, 1, 0, 1, None, None) as session:
        composer = Composer(whole.base, whole.axes, session)
        for point in [("ifast", "opencv-bicubic", "bgr"), ("apply", "pil-bilinear", "rgb")]:
            picks = dict(zip(whole.axes, point, strict=True))
            expected = session.builder.front_end(*whole.stack(picks)).recipes
            assert tuple(one.recipe for one in composer.front(point)) == expected


def test_a_search_begins_at_what_the_base_does_though_it_writes_less_of_it():
    with Session.open(None, None, 1, 0, 1, None, None) as session:
        whole = run.space("pillow_fp32", session.card, slow=False)
        first = next(run.starts(Composer(whole.base, whole.axes, session)))

    assert first[:2] == ("pillow exif=ignore", "pillow interpolation=bicubic antialias=true")


def test_axes_that_do_not_separate_are_searched_together():
    axes = {
        "decode": {"a": {"decode.backend": "pillow"}},
        "convert": {"a": {"color.convert": {}}},
        "encode": {"a": {"color.encode": {}}},
        "format": {"a": {"color.format": "nv12"}},
        "domain": {"a": {"resize.domain": "yuv"}},
        "order": {"a": {"color.order": "bgr"}},
        "normalize": {"a": {"normalize": {}}},
        "runtime": {"a": {"runtime.threads": 1}},
    }
    assert blocks(axes) == {
        "numbers": ("order", "normalize"),
        "execution": ("runtime",),
        "color": ("convert", "format", "domain"),
        "matrices": ("convert", "encode"),
        "decode": ("decode",),
        "sampling": ("domain",),
    }


ORDERS = {
    "divide": lambda x, m, s: x.sub(m).div(s),
    "multiply": lambda x, m, s: x.sub(m).mul(1 / s),
    "none": lambda x, m, s: x.mul(1 / 255).sub(m / 255).mul(255 / s),
}
"""What plain torch code does with pixels, mean and std on 0-255; the last is known to nobody."""


@pytest.mark.parametrize(
    "order",
    [
        pytest.param("multiply", marks=pytest.mark.prove),
        "divide", "none",
    ],
)  # fmt: skip
def test_a_tensor_of_plain_torch_code_is_found(order, tmp_path):
    """Mean and std are ImageNet's, which the space has as an option; so is the right kernel."""
    spec = SPACE | {"columns": {**SPACE["columns"], "normalize": {
        "model": {"normalize": {"mean": "model", "std": "model"}},
        "imagenet": {"normalize": {
            "mean": [123.675, 116.28, 103.53], "std": [58.395, 57.12, 57.375],
        }},
    }}}  # fmt: skip
    space = written(spec, tmp_path / "space.yaml")
    path = record(tmp_path / "board", "frames", ["resize=pil-bilinear"], after="geometry")
    mean, std = (
        torch.tensor(numbers, dtype=torch.float64)[:, None, None]
        for numbers in ([123.675, 116.28, 103.53], [58.395, 57.12, 57.375])
    )
    tensors = {}
    with np.load(path.parent / "board.npz") as frames:
        for name, pixels in frames.items():
            x = torch.from_numpy(pixels.transpose(2, 0, 1).copy()).float()
            tensors[name] = ORDERS[order](x, mean.float(), std.float()).numpy()[None]
    np.savez(path.parent / "board.npz", **tensors)
    manifest = yaml.safe_load(path.read_text()) | {"kind": "tensors"}
    manifest.pop("after")
    written(manifest, path)

    found = simulator.identify(path, space=space, out=tmp_path / "run", limit=4)

    told = [one.text for one in found.summary.warnings if "arithmetic" in one.text]
    assert found.summary.exact
    assert found.summary.axes["resize"].option == "pil-bilinear"
    assert found.summary.axes["normalize"].option == "imagenet"
    profile = load(str(found.folder / "identified.yaml"))
    if order == "none":
        assert "within 4 units in the last place" in told[0]
        assert "is reproduced up to rounding (" in found.summary.verdict.lost[0]
        assert "within 4 units in the last place" in found.summary.verdict.lost[0]
    else:
        assert f"{order} has the bits" in told[0]
        assert "is reproduced to the bit" in found.summary.verdict.lost[0]
        assert profile.spec.normalize.arithmetic == order


def test_numbers_that_are_in_no_list_are_solved_to_the_digit(space, tmp_path):
    """CLIP's mean and std, which neither the space nor the card has, in the order of BGR."""
    mean = [0.48145466, 0.4578275, 0.40821073]
    std = [0.26862954, 0.26130258, 0.27577711]
    path = record(tmp_path / "board", "frames", ["resize=pil-bilinear"], after="geometry")
    tensors = {}
    with np.load(path.parent / "board.npz") as frames:
        for name, pixels in frames.items():
            x = torch.from_numpy(pixels.transpose(2, 0, 1).copy()).float().div(255).flip(0)
            numbers = (torch.tensor(one[::-1])[:, None, None] for one in (mean, std))
            tensors[name] = x.sub(next(numbers)).div(next(numbers)).numpy()[None]
    np.savez(path.parent / "board.npz", **tensors)
    manifest = yaml.safe_load(path.read_text()) | {"kind": "tensors"}
    manifest.pop("after")
    written(manifest, path)

    found = simulator.identify(path, space=space, out=tmp_path / "run", limit=4)

    assert found.summary.exact and found.summary.ulps == 0
    normalize = load(str(found.folder / "identified.yaml")).spec.normalize
    assert normalize.mean == pytest.approx(np.array(mean[::-1]) * 255, rel=1e-7)
    assert normalize.std == pytest.approx(np.array(std[::-1]) * 255, rel=1e-7)
    assert found.summary.axes["order"].option == "bgr"
    assert normalize.arithmetic == "unit_divide"


def test_code_is_found_as_a_recording_is(space, tmp_path):
    """What PyTorch's users write for the built-in network, with another kernel than its own."""
    (tmp_path / "eval.py").write_text(
        "import numpy as np\nfrom PIL import Image\n"
        "def preprocess(path):\n"
        "    image = Image.open(path).convert('RGB')\n"
        "    sides = [int(256 * one / min(image.size)) for one in image.size]\n"
        "    image = image.resize(sides, Image.Resampling.BILINEAR)\n"
        "    left, top = (round((one - 224) / 2) for one in image.size)\n"
        "    image = image.crop((left, top, left + 224, top + 224))\n"
        "    return (np.asarray(image, np.float32) - 127) / 128\n"
    )

    summary = found(f"{tmp_path}/eval.py:preprocess", space, tmp_path / "run", limit=2).summary

    assert summary.exact and summary.recording == "eval.py:preprocess"
    assert named(summary).items() >= EQUAL.items()
