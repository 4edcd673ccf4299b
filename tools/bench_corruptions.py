"""How long corruptions take on one core, against imagecorruptions where it is installed.

Without arguments: milliseconds for each of the 19 on a 224-pixel photograph at severity 3, and
their sum. With ``--oracle PYTHON``, an environment with imagecorruptions-imaug (made as
tools/corruption_goldens.py says): the same image through the oracle in the same run, and how many
times as long it takes. Glass blur is also timed in the original's Python form; the oracle's is
compiled by numba. Its ``elastic_transform`` is our ``elastic_bethgelab``; our ``elastic_transform``
is raced against Hendrycks' code.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

ROUNDS = 5
PUBLISHED = (
    "gaussian_noise", "shot_noise", "impulse_noise", "defocus_blur", "glass_blur", "motion_blur",
    "zoom_blur", "snow", "frost", "fog", "brightness", "contrast", "elastic_transform", "pixelate",
    "jpeg_compression", "speckle_noise", "gaussian_blur", "spatter", "saturate",
)  # fmt: skip
LIMIT_MS = 100
BETHGELAB = "elastic_bethgelab"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--oracle", help="a Python that has imagecorruptions-imaug")
    parser.add_argument("--severity", type=int, default=3)
    parser.add_argument("--image", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.image:
        print(json.dumps(theirs(np.load(args.image), args.severity)))
        return
    image = photograph()
    own = ours(image, args.severity)
    other = _asked(args.oracle, image, args.severity) if args.oracle else {}
    print(f"| severity {args.severity}, 224x224 | ms | oracle, ms | times |\n|---|---|---|---|")
    for name, ms in own.items():
        there = other.get(name)
        print(f"| {name} | {ms:.1f} | " + (f"{there:.1f} | {there / ms:.1f} |" if there else "| |"))
    total = sum(ms for name, ms in own.items() if name in PUBLISHED)
    print(f"| all 19 | {total:.1f} | | {'ok' if total < LIMIT_MS else f'over {LIMIT_MS}'} |")
    if "glass_blur, Python" in other:
        there = other["glass_blur, Python"]
        print(f"| glass_blur, Python | | {there:.1f} | {there / own['glass_blur']:.1f} |")


def photograph() -> np.ndarray:
    """The first built-in image, squeezed to 224x224."""
    from PIL import Image

    from simulator.data import example

    with Image.open(example.images().items[0].path) as whole:
        return np.asarray(whole.convert("RGB").resize((224, 224)))


def timed(run: Callable[[], object]) -> float:
    """Milliseconds of processor time: the shortest of some rounds."""
    found = []
    for _ in range(ROUNDS):
        start = time.process_time()
        run()
        found.append(time.process_time() - start)
    return min(found) * 1e3


def ours(image: np.ndarray, severity: int) -> dict[str, float]:
    from simulator.conditions.condition import CONDITIONS

    found = {}
    for name in (*PUBLISHED, BETHGELAB):
        one = CONDITIONS[name].parse(str(severity))
        found[name] = timed(lambda one=one: one.apply(image, np.random.default_rng(1)))
    return found


def theirs(image: np.ndarray, severity: int) -> dict[str, float]:
    import cv2
    from imagecorruptions import corruptions as oracle
    from PIL import Image

    cv2.setNumThreads(1)
    picture = Image.fromarray(image)
    found = {
        name: timed(lambda name=name: np.uint8(getattr(oracle, name)(picture, severity)))
        for name in PUBLISHED
    }
    found[BETHGELAB] = found["elastic_transform"]
    found["elastic_transform"] = timed(lambda: hendrycks_elastic(image, severity))
    compiled = oracle._shuffle_pixels_njit_glass_blur
    oracle._shuffle_pixels_njit_glass_blur = compiled.py_func
    found["glass_blur, Python"] = timed(lambda: oracle.glass_blur(picture, severity, 1))
    return found


def hendrycks_elastic(image: np.ndarray, severity: int) -> np.ndarray:
    """``elastic_transform`` of https://github.com/hendrycks/robustness (Apache-2.0), shortened."""
    import cv2
    from scipy.ndimage import map_coordinates
    from skimage.filters import gaussian

    small = [(244 * one, 244 * 0.01, 244 * 0.02) for one in (0.05, 0.07, 0.12)]
    c = [(244 * 2, 244 * 0.7, 244 * 0.1), (244 * 2, 244 * 0.08, 244 * 0.2), *small][severity - 1]
    image = np.array(image, dtype=np.float32) / 255.0
    shape, size = image.shape, image.shape[:2]
    center, square = np.float32(size) // 2, min(size) // 3
    corners = np.float32(
        [center + square, [center[0] + square, center[1] - square], center - square]
    )
    moved = corners + np.random.uniform(-c[2], c[2], size=corners.shape).astype(np.float32)
    affine = cv2.getAffineTransform(corners, moved)
    image = cv2.warpAffine(image, affine, size[::-1], borderMode=cv2.BORDER_REFLECT_101)
    dx, dy = (
        (
            gaussian(np.random.uniform(-1, 1, size=size), c[1], mode="reflect", truncate=3) * c[0]
        ).astype(np.float32)[..., np.newaxis]
        for _ in range(2)
    )
    x, y, z = np.meshgrid(*(np.arange(shape[axis]) for axis in (1, 0, 2)))
    at = [np.reshape(one, (-1, 1)) for one in (y + dy, x + dx, z)]
    return np.clip(map_coordinates(image, at, order=1, mode="reflect").reshape(shape), 0, 1) * 255


def _asked(python: str, image: np.ndarray, severity: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "image.npy"
        np.save(place, image)
        words = [python, __file__, "--image", str(place), "--severity", str(severity)]
        ran = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(ran.stdout)


if __name__ == "__main__":
    sys.exit(main())
