"""Profiles that claim a library's own pixels, against ten lines of its own high-level call.

Each function takes a file and returns the tensor (3, 224, 224) that a user of the library gets. It
shares no code with the package. torchvision cannot be installed here: its steps are written with
torch and Pillow, line by line as in its source.
"""

from __future__ import annotations

import cv2
import images
import numpy as np
import openvino as ov
import pytest
import simplejpeg
import tiny
import torch
from av import VideoFrame, filter
from av import open as av_open
from nvidia.dali import Pipeline, fn, types
from PIL import Image
from shared_data import shared

from backends.tensorflow_library import tensorflow
from simulator.contract import inspect
from simulator.modalities.image.front_end import front_end
from simulator.modalities.image.sections import image_spec
from simulator.model.card import Card
from simulator.pipeline.runtimes import RuntimePool
from simulator.profile.implementations import choose
from simulator.profile.load import load
from simulator.profile.lookup import builtin_names
from simulator.profile.modality import IMAGE

SIZE = 224
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
MEAN255, STD255 = [123.675, 116.28, 103.53], [58.395, 57.12, 57.375]
CARD = {
    "input": {"height": SIZE, "width": SIZE, "layout": "NCHW", "order": "rgb", "top": 1,
              "mean": MEAN, "std": STD},
    "geometry": {"kind": "short_side_crop", "short_side": 256},
}  # fmt: skip
VGG = {
    **CARD,
    "input": {**CARD["input"], "top": 255, "mean": [123.68, 116.78, 103.94], "std": [1.0] * 3},
}


def to_tensor(image):
    """torchvision.transforms.ToTensor of a PIL image, or of a tensor of bytes, and Normalize."""
    if not isinstance(image, torch.Tensor):
        image = torch.from_numpy(np.array(image)).permute(2, 0, 1).contiguous()
    mean, std = torch.tensor(MEAN), torch.tensor(STD)
    return image.float().div(255).sub_(mean[:, None, None]).div_(std[:, None, None]).numpy()


def long_side(width, height):
    """torchvision.transforms.functional._compute_resized_output_size(size=256): width, height."""
    short, long = (width, height) if width <= height else (height, width)
    short, long = 256, int(256 * long / short)
    return (short, long) if width <= height else (long, short)


def center(width, height):
    """torchvision.transforms.functional.center_crop: left, top."""
    return round((width - SIZE) / 2.0), round((height - SIZE) / 2.0)


def with_pillow(kernel):
    def transform(path):
        image = Image.open(path).convert("RGB")
        image = image.resize(long_side(*image.size), kernel)
        left, top = center(*image.size)
        return to_tensor(image.crop((left, top, left + SIZE, top + SIZE)))

    return transform


def with_tensors(mode, antialias, as_float):
    """torchvision's Resize of a tensor: transforms casts to float32, v2 keeps bytes with AVX2."""

    def transform(path):
        image = torch.from_numpy(np.array(Image.open(path).convert("RGB"))).permute(2, 0, 1)
        width, height = long_side(image.shape[2], image.shape[1])
        image = image.contiguous()[None]
        image = torch.nn.functional.interpolate(
            image.float() if as_float else image, (height, width), mode=mode, align_corners=False,
            antialias=antialias,
        )  # fmt: skip
        image = (image.round().to(torch.uint8) if as_float else image)[0]
        left, top = center(width, height)
        return to_tensor(image[:, top : top + SIZE, left : left + SIZE])

    return transform


def with_dali(path):
    pipeline = Pipeline(batch_size=1, num_threads=1, device_id=None)
    with pipeline:
        file, _ = fn.readers.file(files=[str(path)])
        image = fn.decoders.image(file, output_type=types.RGB)
        image = fn.resize(image, resize_shorter=256, interp_type=types.INTERP_CUBIC)
        pipeline.set_outputs(fn.crop_mirror_normalize(
            image, crop=(SIZE, SIZE), dtype=types.FLOAT, output_layout="CHW", mean=MEAN255,
            std=STD255,
        ))  # fmt: skip
    pipeline.build()
    return np.array(pipeline.run()[0].at(0))


