"""Mix training's transform against one by hand with the same libraries; run by ``make bench``.

Both draw the same decoders and resizers (suite sysnoise-mix) for the same images, on one thread;
the tensors are compared first. The seconds are of the processor, the ratio is that of the medians.
"""

from __future__ import annotations

import argparse
import io
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import av
import bench
import by_hand
import cv2
import numpy as np
from av.video.reformatter import Interpolation
from PIL import Image

from simulator.data import example
from simulator.mitigation import MixedPreprocessing

TARGET = 1.3
PIL = {
    "pil-bilinear": Image.Resampling.BILINEAR,
    "pil-nearest": Image.Resampling.NEAREST,
    "pil-bicubic": Image.Resampling.BICUBIC,
}
OPENCV = {
    "opencv-nearest": cv2.INTER_NEAREST,
    "opencv-bilinear": cv2.INTER_LINEAR,
    "opencv-bicubic": cv2.INTER_CUBIC,
}


def main() -> None:
    """Race, and print a row."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--quick", action="store_true", help="10 images, 3 rounds")
    args = parser.parse_args()
    files = bench.images(args.data)[: 10 if args.quick else args.images]
    mixed = MixedPreprocessing("sysnoise-mix", model=example.model_card())
    cv2.setNumThreads(1)
    data = [path.read_bytes() for path in files]
    names = [mixed.drawn(one, 0) for one in data]
    pairs = list(zip(data, names, strict=True))
    for one, drawn in pairs:
        assert np.array_equal(mixed(one, 0), plain(one, drawn)), drawn
    ours, theirs = [], []
    for _ in range(3 if args.quick else args.rounds):
        ours.append(seconds(lambda: [mixed(one, 0) for one in data]))
        theirs.append(seconds(lambda: [plain(*pair) for pair in pairs]))
    whole, hand = statistics.median(ours), statistics.median(theirs)
    each = f"{1e3 * whole / len(data):.2f} / {1e3 * hand / len(data):.2f} ms an image"
    row = (
        "mixed transform, against one by hand", f"{whole / hand:.2f}x", f"at most {TARGET}x",
        "ok" if whole <= TARGET * hand else "TOO SLOW", each,
    )  # fmt: skip
    bench.show([row], f"mix training, {len(data)} images, one thread")


def plain(data: bytes, drawn: dict[str, str]) -> np.ndarray:
    """What one would write: (3, 224, 224) float32."""
    picture = DECODERS[drawn["decode"]](data)
    return by_hand.tensor_of(np.asarray(picture), RESIZERS[drawn["resize"]])[0]


def _ffmpeg(data: bytes) -> np.ndarray:
    codec = av.CodecContext.create("mjpeg", "r")
    codec.thread_count = 1
    (frame, *_) = codec.decode(av.Packet(data)) or codec.decode(None)
    return frame.reformat(
        format="rgb24", interpolation=Interpolation.BICUBIC, threads=1
    ).to_ndarray()


def _pil(how: Image.Resampling) -> Callable[[np.ndarray, tuple[int, int]], np.ndarray]:
    return lambda rgb, size: np.asarray(Image.fromarray(rgb).resize(size, how))


def _opencv(how: int) -> Callable[[np.ndarray, tuple[int, int]], np.ndarray]:
    return lambda rgb, size: cv2.resize(rgb, size, interpolation=how)


def _pillow(data: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))


DECODERS = {"pillow": _pillow, "opencv": by_hand.opencv, "ffmpeg": _ffmpeg}
RESIZERS = {name: _pil(how) for name, how in PIL.items()}
RESIZERS |= {name: _opencv(how) for name, how in OPENCV.items()}


def seconds(run: Callable[[], object]) -> float:
    """Of the processor."""
    start = time.process_time()
    run()
    return time.process_time() - start


if __name__ == "__main__":
    main()
