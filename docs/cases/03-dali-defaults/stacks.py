"""An evaluation written with OpenCV, and the same with DALI's operators left to their defaults."""

import cv2
import numpy as np
from nvidia.dali import Pipeline, fn, types

MEAN = np.array([123.675, 116.28, 103.53], np.float32)
STD = np.array([58.395, 57.12, 57.375], np.float32)


def train(path):
    """Short side to 256, linear; the crop starts at ceil((side - 224) / 2)."""
    image = cv2.cvtColor(cv2.imread(path), cv2.COLOR_BGR2RGB)
    short = min(image.shape[:2])
    height, width = (int(256 * side / short + 0.5) for side in image.shape[:2])
    image = cv2.resize(image, (width, height), interpolation=cv2.INTER_LINEAR)
    top, left = (-((224 - side) // 2) for side in image.shape[:2])
    image = image[top : top + 224, left : left + 224].astype(np.float32)
    return ((image - MEAN) * (1 / STD)).transpose(2, 0, 1)


def deploy(path):
    """fn.resize and fn.crop_mirror_normalize with what they take for what is not said."""
    pipeline = Pipeline(batch_size=1, num_threads=1, device_id=None)
    with pipeline:
        file, _ = fn.readers.file(files=[path])
        image = fn.decoders.image(file, output_type=types.RGB)
        image = fn.resize(image, resize_shorter=256, interp_type=types.INTERP_LINEAR)
        numbers = {"mean": MEAN.tolist(), "std": STD.tolist()}
        tensor = fn.crop_mirror_normalize(image, crop=(224, 224), output_layout="CHW", **numbers)
        pipeline.set_outputs(tensor)
    pipeline.build()
    return np.array(pipeline.run()[0].at(0))
