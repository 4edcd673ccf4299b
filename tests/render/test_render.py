"""``simulate render``: what it writes is what the stack sees, with truth where its pixels lie."""

import json

import numpy as np
import pytest
import tiny
import tiny_tasks
import yaml
from PIL import Image

import simulator
from simulator import cli
from simulator.command.options import Progress
from simulator.data.card import read_card
from simulator.data.labels import load_labels
from simulator.errors import RunError, UserError
from simulator.mitigation import MixedPreprocessing

CROP = {"kind": "short_side_crop", "short_side": 36}
STACKS = ("pillow_fp32", "opencv_fp32", "ascend_nv12_int8", "deepstream_letterbox_fp32")


@pytest.fixture
def photographs(tmp_path):
    return tiny.data(tmp_path / "photographs", each=2)


@pytest.fixture
def card(tmp_path):
    return tiny.card(tmp_path / "model", geometry=CROP)


def render(card, data, out, **asked):
    return simulator.render(model=card, data=data, out=out, **asked)


def tensors(card, profile, images):
    """Another way to a network's input, that of mix training."""
    stack = MixedPreprocessing(None, model=card, columns=(), train=str(profile))
    return np.stack([stack(str(place)) for place in sorted(images.rglob("*.[jp][pn]g"))])


@pytest.mark.parametrize("profile", STACKS)
def test_a_rendered_folder_gives_the_tensors_of_its_stack(card, photographs, tmp_path, profile):
    expected = tensors(card, profile, photographs)

    found = render(card, photographs, tmp_path / "out", profile=profile)

    assert found["samples"] == len(expected) == 6
    again = tensors(card, tmp_path / "out/profile.yaml", tmp_path / "out/images")
    assert again.tobytes() == expected.tobytes()


@pytest.mark.parametrize("profile", STACKS)
def test_a_torch_loader_of_the_arrays_gives_the_tensors_of_its_stack(
    card, photographs, tmp_path, profile
):
    data = pytest.importorskip("torch.utils.data")
    torch = pytest.importorskip("torch")
    expected = tensors(card, profile, photographs)
    out = tmp_path / "out"

    render(card, photographs, out, profile=profile, format="npy", shard=4)

    parts = [np.load(place, mmap_mode="c") for place in sorted(out.glob("shards/*.npy"))]
    assert [len(part) for part in parts] == [4, 2]
    inputs = data.ConcatDataset([data.TensorDataset(torch.from_numpy(part)) for part in parts])
    loaded = torch.cat([one for (one,) in data.DataLoader(inputs, batch_size=3)])
    assert loaded.numpy().tobytes() == expected.tobytes()
    assert np.load(out / "labels.npy").tolist() == [2, 2, 1, 1, 0, 0]


@pytest.mark.parametrize("format", ["folder", "tar"])
def test_what_is_rendered_is_data_with_equal_answers(card, photographs, cache, tmp_path, format):
    """By the digests of the network's outputs, and the labels, of a run over either."""
    out = tmp_path / "out"
    assert cli.main(
        ["render", "--profile", "nv12_fp32", "--model", str(card), "--data", str(photographs),
         "--format", format, "--shard", "4", "--out", str(out)]
    ) == 0  # fmt: skip

    def answers(profile, data):
        done = simulator.compare(profile, profile, model=card, data=data, quick=True)
        return [(row["digest"], row["label"]) for row in done.records().to_pylist()]

    assert answers(str(out / "profile.yaml"), out) == answers("nv12_fp32", photographs)


