"""Mix training's transform: the stacks' own pixels, seeded draws, workers, refusals."""

import importlib.util
import json
import pickle
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
import tiny
import yaml

from simulator.contract.recipe import Boundary
from simulator.data.folder import load_folder
from simulator.data.labels import load_labels
from simulator.errors import SampleError, UserError
from simulator.experiments.common import chosen
from simulator.experiments.session import Session, Variant
from simulator.mitigation import MixedDataset, MixedPreprocessing
from simulator.profile.suite import load_suite, overrides

SUITE = "sysnoise-mix"
NV12 = {
    "color": {
        "format": "nv12", "source": "encode", "odd_size": "keep",
        "encode": {"backend": "sysnoise", "chroma_downsampling": "average"},
        "convert": {"backend": "sysnoise", "chroma_upsampling": "nearest"},
    }
}  # fmt: skip


@pytest.fixture
def files(data):
    return sorted(data.rglob("*.jpg"))


@pytest.fixture
def mixed(card):
    return MixedPreprocessing(SUITE, model=card)


def suite_of(tmp_path, columns):
    path = tmp_path / "mine.yaml"
    spec = {"schema": 1, "name": "mine", "train": "pillow_bilinear_fp32", "summary": "one"}
    path.write_text(yaml.safe_dump({**spec, "columns": columns}))
    return str(path)


def seen(card, data, changes):
    """What the network of a session gets, by the name of the image."""
    found = {}
    with Session.open(card, data, None, 0, 1, None, None) as session:
        stack_of = chosen("pillow_bilinear_fp32", changes)
        stack = session.stack(Variant("one", stack_of, {"train": stack_of, "deploy": stack_of}))
        opened = session.executor.open(session.plan([stack]))
        for item in session.dataset.items:

            def keep(recipe, value, name=item.name):
                if recipe.gives is Boundary.INPUT:
                    found[name] = value

            opened.walk(session.executor.context(item), keep)
    return found


@pytest.mark.parametrize("column", ["decode", "resize", "color"])
def test_every_option_gives_the_bits_that_its_stack_gives_in_a_session(
    card, data, tmp_path, column
):
    """The stack of the session is made of the suite's own words, and runs to its answer."""
    columns = load_suite(SUITE).spec.columns | {"color": {"nv12": NV12}}
    suite = suite_of(tmp_path, columns)
    for option, values in columns[column].items():
        fixed = MixedPreprocessing(suite, model=card, columns=(), fixed={column: option})
        for name, tensor in seen(card, data, overrides(values)).items():
            made = fixed(data / name)
            assert made.shape == (3, 32, 32)
            assert made.dtype == np.float32
            assert made.tobytes() == tensor.tobytes(), (option, name)


def test_a_draw_is_the_stack_that_it_names(card, files, mixed):
    for draw in range(6):
        names = mixed.drawn(files[0].read_bytes(), draw)
        fixed = MixedPreprocessing(SUITE, model=card, columns=(), fixed=names)
        assert mixed(files[0], draw).tobytes() == fixed(files[0]).tobytes()


def test_draws_are_the_same_in_any_order_and_place(card, files, mixed, tmp_path):
    first = [[mixed(file, draw) for file in files] for draw in range(3)]
    again = MixedPreprocessing(SUITE, model=card)
    moved = tmp_path / "elsewhere.jpg"
    for draw in (2, 0, 1):
        for at in reversed(range(len(files))):
            moved.write_bytes(files[at].read_bytes())
            assert again(moved, draw).tobytes() == first[draw][at].tobytes()
            assert again(files[at].read_bytes(), draw).tobytes() == first[draw][at].tobytes()


def test_a_batch_has_one_draw(mixed):
    """Algorithm 1 draws before each step: 40 batches of 2 epochs, of two images each."""
    batches = [(draw, batch) for draw in range(2) for batch in range(40)]
    drawn = [[mixed.drawn(one, *key) for one in (b"one", b"two")] for key in batches]

    assert all(one == two for one, two in drawn)
    assert len({tuple(one.values()) for one, _ in drawn}) > 9  # of 18 stacks
    assert drawn[:40] != drawn[40:]


def test_draws_differ_by_epoch_image_and_seed_and_are_uniform(card, mixed):
    """18 stacks and 3,600 draws: 200 each, and a standard deviation of 13.7."""
    images = [bytes([number]) for number in range(60)]
    drawn = Counter(tuple(mixed.drawn(one, n).values()) for one in images for n in range(60))
    other = MixedPreprocessing(SUITE, model=card, seed=1)

    assert len(drawn) == 18
    assert all(130 < count < 270 for count in drawn.values())
    assert mixed.drawn(images[0], 3) == mixed.drawn(images[0], 3)
    assert [mixed.drawn(images[0], n) for n in range(20)] != [
        other.drawn(images[0], n) for n in range(20)
    ]


