"""The figures that were measured with other scripts, of whole detectors and a segmenter.

``bccd_retinanet.md`` and ``README.md`` in the shared data have them, and say how they came about.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from shared_data import shared

pytestmark = pytest.mark.prove

pq = pytest.importorskip("pyarrow.parquet")
for library in ("PIL", "cv2", "onnxruntime", "pycocotools"):
    pytest.importorskip(library)

CARDS = Path(__file__).with_name("cards")
BILINEAR = {"resize": "pil-bilinear"}
OFFSET = "postprocess.box_offset"
UPSAMPLE = "graph.upsample={mode: linear, coordinate_transformation_mode: half_pixel}"


def linear(coordinates):
    return {"graph.upsample": {"mode": "linear", "coordinate_transformation_mode": coordinates}}


# The card's row: mAP, AP50, AP75, AP of RBC, WBC and Platelets, detections; and how it is made.
NAMES = ("mAP", "AP50", "AP75", "AP RBC", "AP WBC", "AP Platelets")
ROWS = {
    "baseline": ({}, (0.5517, 0.8889, 0.6232, 0.5024, 0.6956, 0.4570, 2034)),
    "half_pixel": (linear("half_pixel"), (0.5525, 0.8905, 0.6184, 0.5046, 0.6867, 0.4661, 1976)),
    "asymmetric": (linear("asymmetric"), (0.5360, 0.8841, 0.5928, 0.4912, 0.6753, 0.4417, 2004)),
    "align_corners": (
        linear("align_corners"),
        (0.5486, 0.8893, 0.6040, 0.5042, 0.6795, 0.4619, 2013),
    ),
    "c1": ({f"{OFFSET}.corners": 1}, (0.5333, 0.8789, 0.5475, 0.4930, 0.6918, 0.4152, 2052)),
    "c2": (
        {f"{OFFSET}.anchors": 1, f"{OFFSET}.corners": 1, "postprocess.nms.offset": 1},
        (0.5521, 0.8893, 0.6320, 0.5006, 0.6931, 0.4627, 2005),
    ),
    "c3": (
        {OFFSET: {"anchors": 1, "corners": 1, "extent": 1}, "postprocess.nms.offset": 1},
        (0.5533, 0.8895, 0.6043, 0.5024, 0.6966, 0.4610, 2005),
    ),
    "c4": ({f"{OFFSET}.anchors": 1}, (0.5514, 0.8895, 0.5949, 0.5012, 0.6937, 0.4594, 2005)),
}
CEIL = {"graph.pooling.ceil_mode": "ceil"}
SMALLER = {
    "baseline": ({}, (0.5487, 0.8895, 0.6411, 0.5067, 0.6817, 0.4578, 2105)),
    "ceil": (CEIL, (0.5453, 0.8866, 0.6348, 0.5045, 0.6828, 0.4487, 2066)),
}


def swept(tmp_path, model, data, options):
    """The figures of every option, and the summary; one pass over the images."""
    from simulator import sweep

    shared("models")
    suite = {
        "schema": 1,
        "name": "golden",
        "summary": "",
        "train": "pillow_fp32",
        "columns": {"row": options},
    }
    (tmp_path / "suite.yaml").write_text(yaml.safe_dump(suite, sort_keys=False))
    (result,) = sweep(
        str(tmp_path / "suite.yaml"),
        models=[CARDS / f"{model}.yaml"],
        data=CARDS / f"{data}.yaml",
        out=tmp_path / "run",
        report=False,
    )
    found = pq.read_table(result.folder / "records.parquet").to_pylist()
    return result.summary["columns"]["row"]["options"], result.summary, found


@pytest.mark.parametrize(("size", "rows"), [("320x416", ROWS), ("316x412", SMALLER)])
def test_bccd(size, rows, tmp_path):
    """Every row of the RetinaNet's card, to a unit of the fourth digit and to the detection."""
    options = {name: {**BILINEAR, **changes} for name, (changes, _) in rows.items()}
    found, summary, records = swept(tmp_path, f"bccd_retinanet_{size}", "bccd_test", options)
    assert (summary["samples"], summary["skipped"]) == (72, 0)
    for name, (_, (*wanted, count)) in rows.items():
        figures = [found[name][metric] for metric in NAMES]
        dets = [len(row["scores"]) for row in records if row["side"] == f"row/{name}"]
        assert (figures, sum(dets)) == (pytest.approx(wanted, abs=1e-4), count), name


def test_ceil_mode_does_not_fit():
    """At 320x416 the pool's larger map no longer fits the FPN, which names the Add."""
    from simulator import compare
    from simulator.errors import ModelError

    shared("models")
    with pytest.raises(ModelError, match=r"ceil_mode ceil breaks .*Add, node name: /Add\)"):
        compare(
            "pillow_fp32",
            "pillow_fp32",
            model=CARDS / "bccd_retinanet_320x416.yaml",
            data=CARDS / "bccd_test.yaml",
            overrides=[f"deploy.{key}={value}" for key, value in CEIL.items()],
        )


def test_deeplab(tmp_path):
    """Bilinear align_corners, half-pixel and nearest, on 149 masks."""
    up = "postprocess.logits_upsample"
    options = {
        "align_corners": BILINEAR,
        "half_pixel": {**BILINEAR, f"{up}.coordinate_transformation_mode": "half_pixel"},
        "nearest": {
            **BILINEAR,
            up: {"mode": "nearest", "coordinate_transformation_mode": "asymmetric"},
        },
    }
    found, summary, _ = swept(tmp_path, "deeplabv3_257", "coco_masks", options)
    assert (summary["samples"], summary["skipped"]) == (149, 0)
    figures = {name: round(one["mIoU"], 3) for name, one in found.items()}
    assert figures == {"align_corners": 0.396, "half_pixel": 0.390, "nearest": 0.381}


@pytest.mark.parametrize(
    ("model", "figures"),
    [
        ("yolox_nano", {"train": (0.484, 0.327), "deploy": (0.483, 0.325)}),
        ("fastestdet", {"train": (0.322, 0.174)}),
    ],
)
def test_coco(model, figures, tmp_path):
    """AP50 and mAP on 177 images, as trained and with the FPN's Resize bilinear.

    FastestDet's AP50 is 0.32150, half a digit from what was measured. Its bilinear figure is left
    out: no setting found gives it.
    """
    from simulator import compare

    shared("models")
    sides = [f"{side}.resize=opencv-bilinear" for side in ("train", "deploy")]
    summary = compare(
        "pillow_fp32",
        "pillow_fp32",
        model=CARDS / f"{model}.yaml",
        data=CARDS / "coco_boxes.yaml",
        overrides=[*sides, f"deploy.{UPSAMPLE}"],
        out=tmp_path / "run",
        quick=True,
        report=False,
    ).summary
    assert (summary["samples"], summary["skipped"]) == (177, 0)
    for side, wanted in figures.items():
        metric = summary[side]["metric"]
        assert [metric["AP50"], metric["mAP"]] == pytest.approx(wanted, abs=0.00051)
