"""Write what imagecorruptions makes of two images: tests/golden/corruptions.json.

Run by hand in an environment of its own, never by CI; the engine does not need it:

    python -m venv oracle && oracle/bin/pip install imagecorruptions-imaug==1.1.5
    oracle/bin/python tools/corruption_goldens.py

The oracle draws from numpy's RandomState, seeded with the severity; glass blur with the Python
form of its loop, impulse noise from numpy's Generator. numpy's AVX-512 functions are switched off:
with them the oracle itself gives other levels on flat images (numpy's ``exp`` differs from the C
library's in the last bit).
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from pathlib import Path

import numpy as np

TARGET = Path(__file__).parents[1] / "tests/golden/corruptions.json"
NAMES = (
    "gaussian_noise", "shot_noise", "impulse_noise", "speckle_noise", "gaussian_blur", "glass_blur",
    "defocus_blur", "motion_blur", "zoom_blur", "snow", "fog", "brightness", "contrast", "saturate",
    "spatter", "elastic_transform", "pixelate", "jpeg_compression",
)  # fmt: skip
WITHOUT = "X86_V4 AVX512_ICL AVX512_SPR"


def pictures() -> dict[str, np.ndarray]:
    """One with smooth and sharp parts, larger than every kernel, and one that is flat."""
    y, x, c = np.mgrid[:90, :107, :3]
    waves = (y * y // 17 + x * (7 + 2 * c) // 5 + (x * y) // 29 + 60 * c) % 256
    waves[20:50, 30:70] = 200
    flat = np.full((64, 48, 3), 77)
    flat[:, 24:] = 255
    return {"waves": waves.astype(np.uint8), "flat": flat.astype(np.uint8)}


def digest(image: np.ndarray) -> str:
    return hashlib.blake2b(image.tobytes(), digest_size=8).hexdigest()


def main() -> None:
    if os.environ.get("NPY_DISABLE_CPU_FEATURES") != WITHOUT:
        os.environ["NPY_DISABLE_CPU_FEATURES"] = WITHOUT
        os.execv(sys.executable, [sys.executable, *sys.argv])
    found = {
        name: {
            title: [digest(corrupted(name, image, severity)) for severity in range(1, 6)]
            for title, image in pictures().items()
        }
        for name in NAMES
    }
    TARGET.write_text(json.dumps(found, indent=1) + "\n")


def corrupted(name: str, image: np.ndarray, severity: int) -> np.ndarray:
    """Return the oracle's image, (H, W, 3) uint8."""
    from imagecorruptions import corruptions as oracle
    from PIL import Image

    np.random.seed(severity)
    if name == "impulse_noise":
        made = oracle.impulse_noise(image, severity, np.random.default_rng(severity))
    elif name == "glass_blur":
        compiled = oracle._shuffle_pixels_njit_glass_blur
        oracle._shuffle_pixels_njit_glass_blur = lambda *args: compiled.py_func(*args[:4], severity)
        made = oracle.glass_blur(image, severity, 0)
        oracle._shuffle_pixels_njit_glass_blur = compiled
    elif name in ("pixelate", "jpeg_compression", "spatter"):
        made = getattr(oracle, name)(Image.fromarray(image), severity)
    else:
        made = getattr(oracle, name)(image, severity)
    return np.uint8(made)


if __name__ == "__main__":
    main()
