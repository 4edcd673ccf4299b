"""The checks that every data format must pass, on a small data set from its author."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simulator import digests
from simulator.data.card import read_card
from simulator.data.folder import IMAGES, Dataset, Files
from simulator.tasks.task import Task
from simulator.testing.subject import expect
from simulator.testing.suite import Suite, Verdict


@dataclass(frozen=True)
class DataSubject:
    """A data set in some format, with its task.

    Attributes:
        card: the data card.
        task: the task of the annotations, for a model with the classes of the data.
        files: the files that are samples.
    """

    card: Path
    task: Task
    files: Files = IMAGES

    def load(self) -> Dataset:
        """Open the card again."""
        return read_card(self.card).load(self.task.network.labels, self.files, self.task.truth_of)


def loading_is_repeatable(subject: DataSubject) -> None:
    """A second load gives the same names, truths and notes, in the same order."""
    dataset, other = subject.load(), subject.load()
    names, again = ([item.name for item in some.items] for some in (dataset, other))
    expect(names == again, f"loaded again: {names[:5]} expected, got {again[:5]}")
    for item, same in zip(dataset.items, other.items, strict=True):
        stamps = subject.task.stamp(item.truth), subject.task.stamp(same.truth)
        told = f"the stamp {stamps[0]} expected, got {stamps[1]}"
        expect(stamps[0] == stamps[1], f"{item.name}, loaded again: {told}")
    told = f"{dataset.notes} expected, got {other.notes}"
    expect(dataset.notes == other.notes, f"notes, loaded again: {told}")


def names_are_relative(subject: DataSubject) -> None:
    """Names are paths below the data folder with ``/``, each once, sorted; they can be read."""
    found = subject.load()
    names = [item.name for item in found.items]
    expect(names, "at least one sample expected, got none")
    expect(names == sorted(set(names)), f"sorted names, each once, expected, got {names[:5]}")
    for item in found.items:
        inside = not item.name.startswith("/") and ".." not in item.name.split("/")
        plain = inside and "\\" not in item.name
        expect(plain, f"a name below the data folder expected, got {item.name!r}")
        expect(digests.sha256(item.path), f"{item.name}: bytes expected, got none at {item.path}")


def truths_are_stamped(subject: DataSubject) -> None:
    """The task has a stamp for each truth, which is JSON, and can open the truth.

    A format that says that nobody has annotated its samples gives no truth.
    """
    found = subject.load()
    truths = [item for item in found.items if item.truth is not None]
    if not read_card(subject.card).format.annotated:
        expect(not truths, f"no truth expected, got that of {len(truths)} samples")
        return
    expect(truths, "at least one annotated sample expected, got none")
    for item in truths:
        stamp: Any = subject.task.stamp(item.truth)
        told = f"{item.name}: a stamp that is JSON expected, got {stamp!r}"
        expect(stamp is not None and json.loads(json.dumps(stamp)) == stamp, told)
        subject.task.opened(item.truth)


SUITE: Suite[DataSubject] = Suite.of(__name__)


def prove_data_format(card: Path, task: Task, files: Files = IMAGES) -> list[Verdict]:
    """Run every check on the format of a data card.

    Args:
        card: a small data set in this format; some of its samples are annotated.
        task: the task of the format, for a model with the classes of the data.
        files: the files that are samples.
    """
    subject = DataSubject(card, task, files)
    return SUITE.prove(subject)
