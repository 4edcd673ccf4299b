"""A suite of two axes on a tiny model: BGR changes two thirds of the answers, a resize none."""

import yaml

BGR, NEAREST, BOX = "order/bgr", "resize/nearest", "resize/box"
SUITE = {
    "schema": 1, "name": "mine", "summary": "two axes", "train": "pillow_fp32",
    "columns": {
        "order": {"bgr": {"color.order": "bgr"}},
        "resize": {"nearest": {"resize": "opencv-nearest"}, "box": {"resize": "pil-box"}},
    },
    "combined": {"color.order": "bgr", "resize": "opencv-nearest"},
}  # fmt: skip


def written(folder, **changed):
    """Write the suite with other fields; its path."""
    path = folder / "mine.yaml"
    path.write_text(yaml.safe_dump({**SUITE, **changed}, sort_keys=False))
    return str(path)
