"""Probe images are what they say they are, and are written with a page of instructions."""

import re

import pytest
from PIL import Image

from simulator import cli
from simulator.identify import probes
from simulator.modalities.image.geometry import Geometry


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("probes") / "new"
    assert cli.main(["recordings", "probes", str(folder)]) == 0
    return folder


def test_the_page_names_every_image(written):
    page = (written / "README.md").read_text()
    images = {path.name for path in written.iterdir() if path.suffix in (".jpg", ".png")}

    assert set(re.findall(r"^\| (\S+\.\w+) \|", page, re.MULTILINE)) == images
    assert len(images) > 15
    assert 'MODEL = "' in (written / "capture.py").read_text()
    assert "{" not in page


@pytest.mark.parametrize(
    ("name", "sampling"),
    [
        ("edges_444", (1, 1)), ("edges_422", (2, 1)), ("edges_440", (1, 2)),
        ("edges_420", (2, 2)), ("edges_even_420", (2, 2)),
    ],
)  # fmt: skip
def test_chroma_is_sampled_as_the_name_says(written, name, sampling):
    """Pillow's `layer` has (horizontal, vertical) factors of each component."""
    with Image.open(written / f"{name}.jpg") as image:
        factors = [layer[1:3] for layer in image.layer]

    assert factors == [sampling, (1, 1), (1, 1)]


def test_modes_sizes_and_orientations(written):
    def of(name):
        with Image.open(written / name) as image:
            image.load()
            return image.mode, image.size, image.getexif().get(274), image.info.get("progressive")

    assert of("gray.jpg")[0] == "L"
    assert of("exif_6.jpg")[2] == 6
    assert of("exif_3.jpg")[2] == 3
    assert of("progressive.jpg")[3]
    assert of("network_size.jpg")[1] == (224, 224)
    assert all(side % 2 for side in of("edges_420.jpg")[1])
    assert not any(side % 2 for side in of("edges_even_420.jpg")[1])


def test_a_folder_that_is_used(written, capsys):
    assert cli.main(["recordings", "probes", str(written)]) == 2
    assert "is not empty; choose a new folder" in capsys.readouterr().err


def test_sizes_tell_roundings_apart():
    """Worked by hand: 224 of a short side of 256.

    190 x 373: 256 * 373 / 190 = 502.57: torchvision and floor cut to 502, DALI rounds to 503.
    torchvision's crop starts at (502 - 224) / 2 = 139, and so does floor's; they differ where the
    rest is odd and half of it rounds up to even, as 317 of 190: 427, (427 - 224) / 2 = 101.5,
    which becomes 102 (even) or 101 (down).
    """
    each = [
        Geometry("short_side_crop", 224, 224, rounding, 256)
        for rounding in ("torchvision", "dali", "floor")
    ]

    chosen = probes.sizes(each)

    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert any(
            probes.placement(each[one], *size) != probes.placement(each[other], *size)
            for size in chosen
        )
    places = [probes.placement(geometry, 190, 317)[:4] for geometry in (each[0], each[2])]
    assert [place[1:] for place in places] == [((256, 427), -16, -102), ((256, 427), -16, -101)]
    assert [probes.placement(g, 190, 373)[1] for g in each] == [(256, 502), (256, 503), (256, 502)]


def test_sizes_of_geometries_that_are_the_same_everywhere():
    alike = [Geometry("squash", 32, 32, rounding) for rounding in ("dali", "floor")]

    assert probes.sizes(alike) == []


def test_every_probe_can_be_opened(written):
    for path in written.glob("*.[jp]*g"):
        with Image.open(path) as image:
            image.load()
