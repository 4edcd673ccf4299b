"""Answers about a turned image are brought back to the stored one, as Pillow turned it."""

import numpy as np
import pytest
from PIL import Image, ImageOps

from simulator.modalities.image.orientation import stored, stored_boxes


def turned(pixels, orientation):
    """What Pillow makes of an image with this EXIF orientation."""
    image = Image.fromarray(pixels)
    image.getexif()[0x0112] = orientation
    return np.array(ImageOps.exif_transpose(image))


@pytest.mark.parametrize("orientation", range(1, 9))
def test_pixels_come_back(orientation):
    pixels = np.arange(5 * 7, dtype=np.uint8).reshape(5, 7)

    assert (stored(turned(pixels, orientation), orientation) == pixels).all()


@pytest.mark.parametrize("orientation", range(1, 9))
def test_boxes_come_back_with_their_pixels(orientation):
    """The marked pixels, columns 1 and 2 of rows 3 and 4, are the box from (1, 3) to (3, 5)."""
    pixels = np.zeros((6, 9), np.uint8)
    pixels[3:5, 1:3] = 1
    seen = turned(pixels, orientation)
    rows, columns = np.nonzero(seen)
    box = np.array([[columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]], np.float64)

    assert stored_boxes(box, orientation, seen.shape).tolist() == [[1, 3, 3, 5]]
