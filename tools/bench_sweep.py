"""How much a sweep gains by one plan, and how its cost grows; run by ``make bench``.

The suite is robustmq-s (11 resizers, 3 decoders) on the built-in model, against (a) a pair at a
time and (b) a script that loops over the stacks with the same libraries and the same threads.
"""

from __future__ import annotations

import argparse
import io
import itertools
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import bench
import numpy as np

THREADS = 2
SUITE = "robustmq-s"
DECODERS = ("pillow", "opencv", "turbojpeg", "dali", "ffmpeg")
KERNELS = {
    "pillow": ("bilinear", "nearest", "box", "hamming", "bicubic", "lanczos"),
    "opencv": ("nearest", "bilinear", "area", "bicubic", "lanczos4", "nearest_exact",
               "linear_exact"),
    "dali": ("bilinear", "bicubic", "lanczos3", "nearest"),
    "pytorch": ("bilinear", "bicubic", "nearest"),
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=200)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--quick", action="store_true", help="40 images, no pairs, fewer stacks")
    parser.add_argument("--grow", nargs=2, metavar=("STACKS", "FOLDER"), help=argparse.SUPPRESS)
    parser.add_argument("--own-of", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.own_of:
        print(own_of(args.own_of))
        return
    if args.grow:
        print(*grow(int(args.grow[0]), Path(args.grow[1])))
        return
    count = min(args.images, 40) if args.quick else args.images
    files = bench.images(args.data)[:count]
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(temporary)
        folder = labelled(home / str(count), files, count)
        # First, while this process is small: Linux counts it into the peak of its children.
        grown = growth(folder, files, home, args.quick)
        bench.show(
            [*race(folder, home, not args.quick), *grown],
            f"{SUITE}, {count} images, {THREADS} threads",
        )


def labelled(folder: Path, files: list[Path], count: int) -> Path:
    """Make a folder of links to the files, all of one class."""
    bench.linked(folder, files, count)
    (folder / "labels.csv").write_text(
        "file,label\n" + "".join(f"{f.name},0\n" for f in sorted(folder.iterdir()))
    )
    return folder


def race(folder: Path, home: Path, pairs: bool) -> list[tuple[str, ...]]:
    import pyarrow.parquet as pq

    from simulator import sweep
    from simulator.profile.suite import load_suite

    def swept(name: str) -> tuple[Path, float]:
        with bench.watched() as seen:
            (result,) = sweep(SUITE, data=folder, workers=THREADS, out=home / name)
        return result.folder, seen["seconds"]

    swept("warm-up")
    run, loop = swept("sweep")
    records = pq.read_table(run / "records.parquet", columns=["sample", "digest"])
    unique = records.group_by(["sample", "digest"]).aggregate([]).num_rows
    stacks = records.num_rows // len({*records["sample"].to_pylist()})
    floor = inference(unique)
    own = own_at_once(folder, home)
    options = [changes for _, _, changes in load_suite(SUITE).options()]
    plain, pooled = (by_hand(folder, options, pooled) for pooled in (False, True))
    ours = f"against {loop:.1f} s, {stacks} stacks"
    rows = [
        bench.row("(b) a plain script / sweep, images alone", plain / loop, 0,
                  f"{plain:.1f} s {ours}; target ≥ 1.8"),
        bench.row("(b) a script with a thread pool / sweep", pooled / loop, 0,
                  f"{pooled:.1f} s {ours}"),
        bench.row("sweep, images alone / pure inference of unique tensors", loop / floor, 0,
                  f"{loop:.1f} s against {floor:.1f} s for {unique} of {records.num_rows}"),
        bench.row("sweep, images alone / the unique steps' own time over the cores", loop / own,
                  1.05, f"{loop:.1f} s against {own:.1f} s in {THREADS} processes of one thread"),
    ]  # fmt: skip
    if pairs:
        rows = [pair_by_pair(suite, folder, home) for suite in (SUITE, "sysnoise")] + rows
    return rows


def pair_by_pair(suite: str, folder: Path, home: Path) -> tuple[str, ...]:
    """Race a sweep against one ``simulate`` after another; INT8 artifacts are made before."""
    from simulator import compare, sweep
    from simulator.profile.suite import load_suite

    settings = {"data": folder, "workers": THREADS}
    swept = [seconds(lambda i=i: sweep(suite, out=home / f"{suite}{i}", **settings)) for i in "ab"]
    options = [option for option in load_suite(suite).options() if option[0] != "ceil_mode"]

    def pairs() -> None:
        for column, option, changes in options:
            compare(
                "pillow_fp32", "pillow_fp32", overrides=[f"deploy.{c}" for c in changes],
                out=home / "pairs" / suite / column / option, **settings,
            )  # fmt: skip

    took, whole = seconds(pairs), swept[1]
    note = f"{took:.1f} s against {whole:.1f} s, whole calls, {len(options)} options"
    return bench.row(f"(a) {suite}: pair by pair / sweep", took / whole, 0, note)


def own_at_once(folder: Path, home: Path) -> float:
    """Seconds of the unique steps alone, each core in a process of its own with its share.

    Cores that share a memory slow each other down, whoever uses them: so all are busy here too.
    """
    files = sorted(one.resolve() for one in folder.glob("*.*") if one.suffix != ".csv")
    half = len(files) // THREADS
    parts = [labelled(home / f"part{at}", files[at * half :], half) for at in range(THREADS)]
    running = [
        subprocess.Popen(
            [sys.executable, __file__, "--own-of", str(part)], stdout=subprocess.PIPE, text=True
        )
        for part in parts
    ]
    took = [float(one.communicate()[0].split()[-1]) for one in running]
    return sum(took) / THREADS * len(files) / (half * THREADS)


def own_of(folder: Path) -> float:
    """Seconds of the steps that a sweep over a folder computes, in one thread."""
    from simulator import sweep

    with own_time() as took:
        sweep(SUITE, data=folder, workers=1, out=folder.with_name(f"{folder.name}-run"))
    return sum(took) / 1e9


@contextmanager
def own_time() -> Iterator[list[int]]:
    """Collect for every sample the nanoseconds of the steps that are really computed."""
    from simulator.pipeline.walk import Opened

    walk, took = Opened.walk, []

    def noted(*given):
        found = walk(*given)
        took.append(found.spent)
        return found

    Opened.walk = noted
    try:
        yield took
    finally:
        Opened.walk = walk


def seconds(work) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def session(threads: int):
    import onnxruntime

    from simulator.data import example

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    model = str(example.model_card().parent / "model.onnx")
    return onnxruntime.InferenceSession(model, options, ["CPUExecutionProvider"])


def inference(count: int) -> float:
    """Seconds of *count* bare inferences, THREADS at a time."""
    runner = session(1)
    tensor = np.random.default_rng(0).normal(size=(1, 3, 224, 224)).astype(np.float32)
    start = time.perf_counter()
    with ThreadPoolExecutor(THREADS) as pool:
        for _ in pool.map(lambda _: runner.run(None, {"input": tensor}), range(count)):
            pass
    return time.perf_counter() - start


def by_hand(folder: Path, options: list[list[str]], pooled: bool) -> float:
    """Seconds of a script without the package: for every stack, for every image.

    A plain loop gives ONNX Runtime all threads; a pooled one runs as many images at once.
    """
    import av
    import cv2
    from PIL import Image

    cv2.setNumThreads(1)
    runner = session(1 if pooled else THREADS)

    def decode(data, how):
        if "ffmpeg" in how:
            frame = av.CodecContext.create("mjpeg", "r").decode(av.Packet(data))[0]
            return frame.reformat(format="rgb24", interpolation="BICUBIC").to_ndarray()
        if "opencv" in how:
            return cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR_RGB)
        return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))

    def resize(rgb, size, how):
        library, _, kernel = how.partition("-")
        if library == "opencv":
            kernel = {"bilinear": "linear", "lanczos": "lanczos4"}.get(kernel, kernel)
            return cv2.resize(rgb, size, interpolation=getattr(cv2, f"INTER_{kernel.upper()}"))
        kernel = kernel.replace("cubic", "bicubic") if kernel == "cubic" else kernel
        return np.asarray(Image.fromarray(rgb).resize(size, Image.Resampling[kernel.upper()]))

    def predict(job):
        file, changes = job
        values = dict(c.replace('"', "").split("=", 1) for c in changes)
        rgb = decode(file.read_bytes(), " ".join(v for k, v in values.items() if "decode" in k))
        height, width = rgb.shape[:2]
        other = int(256 * max(height, width) / min(height, width))
        small = resize(rgb, (256, other) if width <= height else (other, 256), values["resize"])
        top, left = (round((n - 224) / 2) for n in small.shape[:2])
        crop = small[top : top + 224, left : left + 224].astype(np.float32)
        tensor = np.ascontiguousarray(((crop - 127) / 128).transpose(2, 0, 1)[None])
        return runner.run(None, {"input": tensor})[0].argmax()

    files = sorted(folder.glob("*.[jJ]*"))
    trained = ['resize="pil-bicubic"']
    start = time.perf_counter()
    with ThreadPoolExecutor(THREADS) as pool:
        for changes in [trained, *options]:
            jobs = [(file, changes) for file in files]
            for _ in pool.map(predict, jobs) if pooled else map(predict, jobs):
                pass
    return time.perf_counter() - start


