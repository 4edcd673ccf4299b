"""The checks of importers: ours pass them, and each broken one trips exactly one."""

import itertools
import json
from fractions import Fraction

import pytest
from importing import NAMES, Importer

from simulator import importers
from simulator.importers import IMPORTERS
from simulator.importers.values import three
from simulator.testing.importers import SUITE, prove_importer
from suites import failed, passes, trips

SMALL = {"small": 1, "mean": 127.5, "about": {"by": "us"}}


@pytest.mark.parametrize("name", NAMES)
def test_our_importers_pass_every_check(name, tmp_path):
    document, file = NAMES[name]
    path = Importer(tmp_path).file(document, file)
    assert importers.importer_of(importers.ConfigFile(path)) is IMPORTERS[name]
    passes(prove_importer(path), SUITE)


class Small(importers.Importer):
    """A correct one, of a mean."""

    name = about = tool = "small"
    base = "pillow_fp32"

    def recognises(self, file):
        return file.has_key("small")

    def read(self, file, draft, stack):
        keys = file.json_keys(draft)
        self.write(draft, keys.take("mean", three, [Fraction(0)] * 3), keys.origin("mean", "none"))
        keys.inner("about").rest({"by": "who"})
        self.end(keys)

    def write(self, draft, mean, origin):
        draft.write("normalize", "mean", [float(one) for one in mean], origin)

    def end(self, keys):
        keys.rest({"small": "the version"}, named=("about",))


class Greedy(Small):
    def recognises(self, file):
        return True


class Alike(Small):
    def stacks(self, file):
        return ["one", "one"]


class Impossible(Small):
    def write(self, draft, mean, origin):
        draft.write("normalize", "mean", "often", origin)


class Silent(Small):
    def write(self, draft, mean, origin):
        super().write(draft, mean, "")


class Counting(Small):
    numbers = itertools.count()

    def end(self, keys):
        super().end(keys)
        keys.draft.aside.append(f"{next(self.numbers)}")


class Deaf(Small):
    def end(self, keys):
        """Take what is known and pass over the rest."""


class Fragile(Small):
    def read(self, file, draft, stack):
        json.loads(file.whole())
        super().read(file, draft, stack)


FAULTS = {
    "its_own_files_are_recognised": [Greedy],
    "every_stack_becomes_a_profile": [Alike],
    "every_value_has_an_origin": [Silent],
    "the_same_twice": [Counting],
    "no_key_is_lost": [Deaf],
    "damage_is_refused": [Fragile],
}


@pytest.fixture
def small(tmp_path):
    file = tmp_path / "small.json"
    file.write_text(json.dumps(SMALL))
    return file


def test_a_correct_importer_passes(small):
    passes(prove_importer(small, Small()))


@pytest.mark.parametrize(
    ("check", "fault"), [(check, fault) for check, some in FAULTS.items() for fault in some]
)
def test_a_fault_trips_its_check_and_no_other(small, check, fault):
    trips(prove_importer(small, fault()), check)


def test_a_profile_that_cannot_run_is_no_profile(small):
    """Without one nothing else can be tried."""
    assert "got: " in failed(prove_importer(small, Impossible()))["every_stack_becomes_a_profile"]


def test_no_check_is_without_a_fault():
    assert set(FAULTS) == set(SUITE.names)


def test_a_file_of_two_importers_is_refused(small, monkeypatch):
    other = type("Other", (Small,), {"name": "other"})
    for one in (Small(), other()):
        monkeypatch.setitem(IMPORTERS.points, one.name, None)
        monkeypatch.setitem(IMPORTERS._loaded, one.name, one)

    with pytest.raises(importers.importer.ProfileError, match="may be small or other; say which"):
        importers.convert(small)
