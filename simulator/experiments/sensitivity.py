"""``simulate sensitivity``: which layers of an INT8 stack to keep in FP32."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from simulator.analysis import gate, outcomes
from simulator.command.options import Progress
from simulator.contract import Stage
from simulator.contract.recipe import generator
from simulator.data.address import root_of
from simulator.data.folder import Files, Item
from simulator.data.source import samples_of
from simulator.digests import sha256
from simulator.errors import DataError, UserError
from simulator.experiments.common import chosen, refuse_missing
from simulator.experiments.layer_noise import noise, quantized_layers
from simulator.experiments.session import Session, Variant, answers
from simulator.files import LARGE, TEXT, read_file, write_whole
from simulator.model.passes.rewrite import wanted
from simulator.model.store import digest
from simulator.pipeline.calibration import Asked, Calibrator
from simulator.pipeline.float_runtime import in_fp32, running
from simulator.pipeline.stack import Chosen, Stack
from simulator.places import Where, read
from simulator.profile.implementations import choose
from simulator.profile.load import find, name_of
from simulator.profile.precision import Keep, Precision, Quantizer
from simulator.profile.profile import Profile
from simulator.profile.text import flow
from simulator.results.repair import Judged
from simulator.statistics.paired import clopper_pearson, mcnemar_midp

PLAN, MEASURED, SUMMARY, PROFILE, CALIBRATION = (
    "plan.json", "measured.json", "summary.json", "profile.yaml", "calibration",
)  # fmt: skip
FLOAT = "fp32"
SAMPLES = 16
"""Calibration samples by which layers are put in order."""
Flips = dict[str, bool]
"""Whether each sample flips, by its name; one that a stack cannot read is not among them."""
Names = tuple[str, ...]

_RATE = ("flip_rate", "flips.rate")
"""The figure that a goal is about."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What is looked for.

    Attributes:
        profile: the stack with a quantizer.
        goal: what must hold, ``flip_rate < 2%``, against the same stack in FP32.
        top: of how many layers the win alone is measured; the noisiest are tried.
        seed: of the split of the images.
    """

    profile: str
    goal: str
    top: int = 8
    seed: int = 0

    def __post_init__(self) -> None:
        self.rule()
        if self.top < 1:
            raise UserError(f"--top must be at least 1, got {self.top}")

    def rule(self) -> gate.Rule:
        """Return the goal as a rule.

        Raises:
            UserError: it is none, or of another figure than ``flip_rate``.
        """
        found = gate.parse(self.goal)
        if found.name not in _RATE or found.times or found.op not in ("<", "<="):
            raise UserError(f"--goal {self.goal!r}: write flip_rate < N%, for example 2%")
        return gate.check([found], Judged, {})[0]

    def holds(self, flips: Flips) -> bool:
        """Whether the goal holds."""
        rule = self.rule()
        return gate.OPS[rule.op](sum(flips.values()) / len(flips), rule.limit)


def sensitivity(
    model: str | Path | None,
    data: str | Path | None,
    out: str | Path,
    settings: Settings,
    *,
    limit: int | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Find a short keep list of a quantized stack; a second call with the same arguments goes on.

    The images are divided: some calibrate, half of the others are searched, and what is found is
    confirmed on the rest. The folder gets ``summary.json``, and ``profile.yaml`` where a keep list
    is needed and found.

    Args:
        model: a model card; the built-in model by default.
        data: samples; the built-in images by default.
        out: the folder.
        settings: what is looked for.
        limit: take a random subset of this many samples.
        workers: how many samples are processed at once.
        progress: is told what happens.

    Returns:
        The summary: ``layers`` (name, ``noise``, and where measured ``flips`` on the searched
        images with only that layer in FP32, ``won`` and ``p``), ``keep``, under ``confirmed`` the
        flips without and with it on the other images, rates with their 95 % intervals, whether the
        goal ``holds`` there, whether that is ``sure`` (the interval does not hold the limit) and
        how many ``more`` images would make it so if the rate stays, and
        ``skipped``, the samples that some stack could not read; pairs are of the others.

    Raises:
        UserError: the model, the data or the profile do not fit.
    """
    show, home = progress or Progress(), Path(out)
    base = chosen(settings.profile, [])
    quantizer = _quantizer(base[0])
    refuse_fitted(base[0])
    refuse_missing([base])
    with Session(model, data, limit, settings.seed, workers, None, show) as session:
        home.mkdir(parents=True, exist_ok=True)
        _claim(home, session, settings, base)
        parts = _divided(session.dataset.items, quantizer, settings.seed)
        base = _calibrated(home, base, parts[0])
        session.dataset = replace(session.dataset, items=(*parts[1], *parts[2]), film=False)
        session.builder.dataset = session.dataset
        return _Search(home, session, settings, base, parts).run()


