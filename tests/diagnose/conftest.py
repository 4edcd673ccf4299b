"""What tests of front ends share."""

import pytest
from PIL import Image

from simulator.experiments.session import Session


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    """The built-in model, with two photographs of different sizes that are not square."""
    folder = tmp_path_factory.mktemp("photos")
    with Session.open(None, None, 2, 0, 1, None, None) as opened:
        for number, item in enumerate(opened.dataset.items):
            box = (0, 40, 500, 400) if number else (60, 0, 460, 512)
            Image.open(item.path).convert("RGB").crop(box).save(folder / f"{number}.png")
    with Session.open(None, folder, None, 0, 1, None, None) as opened:
        yield opened
