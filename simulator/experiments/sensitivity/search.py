"""The search for a short keep list, and its confirmation."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np

from simulator.command.experiment import Command
from simulator.command.options import Progress
from simulator.contract import Stage
from simulator.errors import DataError
from simulator.experiments.claim import claimed, portable
from simulator.experiments.common import chosen, refuse_missing
from simulator.experiments.sensitivity.experiment import SensitivityOptions
from simulator.experiments.sensitivity.figures import (
    PROFILE,
    Flips,
    Goal,
    SensitivitySummary,
    paired,
    rate,
)
from simulator.experiments.sensitivity.noise import noise, quantized_layers
from simulator.experiments.sensitivity.prepare import (
    SAMPLES,
    Parts,
    calibrated,
    calibration_of,
    divided,
    refuse_fitted,
    work_of,
)
from simulator.experiments.session import Session, Variant
from simulator.files import TEXT, read_file, write_whole
from simulator.pipeline.float_runtime import in_fp32, running
from simulator.pipeline.stack import ResolvedProfile, Stack
from simulator.profile.lookup import find, name_of
from simulator.profile.text import flow
from simulator.results.json_text import parse_json, write_json

MEASURED, SUMMARY = "measured.json", "summary.json"
SEARCH, CONFIRM = 1, 2
"""Parts of the samples."""
FLOAT = "fp32"
IN_FP32 = ("precision.quantizer=null", "precision.storage=fp32", "precision.compute=fp32")
"""Overrides of the same stack in FP32."""
Names = tuple[str, ...]


def sensitivity(
    command: Command[SensitivityOptions], asked: SensitivityOptions
) -> SensitivitySummary:
    """Find a short keep list of a quantized stack; a second call with the same arguments goes on.

    The images are divided: some calibrate, half of the others are searched, and what is found is
    confirmed on the rest.
    """
    goal, home = Goal.parse(asked.goal), Path(asked.out)
    asked = asked.without(profile=portable(asked.profile))
    base = chosen(asked.profile, [])
    given = calibration_of(base[0])
    refuse_fitted(base[0])
    refuse_missing([base])
    show = asked.progress or Progress()
    with (
        Session.open(
            asked.model, asked.data, asked.limit, asked.seed, asked.workers, None, show
        ) as session,
        claimed(command, asked, work_of(session, base), profile=asked.profile),
    ):
        session.card.refuse_second("a search for precisions takes")
        parts = divided(session.dataset.items, given, asked.seed)
        quantizer = base[0].spec.precision.quantizer
        calibrates = quantizer is not None and quantizer.calibration is not None
        changes = calibrated(home, parts.calibrate) if calibrates else []
        items = (*parts.search, *parts.confirm)
        searched = session.subset(items).calibrating_on(items, None)
        return _Search(home, searched, asked, goal, changes, parts).run()


@dataclass
class _Search:
    home: Path
    session: Session
    asked: SensitivityOptions
    goal: Goal
    changes: Sequence[str]
    parts: Parts

    def run(self) -> SensitivitySummary:
        self.base = chosen(self.asked.profile, self.changes)
        self.plain = self._stack(FLOAT, chosen(self.asked.profile, IN_FP32))
        rounded = self._stack("int8", self.base)
        order, noises = self._order(quantized_layers(rounded, self.plain), rounded)
        bare = self._measured(SEARCH, [()])[()]
        tried = order[: self.asked.top]
        alone = self._measured(SEARCH, [(name,) for name in tried])
        won = {name: paired(bare, alone[name,]) for name in tried}
        ranked = sorted(tried, key=lambda name: -won[name]["won"]) + order[len(tried) :]
        keep = self._shortest(ranked)
        summary: SensitivitySummary = {
            "profile": self.base[0].name,
            "model": self.session.card.spec.name,
            "goal": self.asked.goal,
            "images": {name: len(of) for name, of in self.parts._asdict().items()},
            "layers": [
                {"name": name, "noise": noises.get(name), **won.get(name, {})}  # type: ignore[typeddict-item]
                for name in ranked
            ],
            "searched": rate(bare),
            "keep": None if keep is None else list(keep),
            "skipped": 0,
        }
        if keep is not None:
            found = self._measured(CONFIRM, list(dict.fromkeys([(), keep])))
            summary["confirmed"] = self.goal.confirmed(found[()], found[keep])
        if keep:
            write_whole(self.home / PROFILE, self._document(keep).encode())
        summary["skipped"] = self._skipped()
        write_json(self.home / SUMMARY, summary)
        return summary

    def _stack(self, name: str, one: ResolvedProfile) -> Stack:
        return self.session.stack(Variant(name, one, {"train": one, "deploy": one}))

    def _kept(self, names: Names) -> ResolvedProfile:
        if not names:
            return self.base
        keep = f"precision.quantizer.keep={flow(self._keep(names))}"
        return chosen(self.asked.profile, [*self.changes, keep])

    def _keep(self, names: Names) -> dict[str, object]:
        quantizer = self.base[0].spec.precision.quantizer
        given = quantizer and quantizer.keep
        return {
            "nodes": [*(given.nodes if given else ()), *names],
            "op_types": list(given.op_types if given else ()),
            "reason": f"{len(names)} layers found by simulate sensitivity for {self.asked.goal}",
        }

    def _order(self, layers: Sequence[str], rounded: Stack) -> tuple[list[str], dict[str, float]]:
        """The layers, those that add the most noise first."""
        self.session.show.say("comparing the layers with FP32")
        given = calibration_of(self.base[0])
        feeds, _ = self.session.builder.feeds(self.base[0], {"deploy": self.base}, given=given)
        assert feeds
        choice = in_fp32([self.plain.choices[Stage.RUNTIME]], "the comparison of layers")
        first = islice(feeds.tensors(), SAMPLES)
        found = noise(self.plain, rounded, first, partial(running, choice))
        return sorted(layers, key=lambda name: -found.get(name, -np.inf)), found

    def _known(self) -> dict[str, Flips]:
        """What was measured, also by an interrupted call: by the part and the keep list."""
        path = self.home / MEASURED
        found: dict[str, Flips] = parse_json(read_file(path, TEXT)) if path.exists() else {}
        return found

    def _measured(self, part: int, lists: Sequence[Names]) -> dict[Names, Flips]:
        """Which samples flip against FP32 under each keep list; what is known is not run again."""
        known = self._known()
        keys = {names: json.dumps([part, sorted(names)]) for names in lists}
        new = [names for names in lists if keys[names] not in known]
        if new:
            session = self.session.subset(self.parts[part])
            stacks = [self.plain]
            for number, names in enumerate(new):
                stacks.append(self._stack(f"keep {number}", self._kept(names)))
            done = session.run(session.plan(stacks))
            found = done.answers(*(stack.side for stack in stacks))
            for number, names in enumerate(new):
                lost = {
                    tried.sample: True
                    for tried in found.broken
                    if FLOAT not in tried.failed and f"keep {number}" in tried.failed
                }
                changed = found.changed(f"keep {number}").tolist()
                ran = [item.name for item in found.items]
                if not ran:
                    raise DataError(f"no sample went through; the first: {done.why[0]}")
                known[keys[names]] = dict(zip(ran, changed, strict=True)) | lost
            write_json(self.home / MEASURED, known)
        return {names: known[key] for names, key in keys.items()}

    def _shortest(self, ranked: Sequence[str]) -> Names | None:
        """The shortest beginning of a ranking that reaches the goal, by doubling and bisection."""

        def reaches(count: int) -> bool:
            names = tuple(ranked[:count])
            self.session.show.say(f"{count} of {len(ranked)} layers in FP32")
            return self.goal.holds(self._measured(SEARCH, [names])[names])

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

    def _skipped(self) -> int:
        """How many samples did not go through with every list that was measured."""
        left = set[str]()
        for key, flips in self._known().items():
            left |= {item.name for item in self.parts[json.loads(key)[0]]} - set(flips)
        return len(left)

    def _document(self, keep: Names) -> str:
        above = find(self.asked.profile)
        extends = name_of(above) or os.path.relpath(above.resolve(), self.home.resolve())
        fields = {"keep": self._keep(keep)}
        if self.changes:
            fields["calibration"] = calibration_of(self.base[0]).model_dump()
        name = f"{self.base[0].name}_kept"
        words = (
            f"{self.base[0].name} with {len(keep)} layers of {self.session.card.spec.name} in FP32"
        )
        return (
            f"schema: 1\nname: {flow(name)}\nsummary: {flow(words)}\nextends: {flow(extends)}\n"
            f"modality: {flow(self.base[0].spec.modality)}\n"
            f"precision:\n  quantizer: {flow(fields)}\n"
        )
