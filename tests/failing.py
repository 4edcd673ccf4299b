"""Samples and stacks of which one fails on some of the other's."""

import tiny

DECODE = {
    "backend": "turbojpeg", "exif": "ignore", "idct": "islow", "chroma_upsampling": "fancy",
}  # fmt: skip
"""Of a stack that reads no PNG."""
TURBO = "deploy.decode={backend: turbojpeg, exif: ignore, idct: islow, chroma_upsampling: fancy}"
PAIR = ("--train", "pillow_fp32", "--deploy", "pillow_fp32", "--set", TURBO)


def mixed(folder, pngs, jpegs):
    """Images of one class: *pngs* that TurboJPEG cannot read, and *jpegs* that it can."""
    (folder / "red").mkdir(parents=True)
    for number in range(pngs + jpegs):
        kind = "png" if number < pngs else "jpeg"
        image = tiny.encoded(tiny.picture(tiny.COLORS["red"], seed=number), kind)
        (folder / "red" / f"{number:03}.{kind}").write_bytes(image)
    return folder
