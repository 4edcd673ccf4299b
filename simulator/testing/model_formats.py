"""The checks that every format of model files must pass, on a small model from its author."""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from simulator.contract.model_format import ONNX, Contents, ModelFormat, format_of
from simulator.errors import ModelError, UserError
from simulator.modalities.card import CardSpec
from simulator.testing.importers import FOREIGN
from simulator.testing.subject import expect
from simulator.testing.suite import Suite, Verdict

DAMAGES = 40


@dataclass(frozen=True)
class FormatSubject:
    """A format, and a model in it."""

    format: ModelFormat
    model: Path
    scratch: Path

    def copied(self) -> Path:
        """Copy all files that the format says there are to another folder."""
        folder = self.model if self.format.is_folder else self.model.parent
        target = Path(tempfile.mkdtemp(dir=self.scratch))
        for file in self.format.files(self.model):
            place = target / file.relative_to(folder)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, place)
        return target if self.format.is_folder else target / self.model.name


def its_own_files_are_recognised(subject: FormatSubject) -> None:
    """It recognises its model, and no file of nobody, also not under the model's stem."""
    own = subject.format.recognises
    expect(own(subject.model), f"{subject.model} expected to be recognised, got no")
    for name, raw in FOREIGN.items():
        for stem in (Path(name).stem, subject.model.name.partition(".")[0]):
            path = subject.scratch / f"{stem}{Path(name).suffix}"
            path.write_bytes(raw)
            expect(not own(path), f"nobody's {path.name} expected to be left, got recognised")


def its_files_are_all(subject: FormatSubject) -> None:
    """Copied alone to another folder, they have the same digest and say the same."""
    copy = subject.copied()
    wanted, got = _said(subject.format.read(subject.model)), _said(subject.format.read(copy))
    expect(got == wanted, f"of the copied files {wanted} expected, got {got}")
    wanted, got = (subject.format.digest([path]) for path in (subject.model, copy))
    expect(got == wanted, f"of the copied files the digest {wanted} expected, got {got}")


def _said(contents: Contents | None) -> str:
    return f"{dict(contents.inputs)}, {dict(contents.outputs)}" if contents else "nothing"


def what_it_reads_are_ports(subject: FormatSubject) -> str | None:
    """It reads inputs and outputs with whole sizes, by their names, or nothing at all."""
    found = subject.format.read(subject.model)
    if found is None:
        return "only its runtime reads it"
    expect(found.inputs and found.outputs, f"inputs and outputs expected, got {_said(found)}")
    for name, port in found.inputs.items():
        expect(port.name == name, f"the input {name!r} by its name expected, got {port.name!r}")
    for shape in (*(port.shape for port in found.inputs.values()), *found.outputs.values()):
        sizes = all(side is None or (type(side) is int and side >= 0) for side in shape)
        expect(sizes, f"sizes, or None, expected, got {shape}")
    return None


def damage_is_refused(subject: FormatSubject) -> None:
    """A cut or changed file is read, or refused in one line with its path; nothing else happens."""
    chance = random.Random(0)
    for number in range(DAMAGES):
        copy = subject.copied()
        files = [file for file in subject.format.files(copy) if file.stat().st_size]
        file = chance.choice(files)
        raw = file.read_bytes()
        at = chance.randrange(len(raw))
        end = b"" if number % 2 else bytes([chance.randrange(256)]) + raw[at + 1 :]
        file.write_bytes(raw[:at] + end)
        try:
            subject.format.read(copy)
            subject.format.describe(copy)
        except ModelError as error:
            plain = str(error).isprintable() and str(copy.parent) in str(error)
            expect(plain, f"one printable line with the path expected, got {str(error)!r}")


def a_card_can_name_it(subject: FormatSubject) -> None:
    """The field of a card is a name that no card has for something else, if there is one."""
    model_format = subject.format
    free = model_format.key.isidentifier() and (
        model_format.key not in CardSpec.model_fields or model_format.name == ONNX
    )
    expect(not model_format.key or free, f"a field of its own expected, got {model_format.key!r}")
    told = model_format.about.split(" ")[0] in ("a", "an")
    expect(told, f"about it in words with an article expected, got {model_format.about!r}")


SUITE: Suite[FormatSubject] = Suite.of(__name__)


def prove_model_format(model: str | Path, format: ModelFormat | None = None) -> list[Verdict]:
    """Run every check on a format of model files.

    Args:
        model: a small model in the format: a file, or a folder.
        format: by default the installed one that recognises the file.

    Raises:
        UserError: there is no such file, or none recognises it.
    """
    if not os.path.exists(model):
        raise UserError(f"{model}: there is no such file or folder")
    path = Path(model)
    found = format or format_of(path)
    if found is None:
        raise UserError(f"{model}: no installed model format recognises it by its name")
    with tempfile.TemporaryDirectory() as folder:
        subject = FormatSubject(found, path, Path(folder))
        return SUITE.prove(subject)