def growth(folder: Path, files: list[Path], home: Path, quick: bool) -> list[tuple[str, ...]]:
    """Seconds and peak memory of more stacks, and of more images, each in its own process."""
    few = bench.linked(home / "few", files, 20 if quick else 100)
    many = bench.linked(home / "many", files, 40 if quick else 1000)
    cases = [(stacks, few) for stacks in ((5, 25) if quick else (5, 25, 100))] + [(5, many)]
    rows = []
    for stacks, images in cases:
        command = [sys.executable, __file__, "--grow", str(stacks), str(images)]
        printed = subprocess.check_output(command, text=True).split()
        seconds, steps, peak = float(printed[0]), int(printed[1]), int(printed[2])
        count = len(list(images.iterdir()))
        per_step = seconds / (steps * count) * 1000
        note = f"{seconds:.1f} s, {steps} unique steps an image, peak {peak / 1024:.0f} MiB"
        what = f"{stacks} stacks x {count} images: ms per unique step"
        rows.append(bench.row(what, per_step, 0, note))
    return rows


def grow(count: int, folder: Path) -> tuple[float, int, int]:
    """Run *count* stacks of decoders x resizers; seconds of the loop, unique steps, peak KiB."""
    from simulator.experiments.session import Session, Variant
    from simulator.profile.implementations import choose
    from simulator.profile.load import load

    kernels = [(library, kernel) for library, names in KERNELS.items() for kernel in names]
    chosen = []
    for (library, kernel), decoder in itertools.islice(itertools.product(kernels, DECODERS), count):
        extra = {"dali": ", idct: islow", "turbojpeg": ", idct: islow, chroma_upsampling: fancy",
                 "ffmpeg": ", swscale_flags: [bicubic]"}.get(decoder, "")  # fmt: skip
        smooth = kernel != "nearest" and library in ("dali", "pytorch")
        antialias = ", antialias: false" if smooth else ""
        profile = load("pillow_fp32", [
            f"decode={{backend: {decoder}{extra}}}",
            f"resize={{backend: {library}, interpolation: {kernel}{antialias}}}",
        ])  # fmt: skip
        own = profile, choose(profile)
        chosen.append(Variant(f"{decoder}-{library}-{kernel}", own, {"train": own, "deploy": own}))
    with Session.open(None, folder, None, 0, THREADS, None, None) as session:
        merged = session.plan(session.stacks(chosen))
        start = time.perf_counter()
        session.run(merged, lambda _: None)
        seconds = time.perf_counter() - start
    return seconds, len(merged.nodes), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    main()