def test_the_training_stacks_own_option_is_one_of_them(card, tmp_path):
    suite = suite_of(
        tmp_path, {"resize": {"near": {"resize": "pil-nearest"}, "own": {"resize": "pil-bilinear"}},
                   "order": {"bgr": {"color.order": "bgr"}}},
    )  # fmt: skip
    mixed = MixedPreprocessing(suite, model=card, columns=("resize", "order"))

    assert mixed.options == {"resize": ("near", "own"), "order": ("train", "bgr")}


WORKER = """
import pickle, sys
mixed = pickle.load(open(sys.argv[1], "rb"))
sys.stdout.buffer.write(b"".join(mixed(path, 4).tobytes() for path in sys.argv[2:]))
assert "torch" not in sys.modules
"""


def test_another_process_draws_the_same_without_pytorch(mixed, files, tmp_path):
    here = b"".join(mixed(file, 4).tobytes() for file in files)
    (tmp_path / "mixed.pickle").write_bytes(pickle.dumps(mixed))
    words = [sys.executable, "-c", WORKER, str(tmp_path / "mixed.pickle"), *map(str, files)]

    assert subprocess.run(words, check=True, capture_output=True).stdout == here


LOADER = """
import json, sys
from pathlib import Path
from torch.utils.data import DataLoader
from simulator.data.folder import load_folder
from simulator.data.labels import load_labels
from simulator.mitigation import MixedDataset, MixedPreprocessing
if __name__ == "__main__":
    card, data, start = sys.argv[1:]
    labels = load_labels(Path(card).parent / "labels.txt")
    mixed = MixedDataset(load_folder(Path(data), labels), MixedPreprocessing("sysnoise-mix", model=card))
    mixed[0]
    sums = []
    for mixed.epoch in range(2):
        for inputs, truth in DataLoader(mixed, 2, num_workers=2, multiprocessing_context=start):
            sums.append([inputs.double().sum().item(), truth.tolist()])
    print(json.dumps(sums))
"""  # noqa: E501


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch")
@pytest.mark.parametrize("start", ["fork", pytest.param("spawn", marks=pytest.mark.prove)])
def test_a_data_loader_with_workers_gets_what_this_process_makes(card, data, tmp_path, start):
    labels = load_labels(card.parent / "labels.txt")
    here = MixedDataset(load_folder(data, labels), MixedPreprocessing(SUITE, model=card))
    wanted = []
    for here.epoch in range(2):
        for at in range(0, len(here), 2):
            pairs = [here[at], here[at + 1]]
            total = sum(float(value.astype(np.float64).sum()) for value, _ in pairs)
            wanted.append([pytest.approx(total), [truth for _, truth in pairs]])
    (tmp_path / "loading.py").write_text(LOADER)
    words = [sys.executable, str(tmp_path / "loading.py"), str(card), str(data), start]
    ran = subprocess.run(words, check=True, capture_output=True, text=True)

    assert json.loads(ran.stdout) == wanted


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"columns": ("resise",)}, "unknown column 'resise'; did you mean 'resize'"),
        ({"fixed": {"color": "x"}}, "unknown column 'color'"),
        ({"fixed": {"resize": "x"}, "columns": ()}, "resize: unknown option 'x'"),
        ({"fixed": {"resize": "pil-nearest"}}, "resize is drawn and fixed at once"),
        ({"train": "nothing"}, "nothing"),
        (
            {"suite": "sysnoise", "columns": ("ceil_mode",)},
            "ceil_mode changes no pixels, so it cannot be mixed",
        ),
    ],
)
def test_what_is_not_in_the_suite_is_refused(card, given, message):
    with pytest.raises(UserError, match=message):
        MixedPreprocessing(**{"suite": SUITE, "model": card} | given)


def test_a_model_of_sounds_is_refused():
    from simulator.model.card import Card

    class Sounds(Card):
        def __init__(self):
            from simulator.modalities.audio.modality import AUDIO

            self.path, self.modality = "card.yaml", AUDIO

    with pytest.raises(UserError, match="only images are mixed, this takes sounds"):
        MixedPreprocessing(SUITE, model=Sounds())


def test_a_picture_that_a_drawn_stack_cannot_read_is_a_sample_error(card):
    fixed = MixedPreprocessing(SUITE, model=card, columns=(), fixed={"decode": "ffmpeg"})
    whole = tiny.encoded(tiny.picture((20, 30, 40)))
    with pytest.raises(SampleError, match="no image of a known format"):
        fixed(b"no image at all")
    with pytest.raises(SampleError):
        fixed(whole[:-400] + b"\xff\xd9"[:1])
