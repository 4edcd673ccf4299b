import datacards
import numpy as np
import pytest
from datacards import load
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from simulator.errors import DataError


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "classes.txt").write_text("cat\ndog\n")
    return datacards.images(tmp_path, "a.jpg", "sub/b.png", size=(40, 30))


def yolo(folder, **files):
    (folder / "labels" / "sub").mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / "labels" / f"{name}.txt").write_text(text)
    fields = {"task": "detection", "format": "yolo", "annotations": "labels"}
    return datacards.card(folder, classes="classes.txt", **fields)


def test_fractions_become_pixels_of_the_image(folder):
    """Center (0.5, 0.5), size (0.25, 0.5) of 40x30: left 15, top 7.5, 10 wide, 15 high."""
    card = yolo(folder, a="1 0.5 0.5 0.25 0.5\n\n0 0.25 0.5 0.5 1\n")
    a, b = load(card, "dog", "cat").items
    assert a.truth.xywh.tolist() == [[15, 7.5, 10, 15], [0, 0, 20, 30]]
    assert a.truth.classes.tolist() == [0, 1]
    assert a.truth.area.tolist() == [150, 600]
    assert (b.name, len(b.truth)) == ("sub/b.png", 0)
    assert load(card).items[0].truth.classes.tolist() == [1, 0]


def test_what_does_not_fit_together_is_counted(folder):
    """An image without a file has no objects; a file without an image is ignored."""
    card = yolo(folder, a="1 0.5 0.5 0 0.5\n0 1.5 0.5 0.1 0.1\n", stray="0 1 1 1 1\n")
    found = load(card, "cat", "dog")
    assert [len(item.truth) for item in found.items] == [0, 0]
    assert found.notes == (
        "ignored 1 annotation file without an image: stray.txt",
        "kept 1 image without an object: sub/b.png",
        "dropped 1 box of no or negative size: a.jpg",
        "dropped 1 box outside of the image: a.jpg",
    )


def test_an_image_that_cannot_be_read_is_left_for_the_run_to_count(folder):
    """Its size is unknown, and nobody will look at its boxes."""
    card = yolo(folder, a="1 0.5 0.5 0.25 0.5")
    (folder / "images" / "a.jpg").write_bytes(b"no image")
    assert [item.name for item in load(card, "cat", "dog").items] == ["a.jpg", "sub/b.png"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1 0.5 0.5 0.25", "4 fields; a box has 5"),
        ("1 0.1 0.1 0.2 0.1 0.2 0.2", "7 fields; a box has 5"),
        ("2 0.5 0.5 0.25 0.5", "class '2': an index 0 to 1"),
        ("-1 0.5 0.5 0.25 0.5", "class '-1'"),
        ("cat 0.5 0.5 0.25 0.5", "class 'cat'"),
        ("1 0.5 0.5 wide 0.5", "could not convert string to float: 'wide'"),
        ("1 0.5 nan 0.25 0.5", "fractions of the image's size"),
        ("1 20 15 10 15", "fractions of the image's size"),
    ],
)
def test_a_malformed_line_is_refused(folder, line, message):
    """With file and line."""
    with pytest.raises(DataError, match=f"a.txt:2: .*{message}"):
        load(yolo(folder, a=f"0 0.5 0.5 0.1 0.1\n{line}\n"), "cat", "dog")


def test_a_folder_without_objects_is_refused(folder):
    """It is the wrong folder, more likely than not."""
    with pytest.raises(DataError, match="labels: no file has an object"):
        load(yolo(folder, other="0 0.5 0.5 0.1 0.1"), "cat", "dog")


inside = st.integers(1, 10**6).map(lambda n: n / 10**6)


@settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.tuples(st.integers(0, 1), inside, inside, inside, inside), min_size=1))
def test_centers_and_sizes_come_back(folder, rows):
    """From the pixels back to the fractions, with the formula of the format's documentation."""
    text = "\n".join(" ".join(map(str, row)) for row in rows)
    truth = load(yolo(folder, a=text), "cat", "dog").items[0].truth
    x, y, w, h = truth.xywh.T
    back = np.stack([(x + w / 2) / 40, (y + h / 2) / 30, w / 40, h / 30], axis=1)
    assert np.allclose(back, [row[1:] for row in rows], rtol=0, atol=1e-12)
    assert truth.classes.tolist() == [row[0] for row in rows]
