"""The checks that every importer must pass, on a small file from its author."""

from __future__ import annotations

import json
import random
import re
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from simulator.errors import ProfileError
from simulator.importers import ConfigFile, Importer, convert, importer_of
from simulator.testing.subject import expect
from simulator.testing.suite import Suite, Verdict

FOREIGN = {
    "empty.txt": b"",
    "bytes.bin": bytes(range(256)),
    "words.txt": b"[nobody]\nnothing = 1\n",
    "nobody.json": b'{"nobody": 1}',
    "nobody.yaml": b"nobody: 1\n",
}
"""Files that belong to nobody."""
DAMAGES = 40
KEY = "conformance_knows_this_key_alone"


@dataclass(frozen=True)
class ImporterSubject:
    """An importer, and a file of its format."""

    importer: Importer
    file: Path
    scratch: Path

    def beside(self, raw: bytes) -> Path:
        """Write other bytes under the file's name, with the files that lie beside it."""
        folder = Path(tempfile.mkdtemp(dir=self.scratch))
        for path in self.file.parent.iterdir():
            if path.is_file():
                shutil.copyfile(path, folder / path.name)
        (folder / self.file.name).write_bytes(raw)
        return folder / self.file.name

    def made(self, path: Path) -> list[str]:
        """Convert every stack of a file."""
        stacks = self.importer.stacks(ConfigFile(path))
        return [convert(path, self.importer, entry=n) for n in range(1, len(stacks) + 1)]


def its_own_files_are_recognised(subject: ImporterSubject) -> None:
    """It recognises its file, and none that is empty, of random bytes, or of other keys."""
    is_one = subject.importer.recognises
    expect(is_one(ConfigFile(subject.file)), f"{subject.file} expected to be recognised, got no")
    for name, raw in FOREIGN.items():
        path = subject.scratch / name
        path.write_bytes(raw)
        try:
            taken = is_one(ConfigFile(path))
        except ProfileError:
            continue
        expect(not taken, f"nobody's {name} ({raw[:20]!r}) expected to be left, got recognised")


def every_stack_becomes_a_profile(subject: ImporterSubject) -> None:
    """It names one stack or more, each differently; each gives a profile that can run."""
    stacks = subject.importer.stacks(ConfigFile(subject.file))
    expect(stacks, "a name for each stack expected, got none")
    expect(len(set(stacks)) == len(stacks), f"a name of its own for each expected, got {stacks}")
    try:
        subject.made(subject.file)
    except ProfileError as error:
        expect(False, f"profiles that can run expected, got: {error.problems[0]}")


def every_value_has_an_origin(subject: ImporterSubject) -> None:
    """Each value is written with the key that it comes from, or with whose default it is."""
    for text in subject.made(subject.file):
        body = re.split(r"^(?:extends|evidence):.*\n", text, flags=re.MULTILINE)[1]
        fields = [line for line in body.splitlines() if line.startswith("  ")]
        expect(fields, "at least one value expected, got none")
        for line in fields:
            expect(re.search(r"  # \S", line), f"an origin expected, got {line.strip()}")


def the_same_twice(subject: ImporterSubject) -> None:
    """A second import writes the same."""
    same = subject.made(subject.file) == subject.made(subject.file)
    expect(same, "the same profile again expected, got another")


def no_key_is_lost(subject: ImporterSubject) -> str | None:
    """A key that no one knows is refused or listed, or all that it stands in (JSON, YAML)."""
    tried = 0
    for place, raw in _with_a_key(subject.file):
        tried += 1
        try:
            told = "\n".join(subject.made(subject.beside(raw)))
        except ProfileError as error:
            told = str(error)
        listed = KEY in told or any(f"{key}=" in told for key in place)
        expect(listed, f"{KEY} in {'.'.join(place)} expected to be refused or listed, got nothing")
    return None if tried else "neither JSON nor YAML: not tried"


def _with_a_key(path: Path) -> Iterator[tuple[tuple[str, ...], bytes]]:
    """Copies of a document, each with one key more in one of its mappings."""
    raw = path.read_text("utf-8", "replace")
    is_json = raw.lstrip().startswith("{")
    try:
        document = json.loads(raw) if is_json else yaml.safe_load(raw)
    except (ValueError, yaml.YAMLError):
        return
    for place, mapping in _mappings(document, ()):
        mapping[KEY] = 1
        written = json.dumps(document) if is_json else yaml.safe_dump(document, sort_keys=False)
        yield place, written.encode()
        del mapping[KEY]


def _mappings(
    value: Any, place: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], dict[str, object]]]:
    if isinstance(value, dict):
        yield place, value
        for key, inner in list(value.items()):
            yield from _mappings(inner, (*place, str(key)))
    for inner in value if isinstance(value, list) else ():
        yield from _mappings(inner, place)


def damage_is_refused(subject: ImporterSubject) -> None:
    """A file that was cut or changed gives a profile, or lines that begin with its path."""
    raw, chance = subject.file.read_bytes(), random.Random(0)
    for number in range(DAMAGES):
        at = chance.randrange(len(raw))
        damaged = (
            raw[:at] if number % 2 else raw[:at] + bytes([chance.randrange(256)]) + raw[at + 1 :]
        )
        path = subject.beside(damaged)
        try:
            subject.made(path)
        except ProfileError as error:
            for line in error.problems:
                plain = line.isprintable() and str(path.parent) in line
                expect(plain, f"one printable line with the path expected, got {line!r}")


SUITE: Suite[ImporterSubject] = Suite.of(__name__)


def prove_importer(file: str | Path, importer: Importer | None = None) -> list[Verdict]:
    """Run every check on an importer.

    Args:
        file: a small file of its format, every stack of which can be imported.
        importer: by default the installed one that recognises the file.

    Raises:
        ProfileError: none recognises it.
    """
    path = Path(file)
    with tempfile.TemporaryDirectory() as folder:
        found = importer or importer_of(ConfigFile(path))
        subject = ImporterSubject(found, path, Path(folder))
        return SUITE.prove(subject)
