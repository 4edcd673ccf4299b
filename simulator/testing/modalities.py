"""The checks that every modality has to pass, and how they are run."""

from __future__ import annotations

import json
import pickle
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from simulator.contract.recipe import Boundary, Chain, Recipe
from simulator.contract.stage import stages, timed_steps
from simulator.errors import SampleError, one_line
from simulator.modalities.card import CardInput, CardSpec
from simulator.modalities.modality import MODALITIES, Modality
from simulator.model.card import Card
from simulator.model.onnxfile import check as check_model
from simulator.profile.implementations import choose
from simulator.profile.load import load
from simulator.profile.modality import schema_of
from simulator.profile.schema import ProfileSpec
from simulator.testing.places import Way, content, fits, way
from simulator.testing.subject import Failed, expect, refused
from simulator.testing.suite import Suite, Verdict

FOREIGN = b"These are words, and no sample of any kind.\n" * 9
TEXT = b"\xff\xfe\x00" * 99
NO_SUCH = "no_such_key"


@dataclass(frozen=True)
class Subject:
    """A modality, and where its specimen lies."""

    modality: Modality
    way: Way
    folder: Path


def it_says_what_it_is(subject: Subject) -> None:
    """Its name, unit, suffixes and the ``kind`` of its cards are words that people can write."""
    own = subject.modality
    expect(own.unit and own.unit == own.unit.strip(), f"a unit expected, got {own.unit!r}")
    for suffix in own.suffixes or ("",):
        plain = suffix.startswith(".") and suffix == suffix.lower()
        expect(plain, f"a suffix like .npy expected, got {suffix!r}")
    kind = subject.way.card.spec.input.kind
    expect(kind == own.name, f"input.kind: {own.name} expected, got {kind}")


def its_schemas_are_closed(subject: Subject) -> None:
    """Cards and profiles are ours with more fields; a key that nobody knows is refused."""
    own = subject.modality
    for schema, base in ((own.Spec, ProfileSpec), (own.Card, CardSpec)):
        told = f"{schema.__name__}: a subclass of {base.__name__} expected, got another class"
        expect(issubclass(schema, base), told)
    given = type(subject.way.card.spec.input)
    expect(issubclass(given, CardInput), f"{given.__name__}: a subclass of CardInput expected")
    _refused_with(subject.way.specimen.card, "input", Card)
    for section in filter(
        subject.way.profile.spec.model_fields_set.__contains__, _own_sections(own)
    ):
        override = f"{section}.{NO_SUCH}=1"
        refused(override, lambda own: choose(load(subject.way.specimen.profile, own)), [override])


def its_sections_are_in_the_stage_table(subject: Subject) -> None:
    """Each section of its profiles is a stage, with axes, and each of its stages a section."""
    own = subject.modality
    known = {spec.section[0]: spec for spec in stages(own.name) if spec.section}
    for section in _own_sections(own):
        expect(section in known, f"a stage with the section {section!r} expected, got none")
        axes = known[section].axis or known[section].fields_are_axes
        expect(axes, f"{known[section].name}: an axis expected, got none")
    fields = schema_of(own.name).model_fields
    for spec in stages(own.name):
        if spec.modality == own.name and spec.section:
            told = f"{spec.name}: a section {spec.section[0]!r} of its profiles expected, got none"
            expect(spec.section[0] in fields, told)


def its_specimen_fits(subject: Subject) -> None:
    """The card loads with its model, the profile is of this modality, the files are samples."""
    check_model(subject.way.card)
    found = subject.way.profile.spec.modality
    expect(
        found == subject.modality.name,
        f"a profile of {subject.modality.name} expected, got {found}",
    )
    files = subject.way.specimen.files
    expect(len(files) > 1, f"two samples expected, got {len(files)}")
    for file in files:
        named = file.suffix.lower() in subject.modality.suffixes
        expect(named, f"{file.name}: {' or '.join(subject.modality.suffixes)} expected")