@pytest.mark.parametrize("orientation", [1, 6])
@pytest.mark.parametrize("geometry", [CROP | {"short_side": 80}, {"kind": "letterbox"}])
@pytest.mark.parametrize("task", ["detection", "segmentation"])
def test_boxes_and_masks_lie_where_the_pixels_lie(tmp_path, task, geometry, orientation):
    """The truth is a red square of the image as stored; it is looked for in the new pixels."""
    folder, out = tmp_path / "data", tmp_path / "out"
    (folder / "images").mkdir(parents=True)
    (folder / "masks").mkdir()
    pixels, mask = np.full((60, 90, 3), 128, np.uint8), np.full((60, 90), 255, np.uint8)
    pixels[10:40, 20:60], mask[10:40, 20:60] = tiny.COLORS["red"], 0
    exif = Image.Exif()
    exif[0x0112] = orientation
    Image.fromarray(pixels).save(folder / "images/a.png", exif=exif)
    Image.fromarray(mask).save(folder / "masks/a.png")
    size = {"id": 7, "file_name": "a.png", "width": 90, "height": 60}
    box = {"id": 1, "image_id": 7, "category_id": 1, "bbox": [20, 10, 40, 30], "iscrowd": 0}
    document = {"images": [size], "annotations": [box], "categories": [{"id": 1, "name": "red"}]}
    (folder / "boxes.json").write_text(json.dumps(document))
    how = {"format": "index_masks", "annotations": "masks", "ignore": 255}
    if task == "detection":
        how = {"format": "coco", "annotations": "boxes.json"}
    spec = {"schema": 1, "name": "a", "task": task, "images": "images", **how}
    (folder / "data.yaml").write_text(yaml.safe_dump(spec))
    model = tiny_tasks.card(tmp_path / "model", task)
    values = yaml.safe_load(model.read_text()) | {"geometry": geometry}
    model.write_text(yaml.safe_dump(values))

    render(model, folder, out, profile="pillow_fp32", overrides=["decode.exif=apply"])

    (item,) = read_card(out / "data.yaml").load(load_labels(model.parent / "labels.txt")).items
    seen = np.array(Image.open(out / "images/a.png")).astype(int)
    red = seen[..., 0] - seen[..., 1] > 90
    if task == "segmentation":
        assert (np.array(Image.open(out / "masks/a.png")) == 0).sum() == pytest.approx(
            red.sum(), rel=0.05
        )
        assert ((item.truth.read() == 0) & red).sum() > 0.95 * red.sum()
        return
    rows, columns = np.flatnonzero(red.any(1)), np.flatnonzero(red.any(0))
    edges = [columns[0], rows[0], columns[-1] + 1, rows[-1] + 1]
    assert item.truth.corners[0] == pytest.approx(edges, abs=1)


class Stopping(Progress):
    """Ends the run at the fourth sample, as Ctrl-C does."""

    def advance(self, done, total):
        if done == 4:
            raise KeyboardInterrupt


@pytest.mark.parametrize("format", ["tar", "npy"])
def test_shards_go_on_where_they_were_stopped(card, photographs, tmp_path, format):
    asked = {"profile": "pillow_fp32", "format": format, "shard": 3, "workers": 1}
    render(card, photographs, tmp_path / "whole", **asked)
    with pytest.raises(KeyboardInterrupt) as stopped:
        render(card, photographs, tmp_path / "out", **asked, progress=Stopping())
    assert stopped.value.__notes__ == [f"simulate resume {tmp_path / 'out'}"]
    first = (tmp_path / "out/shards" / f"0000.{format}").stat().st_mtime_ns
    spooled = list((tmp_path / "out/.spool").rglob(f"*3.{'png' if format == 'tar' else 'npy'}"))
    assert len(spooled) == 1

    assert cli.main(["resume", str(tmp_path / "out")]) == 0

    assert (tmp_path / "out/shards" / f"0000.{format}").stat().st_mtime_ns == first
    names = [p.relative_to(tmp_path / "whole") for p in (tmp_path / "whole").rglob("*.*")]
    for name in (one for one in names if one.name != "plan.json"):
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_what_cannot_be_rendered_is_refused_in_a_line(card, photographs, tmp_path):
    with pytest.raises(UserError, match=r"a PNG keeps 8-bit RGB, and the stack gives float32.*npy"):
        render(card, photographs, tmp_path / "out", profile="openvino_ppp_fp32")
    with pytest.raises(UserError, match=r"text_fp32 takes texts, and .* takes images"):
        render(card, photographs, tmp_path / "text", profile="text_fp32")
    with pytest.raises(UserError, match="holds another rendered data; choose another --out"):
        render(card, photographs, tmp_path / "out", profile="opencv_fp32")


def test_a_folder_that_cannot_be_written_says_how_to_go_on(card, photographs, tmp_path):
    """A file stands where a folder is needed."""
    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        render(card, photographs, out, profile="pillow_fp32", workers=1, progress=Stopping())
    (out / "images").rename(out / "before")
    (out / "images").write_text("")

    with pytest.raises(RunError, match=rf"safe: make room, then: simulate resume {out}$"):
        render(card, photographs, out, profile="pillow_fp32")