def _quantizer(profile: Profile) -> Quantizer:
    """Return the quantizer of a profile.

    Raises:
        UserError: it has none that calibrates on its own pixels.
    """
    found = profile.spec.precision.quantizer
    if found is None or found.calibration is None:
        raise UserError(f"{profile.name}: keep lists are found for a quantizer that calibrates")
    if found.calibration.through != "deploy":
        raise UserError(f"{profile.name}: there is no other stack here: write through: deploy")
    return found


def refuse_fitted(profile: Profile) -> None:
    """Refuse what needs another stack here, or is fitted to samples that are searched.

    Raises:
        UserError: the graph is fitted so, or the network adapts while it runs.
    """
    for axis, given in wanted(profile.spec.graph).items():
        if "train" in given.through or given.source == "data":
            raise UserError(
                f"{profile.name}: graph.{axis} is fitted through the training stack or to "
                "evaluated samples, and there is no other stack here: leave it out"
            )
    if profile.spec.runtime.adaptation is not None:
        raise UserError(f"{profile.name}: runtime.adaptation changes the network: leave it out")
    if profile.spec.runtime.samples > 1:
        raise UserError(f"{profile.name}: runtime.batch: one sample runs at a time: leave it out")


def _claim(home: Path, session: Session, settings: Settings, base: Chosen) -> None:
    """Take a folder for this search, or find it taken for the same.

    Raises:
        UserError: it holds something else.
    """
    samples = digest([[item.name, sha256(item.path)] for item in session.dataset.items])
    given = _quantizer(base[0]).calibration
    assert given is not None
    sources = [given.source, *(one.source for one in wanted(base[0].spec.graph).values())]
    files = Files.of(session.card.modality)
    folders = {
        source: [sha256(item.path) for item in samples_of(root_of(source), files).items]
        for source in sources
        if source != "data"
    }
    plan = {
        "model": session.source.digest,
        "card": session.card.written.model_dump(mode="json", by_alias=True, exclude_none=True),
        "samples": samples,
        "settings": asdict(settings),
        "profile": base[0].spec.model_dump(mode="json"),
        "choices": {stage: choice.identity() for stage, choice in base[1].items()},
        "calibration": digest(folders),
    }
    if (home / PLAN).exists():
        if json.loads(read_file(home / PLAN, TEXT)) != json.loads(json.dumps(plan)):
            raise UserError(f"{home} holds another search; choose another --out")
    elif any(home.iterdir()):
        raise UserError(f"{home} is not empty; choose another --out")
    else:
        _write(home / PLAN, plan)