def with_opencv_dnn(path):
    params = cv2.dnn.Image2BlobParams(
        scalefactor=[1 / one for one in STD255], size=(SIZE, SIZE), mean=MEAN255, swapRB=True
    )
    return cv2.dnn.blobFromImageWithParams(cv2.imread(str(path)), params)[0]


def with_opencv(path):
    """cv2.resize, and the crop and the numbers of torchvision."""
    image = cv2.imread(str(path), cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION)
    image = cv2.resize(image, long_side(image.shape[1], image.shape[0]))
    left, top = center(image.shape[1], image.shape[0])
    image = cv2.cvtColor(image[top : top + SIZE, left : left + SIZE], cv2.COLOR_BGR2RGB)
    return to_tensor(image)


def with_mlperf(path):
    """mlcommons/inference, classification_and_detection/python/dataset.py: pre_process_vgg."""
    image = cv2.cvtColor(cv2.imread(str(path)), cv2.COLOR_BGR2RGB)
    height, width, _ = image.shape
    new = int(100.0 * SIZE / 87.5)
    size = (new, int(new * height / width)) if height > width else (int(new * width / height), new)
    image = cv2.resize(image, size, interpolation=cv2.INTER_AREA)
    left, top = (int((side - SIZE) / 2) for side in (image.shape[1], image.shape[0]))
    image = np.asarray(image[top : top + SIZE, left : left + SIZE], dtype="float32")
    image -= np.array([123.68, 116.78, 103.94], dtype=np.float32)
    return image.transpose([2, 0, 1])


