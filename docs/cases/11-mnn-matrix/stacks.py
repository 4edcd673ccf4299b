"""cv2.resize, and MNN's ImageProcess with a matrix of (w - 1) / (in_w - 1)."""

import cv2
import MNN
import numpy as np

SIZE = 224
MEAN, STD = (123.675, 116.28, 103.53), (58.395, 57.12, 57.375)


def train(path):
    """OpenCV's bilinear."""
    image = cv2.cvtColor(cv2.imread(path), cv2.COLOR_BGR2RGB)
    image = cv2.resize(image, (SIZE, SIZE)).astype(np.float32)
    return ((image - np.float32(MEAN)) * (1 / np.float32(STD))).transpose(2, 0, 1)


def deploy(path):
    """MNN's bilinear; the matrix lays the corner pixels of both images on each other."""
    image = cv2.imread(path)
    rows, columns = image.shape[:2]
    process = MNN.CVImageProcess({
        "sourceFormat": MNN.CV_ImageFormat_BGR, "destFormat": MNN.CV_ImageFormat_RGB,
        "mean": (*MEAN, 0.0), "normal": (*(1 / one for one in STD), 1.0),
        "filterType": MNN.CV_Filter_BILINEAL,
    })  # fmt: skip
    matrix = MNN.CVMatrix()
    matrix.setScale((columns - 1) / (SIZE - 1), (rows - 1) / (SIZE - 1))
    process.setMatrix(matrix)
    shape = (1, 3, SIZE, SIZE)
    zeros = np.zeros(shape, np.float32)
    tensor = MNN.Tensor(shape, MNN.Halide_Type_Float, zeros, MNN.Tensor_DimensionType_Caffe)
    process.convert(image, columns, rows, 0, tensor)
    return np.array(tensor.getData(), np.float32).reshape(shape)
