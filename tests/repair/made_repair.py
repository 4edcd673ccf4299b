"""A made pair: what is lost is one axis by construction."""

import yaml

RGB = {"set": {"color.order": "model"}, "cost": {"hours": 3, "work": "one word"}, "why": "RGB"}
BOX = {"set": {"resize": "pil-box"}, "cost": {"ms": 0.5}}
DOCUMENT = {
    "schema": 1, "name": "mine", "summary": "the order repairs all, the resize nothing",
    "train": "pillow_fp32", "deploy": "pillow_fp32",
    "axes": {"order": {"rgb": RGB}, "resize": {"box": BOX}},
}  # fmt: skip
BGR = ["deploy.color.order=bgr", "deploy.resize=opencv-nearest"]
"""Red and blue change places; the resize is harmless on noise."""


def written(folder, **changed):
    """Write the document with other fields; its path."""
    path = folder / "mine.yaml"
    path.write_text(yaml.safe_dump({**DOCUMENT, **changed}, sort_keys=False))
    return str(path)