def with_openvino(path):
    shape = ov.opset13.parameter([1, 3, SIZE, SIZE], ov.Type.f32)
    steps = ov.preprocess.PrePostProcessor(ov.Model([ov.opset13.result(shape)], [shape]))
    tensor, todo = steps.input().tensor(), steps.input().preprocess()
    tensor.set_element_type(ov.Type.u8).set_layout(ov.Layout("NHWC")).set_spatial_dynamic_shape()
    tensor.set_color_format(ov.preprocess.ColorFormat.BGR)
    todo.convert_color(ov.preprocess.ColorFormat.RGB).convert_element_type(ov.Type.f32)
    todo.resize(ov.preprocess.ResizeAlgorithm.RESIZE_LINEAR).mean(MEAN255).scale(STD255)
    steps.input().model().set_layout(ov.Layout("NCHW"))
    model = ov.compile_model(steps.build(), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    return model(cv2.imread(str(path))[None])[0][0]


def with_load_img(path):
    tensorflow.load()
    import keras

    image = keras.utils.load_img(path, target_size=(SIZE, SIZE))
    image = keras.utils.img_to_array(image)
    return keras.applications.imagenet_utils.preprocess_input(image, mode="torch").transpose(
        2, 0, 1
    )


def with_image_dataset(path):
    folder = path.parent / f"only-{path.stem}"
    folder.mkdir(exist_ok=True)
    (folder / path.name).write_bytes(path.read_bytes())
    tensorflow.load()
    import keras

    data = keras.utils.image_dataset_from_directory(
        folder, labels=None, image_size=(SIZE, SIZE), batch_size=1, shuffle=False, verbose=False
    )
    image = keras.applications.imagenet_utils.preprocess_input(next(iter(data)), mode="torch")
    return np.array(image)[0].transpose(2, 0, 1)


def with_ffmpeg(path):
    """``ffmpeg -i FILE -vf format=rgb24``: libavfilter inserts its scaler with its own flags."""
    graph = filter.Graph()
    with av_open(str(path)) as file:
        frame: VideoFrame = next(file.decode(video=0))
        graph.link_nodes(
            graph.add_buffer(template=file.streams.video[0]),
            graph.add("format", "rgb24"),
            graph.add("buffersink"),
        ).configure()
    graph.push(frame)
    image = Image.fromarray(graph.pull().to_ndarray())
    image = image.resize(long_side(*image.size), Image.Resampling.BICUBIC)
    left, top = center(*image.size)
    return to_tensor(image.crop((left, top, left + SIZE, top + SIZE)))


def with_pycoral(path):
    return np.asarray(
        Image.open(path).convert("RGB").resize((SIZE, SIZE), Image.Resampling.LANCZOS)
    )


def with_turbojpeg(path):
    return simplejpeg.decode_jpeg(path.read_bytes())


TENSORS = {
    "pillow_fp32": with_pillow(Image.Resampling.BICUBIC),
    "pillow_bilinear_fp32": with_pillow(Image.Resampling.BILINEAR),
    "timm_fp32": with_pillow(Image.Resampling.BICUBIC),
    "pytorch_fp32": with_tensors("bicubic", antialias=True, as_float=False),
    "torchvision_tensor_fp32": with_tensors("bilinear", antialias=True, as_float=True),
    "torchvision_old_tensor_fp32": with_tensors("bilinear", antialias=False, as_float=True),
    "dali_fp32": with_dali,
    "opencv_fp32": with_opencv,
    "opencv_dnn_fp32": with_opencv_dnn,
    "mlperf_resnet_fp32": with_mlperf,
    "openvino_ppp_fp32": with_openvino,
    "keras_load_img_fp32": with_load_img,
    "keras_dataset_fp32": with_image_dataset,
    "ffmpeg_fp32": with_ffmpeg,
}
BYTES = {
    "coral_edgetpu_int8": ("geometry", with_pycoral),
    "rknn_model_zoo_int8": ("decode", with_turbojpeg),
}
"""Profiles of which only pixels are the library's own: the stage, and what gives them."""


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """JPEGs and a PNG of every parity, larger and smaller than the crop; two that EXIF turns."""
    folder = tmp_path_factory.mktemp("files")
    made = {
        "odd.jpg": images.jpeg(images.picture(301, 453)),
        "tall.png": images.png(images.picture(517, 300)),
        "small.jpg": images.jpeg(images.picture(97, 131)),
        "turned.jpg": images.rotated(images.picture(333, 412), 6),
        "mirrored.jpg": images.rotated(images.picture(260, 401), 2),
    }
    for at, path in enumerate(sorted(shared("imagenet").rglob("*.[jJ][pP]*"))[::90]):
        made[f"photo{at}.jpg"] = path.read_bytes()
    for name, data in made.items():
        (folder / name).write_bytes(data)
    return [folder / name for name in made]


@pytest.fixture(scope="module")
def card(tmp_path_factory):
    return lambda fields: (
        Card(tiny.card(tmp_path_factory.mktemp("card"), tiny.classifier(SIZE), **fields)).spec
    )


def ours(name, path, card, until="normalize"):
    """What a profile makes of a file, after a stage."""
    profile = load(name)
    source = inspect(path.name, path.read_bytes())
    value = source
    for recipe in front_end(profile, choose(profile), card):
        value = recipe.open(RuntimePool())(value, source)
        if recipe.stage == until and until == "decode":
            return value.rgb
        if recipe.stage == until == "geometry":
            return value
    return value[0]


@pytest.mark.parametrize("name", TENSORS)
def test_the_tensor_is_that_of_the_librarys_own_call(name, files, card):
    spec = card(VGG if name == "mlperf_resnet_fp32" else CARD)
    wrong = {}
    for path in files:
        found, wanted = ours(name, path, spec), TENSORS[name](path)
        assert found.shape == wanted.shape == (3, SIZE, SIZE)
        if not np.array_equal(found, wanted):
            wrong[path.name] = np.abs(found - wanted).max()

    assert not wrong


@pytest.mark.parametrize("name", BYTES)
def test_the_pixels_are_those_of_the_librarys_own_call(name, files, card):
    stage, call = BYTES[name]
    for path in files:
        if path.suffix == ".jpg" or stage != "decode":
            np.testing.assert_array_equal(ours(name, path, card(CARD), stage), call(path))


def test_every_native_claim_is_held_here():
    """A section that is claimed as native is that of a profile above."""
    held = {
        (section, repr(getattr(image_spec(load(name)), section)))
        for name in (*TENSORS, *BYTES)
        for section in ("decode", "resize", "geometry")
    }
    for name in builtin_names():
        profile = load(name)
        if profile.spec.modality == IMAGE:
            for section, claim in profile.spec.evidence.items():
                if section in ("decode", "resize", "geometry") and claim.kind == "native":
                    assert (section, repr(getattr(profile.spec, section))) in held, name
