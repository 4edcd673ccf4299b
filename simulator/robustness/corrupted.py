"""``simulate corrupt``: write a data set under conditions to disk, for other tools."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console

from simulator.command.experiment import Command
from simulator.command.options import Progress
from simulator.conditions.condition import AppliedCondition
from simulator.conditions.condition import under as condition_of
from simulator.conditions.image_files import decoded, writing
from simulator.contract import ImageWriter
from simulator.contract.frame import rgb_frame
from simulator.contract.recipe import Boundary, Context
from simulator.data import example
from simulator.data.address import absolute, root_of
from simulator.data.annotated import AnnotatedSpec
from simulator.data.card import FILE, find_card, read_card
from simulator.data.folder import Files, Item, subset
from simulator.data.format import DataCard
from simulator.data.labels import read_text
from simulator.digests import sha256
from simulator.errors import DataError, SampleError, UserError, one_line
from simulator.experiments.claim import claimed
from simulator.files import write_whole
from simulator.model.card import Card
from simulator.model.onnxfile import check
from simulator.model.store import digest
from simulator.robustness.corrupt import CorruptOptions
from simulator.robustness.document import load_suite

LABELS, ANNOTATIONS = "labels.csv", "annotations.json"
_TRUTH = (LABELS, ANNOTATIONS, FILE)
"""Files beside the images."""
_PLACES = ("annotations", "classes", "split")
"""Paths of a data card besides its images."""


@dataclass(slots=True)
class Written:
    """What came of a data set under one condition.

    Attributes:
        text: the condition.
        folder: where it is; ``--data`` takes it.
        images: how many were written.
        skipped: the others, each with the reason.
        turned: how many say by EXIF how they are to be turned, which a PNG does not keep.
    """

    text: str
    folder: Path
    images: int = 0
    skipped: dict[str, str] = field(default_factory=dict)
    turned: int = 0


def corrupt(command: Command[CorruptOptions], asked: CorruptOptions) -> list[Written]:
    """Write every image of a data set under each condition, with its truth.

    Each goes to ``OUT/NAME/PARAMETERS``, the layout of the released ImageNet-C, under its own
    name. Where a condition acts on the frame, the image is decoded by Pillow and written as PNG.
    """
    texts, found = list(asked.under), {}
    if asked.suite:
        suite = load_suite(asked.suite)
        texts = [condition.condition.text for condition in suite.conditions()]
        found["suite"] = str(suite.path.resolve())
    conditions = [condition for text in texts if (condition := condition_of(text, asked.trial))]
    card = Card(Path(asked.model)) if asked.model else Card(example.model_card())
    source = check(card)
    conditions = [under.bound(card, source) for under in conditions]
    for under in conditions:
        under.check(card.modality.name, in_pixels=card.task.in_pixels)
        _refuse(under, card.task.in_pixels)
    files = Files.of(card.modality)
    root = root_of(asked.data) if asked.data else None
    whole = card.task.load(root, files) if root else card.task.example()
    items = subset(whole, asked.limit, asked.seed).items
    _refuse_alike(items)
    writer = _Writer(card, find_card(root) if root else None, asked)
    work = {
        "conditions": [under.condition.identity() for under in conditions],
        "samples": digest([[item.name, sha256(item.path)] for item in items]),
    }
    with claimed(command, asked, work, **found):
        written = []
        for number, under in enumerate(conditions):
            writer.show.stage(number + 1, len(conditions), under.condition.text)
            written.append(writer.write(under, items))
        return written


def show(found: Sequence[Written], folder: str, console: Console) -> None:
    """Print where the images are, and what was left out."""
    for one in found:
        skipped = f", {len(one.skipped)} skipped" if one.skipped else ""
        lines = [f"{one.text}: {one.images} images{skipped} in {one.folder}"]
        lines += [f"  {name}: {why}" for name, why in list(one.skipped.items())[:3]]
        if one.turned:
            lines.append(
                f"  {one.turned} say by EXIF how they are to be turned; a PNG does not keep that"
            )
        for line in lines:
            console.print(line, markup=False, highlight=False, soft_wrap=True)


def _refuse(under: AppliedCondition, in_pixels: bool) -> None:
    text, acts_on = under.condition.text, under.condition.acts_on
    if in_pixels and under.warp is not None:
        raise UserError(f"--under {text}: it moves boxes and masks, which are not written anew")
    if under.condition.erased:
        raise UserError(f"--under {under.condition.erased}")
    if acts_on not in (Boundary.SOURCE, Boundary.FRAME):
        raise UserError(f"--under {text}: it acts on the {acts_on}, not on an image to be written")


def _refuse_alike(items: Sequence[Item]) -> None:
    """Refuse images whose files would be one, as many conditions write another format."""
    known: dict[Path, str] = {}
    for item in items:
        other = known.setdefault(Path(item.name).with_suffix(""), item.name)
        if other != item.name:
            raise DataError(
                f"{other} and {item.name} may be written to one file, as endings change; rename one"
            )


class _Writer:
    """Writes one data set under one condition after the other."""

    def __init__(self, card: Card, data_card: Path | None, asked: CorruptOptions) -> None:
        self._card, self._data_card = card, data_card
        self._home, self._workers = Path(asked.out), asked.workers or os.cpu_count() or 1
        self.show = asked.progress or Progress()
        self._decode = decoded()
        self._png: ImageWriter = writing().make()

    def write(self, under: AppliedCondition, items: Sequence[Item]) -> Written:
        condition = under.condition
        parameters = condition.text.removeprefix(f"{condition.name}").lstrip(":") or "all"
        folder = self._home / condition.name / parameters.replace("/", "_")
        if under.trial:
            folder = folder.with_name(f"{folder.name}-trial{under.trial}")
        written = Written(condition.text, folder)
        disturb, known = condition.applied(under.trial), _written_before(folder)

        def one(item: Item) -> tuple[str, bool]:
            source: Any = self._card.modality.read(item.name, item.path)
            turned = condition.acts_on is not Boundary.SOURCE and source.orientation != 1
            if before := known.get(Path(item.name).with_suffix("")):
                return before, turned
            context, name = Context(item.name, source, item.truth, item), item.name
            if condition.acts_on is Boundary.SOURCE:
                found = disturb(source, context)
                content: bytes = found.data
                if found.format != source.format:
                    name = str(Path(name).with_suffix(f".{found.format}"))
            else:
                content = self._png.png(disturb(rgb_frame(self._decode(source)[0]), context).rgb)
                name = str(Path(name).with_suffix(".png"))
            place = folder / name
            place.parent.mkdir(parents=True, exist_ok=True)
            write_whole(place, content)
            return name, turned

        names: dict[str, str] = {}
        pool = ThreadPoolExecutor(self._workers)
        try:
            jobs = [(item, pool.submit(one, item)) for item in items]
            for number, (item, job) in enumerate(jobs):
                try:
                    names[item.name], turned = job.result()
                except SampleError as error:
                    written.skipped[item.name] = one_line(error)
                else:
                    written.turned += turned
                self.show.advance(number + 1, len(items))
        finally:
            pool.shutdown(cancel_futures=True)
        written.images = len(names)
        if not names:
            raise DataError(f"{condition.text}: no image could be written; {written.skipped}")
        self._truth(folder, items, names)
        return written

    def _truth(self, folder: Path, items: Sequence[Item], names: dict[str, str]) -> None:
        card = read_card(self._data_card) if self._data_card else None
        if card is not None and isinstance(card.spec, AnnotatedSpec):
            _copy_card(card, folder, names)
        elif any(item.truth is not None for item in items):
            out = io.StringIO()
            rows = csv.writer(out, lineterminator="\n")
            rows.writerow(["file", "index"])
            known = (item for item in items if item.name in names and item.truth is not None)
            rows.writerows([names[item.name], item.truth] for item in known)
            write_whole(folder / LABELS, out.getvalue().encode())


def _written_before(folder: Path) -> dict[Path, str]:
    """The images that an interrupted call has written, by their names without endings."""
    names = (place.relative_to(folder) for place in folder.rglob("*") if place.is_file())
    images = (name for name in names if name.suffix != ".part" and str(name) not in _TRUTH)
    return {name.with_suffix(""): str(name) for name in images}


def _copy_card(card: DataCard, folder: Path, names: dict[str, str]) -> None:
    """Write the data card with the new images; COCO's annotations name files by their ends."""
    spec = card.spec.model_dump(by_alias=True, exclude_none=True, mode="json")
    for key in _PLACES:
        if spec.get(key):
            spec[key] = absolute(card.root(key))
    if card.spec.format == "coco":
        whole = json.loads(read_text(card.place("annotations")))
        whole["images"] = [
            {**image, "file_name": names[image["file_name"]]}
            for image in whole["images"]
            if image["file_name"] in names
        ]
        kept = {image["id"] for image in whole["images"]}
        whole["annotations"] = [a for a in whole["annotations"] if a["image_id"] in kept]
        write_whole(folder / ANNOTATIONS, json.dumps(whole).encode())
        spec["annotations"] = ANNOTATIONS
    if spec.get("image_suffix"):
        ends = {Path(name).suffix for name in names.values()}
        spec["image_suffix"] = str(Path(spec["image_suffix"]).with_suffix(ends.pop()))
    spec["images"] = "."
    write_whole(folder / FILE, yaml.safe_dump(spec, sort_keys=False).encode())