def bad_files_are_refused(subject: Subject) -> None:
    """An empty, a cut, a foreign and a missing file are a ``SampleError`` in one line."""
    for file in subject.way.specimen.files:
        data = file.read_bytes()
        bad = {"empty": b"", "cut": data[: len(data) // 2], "words": FOREIGN, "noise": TEXT}
        for what, written in bad.items():
            path = subject.folder / f"{what}{file.suffix}"
            path.write_bytes(written)
            _sample_error(subject.modality, path, what)
    _sample_error(subject.modality, subject.folder / f"missing{file.suffix}", "missing")


def reading_is_repeatable(subject: Subject) -> None:
    """Read again, a sample is the same; different files give different samples."""
    one, other = subject.way.sources(), subject.way.sources()
    for before, after in zip(one, other, strict=True):
        same = content(before.source) == content(after.source)
        expect(same, f"{before.sample}: the same sample again expected, got another")
    apart = content(one[0].source) != content(one[1].source)
    expect(apart, "two different samples expected, got one twice")


def samples_have_sizes(subject: Subject) -> None:
    """``sizes`` gives whole numbers, ``bytes`` among them, under the same names for each sample."""
    names = []
    for file, context in zip(subject.way.specimen.files, subject.way.sources(), strict=True):
        found = subject.modality.sizes(context.source)
        whole = all(type(one) is int and one >= 0 for one in found.values())
        expect(whole, f"{file.name}: whole numbers expected, got {found}")
        size = file.stat().st_size
        expect(found.get("bytes") == size, f"{file.name}: bytes {size} expected, got {found}")
        names.append(set(found))
    expect(names[0] == names[1], f"the same names for each sample expected, got {names}")


def feeds_are_what_comes(subject: Subject) -> None:
    """The front end gives what ``feeds`` promises: names, types and shapes."""
    feeds = subject.modality.feeds(subject.way.card.spec)
    for context in subject.way.sources():
        problem = fits(subject.way.value(context, subject.way.chain), feeds)
        expect(problem is None, f"{context.sample}: {problem}")


def steps_are_known(subject: Subject) -> None:
    """Each step's time has its name in the stage table, in that order; the last gives the input."""
    recipes = subject.way.chain.recipes
    expect(
        recipes and recipes[-1].gives is Boundary.INPUT, "the network's input expected at the end"
    )
    steps = timed_steps(subject.modality.name)
    used = [recipe.stage for recipe in recipes if recipe.timed]
    strange = [stage for stage in used if stage not in steps]
    expect(not strange, f"one of {', '.join(steps)} expected, got {', '.join(strange)}")


def recipes_are_data(subject: Subject) -> None:
    """Each step prints in one line, hashes, and is JSON; pickled and read back it is the same."""
    for recipe in subject.way.chain.recipes:
        name = type(recipe).__name__
        identity = json.loads(json.dumps(recipe.identity()))
        back: Recipe = pickle.loads(pickle.dumps(recipe))
        expect(
            back == recipe and hash(back) == hash(recipe),
            f"{name}: equal after the journey expected",
        )
        expect(json.loads(json.dumps(back.identity())) == identity, f"{name}: {identity} expected")
        expect("\n" not in str(recipe), f"{name}: one line expected, got {str(recipe)!r}")


def travelled_steps_do_the_same(subject: Subject) -> None:
    """The front end, pickled and read back, gives the same bytes."""
    way, back = subject.way, Chain(pickle.loads(pickle.dumps(subject.way.chain.recipes)))
    for mine, theirs in zip(way.sources(), way.sources(), strict=True):
        same = content(way.value(mine, way.chain)) == content(way.value(theirs, back))
        expect(same, f"{mine.sample}: the same bytes expected, got others")


def the_front_end_repeats(subject: Subject) -> None:
    """The same sample gives the same bytes again, after another one, and in any thread."""

    def run(which: int) -> Any:
        return content(subject.way.value(subject.way.sources()[which], subject.way.chain))

    order = [0, 1, 0, 1]
    first = [run(which) for which in order]
    with ThreadPoolExecutor(4) as pool:
        for found in (first, list(pool.map(run, order))):
            expect([found[at] for at in order] == first, "the same bytes expected, got others")


def sources_are_left_alone(subject: Subject) -> None:
    """The front end writes nothing into a source: every stack begins with it."""
    for context in subject.way.sources():
        before = content(context.source)
        subject.way.value(context, subject.way.chain)
        expect(
            content(context.source) == before, f"{context.sample}: the source as it was expected"
        )


def placings_are_data(subject: Subject) -> None:
    """The placing is JSON, travels, and says the same of a sample each time."""
    placing = subject.modality.placing(subject.way.profile, subject.way.card.spec)
    json.dumps(placing.identity())
    back = pickle.loads(pickle.dumps(placing))
    told = f"{placing.identity()} expected, got {back.identity()}"
    expect(back.identity() == placing.identity(), told)
    for context in subject.way.sources():
        one, other = (content(each(context.source)) for each in (placing, back))
        expect(one == other, f"{context.sample}: the same place expected, got another")


def _own_sections(own: Modality) -> list[str]:
    return [name for name in own.Spec.model_fields if name not in ProfileSpec.model_fields]


def _refused_with(path: Path, section: str, read: Callable[[Path], Any]) -> None:
    """Expect that a document with one key more in a section is refused."""
    values = yaml.safe_load(path.read_text())
    values[section][NO_SUCH] = 1
    changed = path.with_name("changed.yaml")
    changed.write_text(yaml.safe_dump(values))
    refused(f"{section}.{NO_SUCH}", read, changed)


def _sample_error(modality: Modality, path: Path, what: str) -> None:
    try:
        modality.read(path.name, path)
    except SampleError as error:
        told = str(error)
        expect(told.strip() and "\n" not in told, f"{what} file: one line expected, got {told!r}")
        return
    except Exception as error:
        raise Failed(f"{what} file: a SampleError expected, got {one_line(error)}") from error
    raise Failed(f"{what} file: a SampleError expected, and it was read")


SUITE: Suite[Subject] = Suite.of(__name__)


def prove_modality(what: str | Modality) -> list[Verdict]:
    """Run every check on a modality, with its specimen.

    Args:
        what: the name of an installed modality, or one.

    Raises:
        UserError: there is no such modality, it brings no specimen, or that cannot be used.
        MissingLibrary: what its profile needs is not installed.
    """
    own = MODALITIES[what] if isinstance(what, str) else what
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "specimen"
        place.mkdir()
        found = Subject(own, way(own, place), Path(folder))
        return SUITE.prove(found)