def _divided(
    items: Sequence[Item], quantizer: Quantizer, seed: int
) -> tuple[tuple[Item, ...], tuple[Item, ...], tuple[Item, ...]]:
    """Divide samples: to calibrate (none where the profile names a folder), search, confirm.

    Raises:
        DataError: there are too few.
    """
    assert quantizer.calibration is not None
    order = [items[at] for at in generator("sensitivity", seed).permutation(len(items))]
    given, count = quantizer.calibration, 0
    if given.source == "data":
        count = min(given.samples, len(items) // 3)
    else:
        folder = Path(given.source).resolve()
        order = [item for item in order if not _inside(item.path, folder)]
    rest = order[count:]
    if len(rest) < 4 or (given.source == "data" and not count):
        raise DataError(f"{len(items)} samples are too few to calibrate, search and confirm")
    half = len(rest) // 2
    return tuple(order[:count]), tuple(rest[:half]), tuple(rest[half:])


def _inside(place: Where, folder: Path) -> bool:
    return isinstance(place, Path) and place.resolve().is_relative_to(folder)


def _copy(place: Where, target: Path) -> None:
    """Copy a sample to a file."""
    if isinstance(place, Path):
        shutil.copyfile(place, target)
    else:
        target.write_bytes(read(place, LARGE))


def _calibrated(home: Path, base: Chosen, items: Sequence[Item]) -> Chosen:
    """Return the stack with these samples to calibrate on, copied to a folder."""
    if not items:
        return base
    folder = home / CALIBRATION
    for number, item in enumerate(items):
        place = folder / f"{number:05}{item.path.suffix.lower() or '.bin'}"
        if not place.exists():
            place.parent.mkdir(exist_ok=True)
            draft = place.with_suffix(".part")
            _copy(item.path, draft)
            os.replace(draft, place)
    given = _quantizer(base[0]).calibration
    assert given is not None
    samples = {"samples": len(items), "source": str(folder.resolve())}
    return _with(base[0], calibration=given.model_copy(update=samples))


def _with(profile: Profile, **fields: Any) -> Chosen:
    """Return a stack with other fields of its quantizer."""
    quantizer = _quantizer(profile).model_copy(update=fields)
    precision = profile.spec.precision.model_copy(update={"quantizer": quantizer})
    return _again(profile, precision)


def _again(profile: Profile, precision: Precision) -> Chosen:
    spec = profile.spec.model_copy(update={"precision": precision}).settled()
    made = Profile(profile.name, spec, {})
    return made, choose(made)


@dataclass
class _Search:
    home: Path
    session: Session
    settings: Settings
    base: Chosen
    parts: tuple[Sequence[Item], Sequence[Item], Sequence[Item]]

    def run(self) -> dict[str, Any]:
        plain = _again(self.base[0], Precision(storage="fp32", compute="fp32"))
        self.plain = self._stack(FLOAT, plain)
        given = _quantizer(self.base[0]).keep
        self.kept = tuple(given.nodes) if given else ()
        self.types = list(given.op_types) if given else []
        rounded = self._stack("int8", self.base)
        layers = quantized_layers(rounded)
        order, noises = self._order(layers, rounded)
        bare = self._measured(1, [()])[()]
        tried = order[: self.settings.top]
        alone = self._measured(1, [(name,) for name in tried])
        ranked = sorted(tried, key=lambda name: -paired(bare, alone[name,])["won"])
        ranked += order[len(tried) :]
        keep = self._shortest(ranked)
        table = []
        for name in ranked:
            entry: dict[str, Any] = {"name": name, "noise": noises.get(name)}
            if name in tried:
                entry |= paired(bare, alone[name,])
            table.append(entry)
        summary: dict[str, Any] = {
            "profile": self.base[0].name,
            "model": self.session.card.spec.name,
            "goal": self.settings.goal,
            "images": dict(zip(("calibrate", "search", "confirm"), map(len, self.parts),
                               strict=True)),
            "layers": table,
            "searched": _rate(bare),
            "keep": None if keep is None else list(keep),
        }  # fmt: skip
        if keep is not None:
            summary["confirmed"] = self._confirmed(keep)
            if keep:
                write_whole(self.home / PROFILE, self._document(keep, summary).encode())
        summary["skipped"] = self._skipped()
        _write(self.home / SUMMARY, summary)
        return summary

    def _stack(self, name: str, one: Chosen) -> Stack:
        return self.session.stack(Variant(name, one, {"train": one, "deploy": one}))

    def _kept(self, names: Names) -> Chosen:
        if not names:
            return self.base
        keep = Keep(nodes=[*self.kept, *names], op_types=self.types, reason=self._reason(names))
        return _with(self.base[0], keep=keep)

    def _reason(self, names: Names) -> str:
        return f"{len(names)} layers found by simulate sensitivity for {self.settings.goal}"

    def _order(self, layers: Sequence[str], rounded: Stack) -> tuple[list[str], dict[str, float]]:
        """The layers, those that add the most noise first."""
        self.session.show.say("comparing the layers with FP32")
        session, given = self.session, _quantizer(self.base[0]).calibration
        assert given is not None
        calibrator = Calibrator(
            session.card.modality,
            next(iter(session.source.inputs)),
            session.dataset,
            self.settings.seed,
            session.builder.runtimes,
        )
        asked = Asked("INT8", given.samples, given.source)
        feeds, _ = calibrator.feeds(asked, session.builder.front_end(*self.base))
        choice = in_fp32([self.plain.choices[Stage.RUNTIME]], "the comparison of layers")
        first = islice(feeds.tensors(), SAMPLES)
        found = noise(self.plain, rounded, first, partial(running, choice))
        return sorted(layers, key=lambda name: -found.get(name, -np.inf)), found

    def _measured(self, part: int, lists: Sequence[Names]) -> dict[Names, Flips]:
        """Which samples flip against FP32 under each keep list; what is known is not run again."""
        path = self.home / MEASURED
        known = json.loads(read_file(path, TEXT)) if path.exists() else {}
        keys = {names: json.dumps([part, sorted(names)]) for names in lists}
        new = [names for names in lists if keys[names] not in known]
        if new:
            session = self.session
            session.dataset = replace(session.dataset, items=tuple(self.parts[part]))
            stacks = [self.plain]
            for number, names in enumerate(new):
                stacks.append(self._stack(f"keep {number}", self._kept(names)))
            done = session.run(session.plan(stacks), lambda done: None)
            found = answers(session.card.task, [stack.side for stack in stacks], done)
            for number, names in enumerate(new):
                lost = {
                    one.sample: True
                    for one in found.broken
                    if FLOAT not in one.failed and f"keep {number}" in one.failed
                }
                changed = found.changed(f"keep {number}").tolist()
                ran = [item.name for item in found.items]
                if not ran:
                    raise DataError(f"no sample went through; the first: {done[0].skipped}")
                known[keys[names]] = dict(zip(ran, changed, strict=True)) | lost
            _write(path, known)
        return {names: known[key] for names, key in keys.items()}

    def _shortest(self, ranked: Sequence[str]) -> Names | None:
        """The shortest beginning of a ranking that reaches the goal, by doubling and bisection."""

        def reaches(count: int) -> bool:
            names = tuple(ranked[:count])
            self.session.show.say(f"{count} of {len(ranked)} layers in FP32")
            return self.settings.holds(self._measured(1, [names])[names])

        if reaches(0):
            return ()
        low, high = 0, 1
        while not reaches(high):
            if high == len(ranked):
                return None
            low, high = high, min(2 * high, len(ranked))
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if reaches(middle) else (middle, high)
        return tuple(ranked[:high])

    def _confirmed(self, keep: Names) -> dict[str, Any]:
        """Without and with the keep list, on samples that were not searched."""
        found = self._measured(2, list(dict.fromkeys([(), keep])))
        bare, kept = common(found[()], found[keep])
        return {
            "without": _rate(bare),
            "with": _rate(kept),
            "p": paired(bare, kept)["p"],
            **self._judged(kept),
        }

    def _judged(self, kept: Flips) -> dict[str, Any]:
        """Whether the goal holds, and whether that is sure."""
        rate = _rate(kept)
        flips = {"count": rate["flips"], "units": rate["images"], **rate}
        rule = replace(self.settings.rule(), op=">" if self.settings.rule().op == "<=" else ">=")
        judged = {"samples": rate["images"], "flips": flips}
        (found,) = outcomes.evaluate([rule], judged, shape=Judged)["rules"]
        return {
            "holds": not found["failed"],
            "sure": not found["chance"],
            "more": found.get("more"),
        }

    def _skipped(self) -> int:
        """How many samples did not go through with every list that was measured."""
        left = set[str]()
        for key, flips in json.loads(read_file(self.home / MEASURED, TEXT)).items():
            left |= {item.name for item in self.parts[json.loads(key)[0]]} - set(flips)
        return len(left)

    def _document(self, keep: Names, summary: dict[str, Any]) -> str:
        above = find(self.settings.profile)
        extends = name_of(above) or os.path.relpath(above.resolve(), self.home.resolve())
        quantizer = _quantizer(self._kept(keep)[0])
        fields = {"keep": quantizer.keep and quantizer.keep.model_dump()}
        if self.parts[0] and quantizer.calibration:
            fields["calibration"] = quantizer.calibration.model_dump()
        name = f"{self.base[0].name}_kept"
        words = f"{self.base[0].name} with {len(keep)} layers of {summary['model']} in FP32"
        return (
            f"schema: 1\nname: {flow(name)}\nsummary: {flow(words)}\nextends: {flow(extends)}\n"
            f"modality: {flow(self.base[0].spec.modality)}\n"
            f"precision:\n  quantizer: {flow(fields)}\n"
        )


def common(bare: Flips, kept: Flips) -> tuple[Flips, Flips]:
    """Return both on the samples that went through with both keep lists."""
    names = [name for name in bare if name in kept]
    return {name: bare[name] for name in names}, {name: kept[name] for name in names}


def paired(bare: Flips, kept: Flips) -> dict[str, Any]:
    """Return the flips of a keep list, how many it wins, and whether that may be chance."""
    one, other = common(bare, kept)
    lost = sum(other[name] and not one[name] for name in one)
    won = sum(one[name] and not other[name] for name in one)
    return {"flips": sum(other.values()), "won": won - lost, "p": mcnemar_midp(lost, won)}


def _rate(flips: Flips) -> dict[str, Any]:
    count, total = sum(flips.values()), len(flips)
    low, high = clopper_pearson(count, total)
    return {"flips": count, "images": total, "rate": count / total, "ci95": [low, high]}


def _write(path: Path, value: Any) -> None:
    write_whole(path, json.dumps(value, indent=1).encode())
