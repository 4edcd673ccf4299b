"""Segmentation against a short script that shares no code with it.

Everything up to ``CASES`` goes from files to masks, mIoU and changed pixels with the libraries
alone. Then ``simulate`` must give the same confusion matrices and the same changes.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml
from shared_data import shared

pytestmark = pytest.mark.prove

Image = pytest.importorskip("PIL.Image")
ort = pytest.importorskip("onnxruntime")
pq = pytest.importorskip("pyarrow.parquet")
ndimage = pytest.importorskip("scipy.ndimage")

CARDS = Path(__file__).with_name("cards")
CLASSES, SIDE = 21, 257


def logits(session, file):
    """(21, 33, 33) float64, in which the rest is computed."""
    rgb = Image.open(file).convert("RGB").resize((SIDE, SIDE), Image.Resampling.BILINEAR)
    tensor = ((np.asarray(rgb, np.float32) - 127.5) / 127.5).transpose(2, 0, 1)[None]
    (scores,) = session.run(None, {session.get_inputs()[0].name: np.ascontiguousarray(tensor)})
    return scores[0].astype(np.float64)


def align_corners(i):
    return i * 32 / 256


def half_pixel(i):
    return min(max((i + 0.5) * 33 / 257 - 0.5, 0), 32)


def bilinear(scores, place):
    """Row after row, the weighted mean of four neighbors."""
    places = np.array([place(i) for i in range(SIDE)])
    before = places.astype(int)
    after, share = np.minimum(before + 1, 32), places - before
    large = np.empty((CLASSES, SIDE, SIDE))
    for y in range(SIDE):
        row = scores[:, before[y]] * (1 - share[y]) + scores[:, after[y]] * share[y]
        large[:, y] = row[:, before] * (1 - share) + row[:, after] * share
    return large


def nearest(scores, place):
    index = [int(place(i) + 0.5) for i in range(SIDE)]
    return scores[:, index][:, :, index]


def mask(scores, up, place, size):
    chosen = Image.fromarray(up(scores, place).argmax(axis=0).astype(np.uint8))
    return np.asarray(chosen.resize(size, Image.Resampling.NEAREST))


def confusion(truth, found):
    """(21, 21) pixels of each class, and what they are taken for; 255 is not judged."""
    judged = truth != 255
    joint = CLASSES * truth[judged].astype(int) + found[judged]
    return np.bincount(joint, minlength=CLASSES**2).reshape(CLASSES, CLASSES)


def miou(matrix):
    union = matrix.sum(axis=0) + matrix.sum(axis=1) - matrix.diagonal()
    return float(np.mean(matrix.diagonal()[union > 0] / union[union > 0]))


def at_boundary(before):
    """Within 3 pixels of another class, in a square window."""
    return ndimage.maximum_filter(before, 7) != ndimage.minimum_filter(before, 7)


TRAIN = bilinear, align_corners
UP = "postprocess.logits_upsample"
CASES = [
    pytest.param((nearest, align_corners), f"{UP}.mode=nearest", id="nearest"),
    pytest.param(
        (bilinear, half_pixel), f"{UP}.coordinate_transformation_mode=half_pixel", id="half_pixel"
    ),
]


@pytest.fixture(scope="module")
def answered():
    """20 images from all over the set: {name: (logits, size, truth, the training stack's mask)}."""
    folder = shared("coco")
    session = ort.InferenceSession(
        str(shared("models") / "deeplabv3_257_logits33.onnx"), providers=["CPUExecutionProvider"]
    )
    paths = sorted((folder / "voc21_masks").iterdir())
    made = {}
    for path in paths[:: len(paths) // 20][:20]:
        truth = np.asarray(Image.open(path))
        scores = logits(session, folder / "images" / f"{path.stem}.jpg")
        size = truth.shape[::-1]
        made[f"{path.stem}.jpg"] = scores, size, truth, mask(scores, *TRAIN, size)
    return made


@pytest.mark.parametrize(("mine", "setting"), CASES)
def test_same_masks(mine, setting, answered, tmp_path):
    """Every confusion matrix is equal, mIoU to 1e-12, and so are the changed pixels."""
    from simulator import compare

    given = yaml.safe_load((CARDS / "coco_masks.yaml").read_text())
    for key in ("images", "annotations", "classes"):
        given[key] = str((CARDS / given[key]).resolve())
    (tmp_path / "twenty.txt").write_text("\n".join(answered) + "\n")
    (tmp_path / "data.yaml").write_text(yaml.safe_dump({**given, "split": "twenty.txt"}))
    summary = compare(
        "pillow_fp32",
        "pillow_fp32",
        model=CARDS / "deeplabv3_257.yaml",
        data=tmp_path / "data.yaml",
        overrides=[*(f"{side}.resize=pil-bilinear" for side in ("train", "deploy")),
                   f"deploy.{setting}"],
        out=tmp_path / "run", quick=True, report=False,
    ).summary  # fmt: skip
    assert (summary["samples"], summary["skipped"]) == (20, 0)

    found = {
        name: (truth, train, mask(scores, *mine, size))
        for name, (scores, size, truth, train) in answered.items()
    }
    records = pq.read_table(tmp_path / "run" / "records.parquet").to_pylist()
    for at, side in enumerate(("train", "deploy"), 1):
        matrices = {name: confusion(masks[0], masks[at]) for name, masks in found.items()}
        for row in (row for row in records if row["side"] == side):
            got = np.zeros((CLASSES, CLASSES + 1), int)
            got.flat[row["cells"]] = row["pixels"]
            assert np.array_equal(got[:, :CLASSES], matrices[row["sample"]])
            assert not got[:, CLASSES].any()
        wanted = miou(sum(matrices.values()))
        assert summary[side]["metric"]["mIoU"] == pytest.approx(wanted, abs=1e-12)

    flips = summary["flips"]
    pixels = sum(truth.size for truth, _, _ in found.values())
    changed = [before != after for _, before, after in found.values()]
    edges = [at_boundary(before) for _, before, _ in found.values()]
    at_edges = sum(np.count_nonzero(c & e) for c, e in zip(changed, edges, strict=True))
    right_to_wrong = sum(
        np.count_nonzero((before == truth) & (after != truth) & (truth != 255))
        for truth, before, after in found.values()
    )
    assert flips["units"] == pixels
    assert flips["count"] == sum(map(np.count_nonzero, changed)) > 0
    assert flips["right_to_wrong"] == right_to_wrong
    assert flips["boundary_rate"] == pytest.approx(at_edges / sum(map(np.count_nonzero, edges)))
