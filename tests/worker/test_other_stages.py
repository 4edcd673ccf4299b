"""A stage of another package in a separate environment, and its proxy."""

import sys
from pathlib import Path

import numpy as np
import pytest
from installing import denoising

from simulator import registry
from simulator.contract import Options, SampleError, StageSpec, rgb_frame
from simulator.contract.stage import STAGES, stages
from simulator.errors import ModelError, Unsupported
from simulator.worker import environments, remote

ROWS = np.arange(8 * 6 * 3, dtype=np.uint8).reshape(8, 6, 3)


def frame(width):
    return rgb_frame(np.zeros((4, width, 3), np.uint8))


def build(strength=2):
    backend = registry.backend("acme_dsp")
    (offer,) = backend.offers
    return registry.make(backend, offer, {"strength": strength, "window": "rows"})


@pytest.fixture
def here(tmp_path, monkeypatch, cache):
    with denoising(monkeypatch, tmp_path / "site"):
        yield


@pytest.fixture
def there(here):
    """It runs in a process of its own, in this Python."""
    backend = registry.backend("acme_dsp")
    environments.install(backend, "acme_dsp:BACKEND", sys.executable, lambda line: None)


@pytest.fixture
def both(here):
    """The real one, and what plays it."""
    real = build()
    backend = registry.backend("acme_dsp")
    environments.install(backend, "acme_dsp:BACKEND", sys.executable, lambda line: None)
    return real, build()


def test_it_gives_the_bits_of_the_one_in_this_process(both):
    real, played = both

    assert type(played).__name__ == "RemoteRowFilter"
    assert isinstance(played, STAGES["denoise"].base)
    assert real.denoise(rgb_frame(ROWS)).rgb.tolist() == [
        *[[[*pixel] for pixel in row] for row in played.denoise(frame=rgb_frame(ROWS)).rgb.tolist()]
    ]


def test_it_says_of_itself_what_the_real_one_says(both):
    real, played = both

    assert played.taps == real.taps == 2
    assert played.strength == real.strength
    assert played.options == real.options
    assert played.weaker(played.strength).share == real.strength.share / 2


def test_its_base_class_checks_there(there):
    with pytest.raises(ValueError, match="a frame of uint8 planes expected") as caught:
        build().denoise(rgb_frame(np.zeros((4, 4, 3), np.int16)))

    assert isinstance(caught.value, ModelError)


def test_a_sample_that_it_refuses_or_dies_of_costs_that_sample(there):
    played = build()

    with pytest.raises(SampleError, match="eleven columns"):
        played.denoise(frame(11))
    with pytest.raises(SampleError, match="the acme_dsp worker was killed by SIGABRT"):
        played.denoise(frame(13))
    assert played.denoise(frame(4)).rgb.shape == (4, 4, 3)


def test_what_cannot_be_built_is_said_at_once(there):
    """The constructor sets ``strength``, so it is asked for before the first sample."""
    with pytest.raises(ModelError, match="unsupported operand"):
        build(strength="much")


@pytest.mark.parametrize("spec", [spec for spec in stages() if spec.base is None])
def test_what_has_no_base_class_is_not_played(spec):
    with pytest.raises(Unsupported, match=f"{spec.name} cannot run in a separate environment"):
        remote.make(None, spec, 0, object, {})


def test_every_call_of_a_sample_is_a_method_of_its_base():
    played = [spec for spec in stages() if spec.base is not None]

    assert len(played) == 21
    for spec in played:
        assert all(callable(getattr(spec.base, call)) for call in spec.calls), spec.name


class Closing:
    """A base class with a file to close."""

    kind = "none"

    def __init__(self, path: Path, options: Options) -> None:
        self.path = path

    def read(self) -> str:
        """Return what is in the file."""
        return self.path.read_text()

    def close(self) -> None:
        """Close it."""


class Log:
    """A worker that notes what it is asked."""

    def __init__(self):
        self.asked = []

    def call(self, name, *arguments, of=None, of_sample=False):
        self.asked.append((name, of_sample))
        return (1, 0) if name == "make" else "words"

    def forget(self, made):
        self.asked.append(("forget", made))


def test_what_is_closed_stays_closed(tmp_path):
    worker, spec = Log(), StageSpec("closing", "reads", base=Closing, calls=("read",))
    played = remote.make(worker, spec, 0, Closing, tmp_path, {})

    assert played.kind == "none"
    assert worker.asked == []
    assert played.read() == "words"
    played.close()
    with pytest.raises(ValueError, match="it was closed"):
        played.read()
    assert worker.asked == [("make", False), ("read", True), ("close", False)]
