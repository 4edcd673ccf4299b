"""``simulate render``: every sample goes through one stack up to the network, and is kept."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, TypedDict

import yaml

from simulator import registry
from simulator.command.experiment import Command
from simulator.contract.recipe import Boundary, Chain
from simulator.data.folder import Item
from simulator.errors import DataError, RunError, UserError
from simulator.experiments.claim import claimed, portable
from simulator.experiments.common import chosen, refuse_missing
from simulator.experiments.session import Session
from simulator.files import TEXT, read_file, write_whole
from simulator.model.store import digest
from simulator.pipeline.feeding import feeding
from simulator.pipeline.front_end import front_end
from simulator.pipeline.plan import plan
from simulator.profile.implementations import Choices, extra_stages
from simulator.profile.load import load
from simulator.profile.modality import IMAGE
from simulator.profile.profile import Profile
from simulator.render.experiment import RenderOptions
from simulator.render.kept import ASIDE, Keeper, Row, keeper
from simulator.render.shards import Shards
from simulator.render.truth import table, write_truths
from simulator.results.json_text import parse_json, write_json

SUMMARY, SAMPLES, PROFILE = "summary.json", "samples.csv", "profile.yaml"


class RenderSummary(TypedDict):
    """What is in ``summary.json`` of rendered data.

    ``files`` has the SHA-256 of each shard; ``digest`` that of ``samples.csv``, which has that of
    each sample's PNG or tensor; ``skipped`` the reason of each sample that was left out.
    """

    profile: str
    overrides: list[str]
    model: str
    format: str
    samples: int
    skipped: dict[str, str]
    versions: dict[str, str | None]
    files: dict[str, str]
    digest: str


def render(command: Command[RenderOptions], asked: RenderOptions) -> RenderSummary:
    """Write every sample as one stack sees it."""
    profile, choices = chosen(asked.profile, asked.overrides)
    refuse_missing([(profile, choices)])
    with Session.open(
        asked.model, asked.data, asked.limit, asked.seed, asked.workers, None, asked.progress
    ) as session:
        job = _Rendering(session, profile, choices, asked)
        with claimed(command, asked, job.work(), profile=portable(asked.profile)):
            done = job.home / SUMMARY
            if done.exists():
                session.show.note(f"{job.home} is finished")
                finished: RenderSummary = parse_json(read_file(done, TEXT))
                return finished
            try:
                return job.run()
            except OSError as error:
                raise RunError(
                    f"{job.home}: cannot be written: {error.strerror or error}; what is there is "
                    f"safe: make room, then: simulate resume {job.home}"
                ) from error


class _Rendering:
    """One data set through one stack."""

    def __init__(
        self, session: Session, profile: Profile, choices: Choices, asked: RenderOptions
    ) -> None:
        card = session.card
        self.session, self.asked, self.home = session, asked, Path(asked.out)
        self.profile, self.choices = profile, choices
        session.builder.refuse_other_samples(profile)
        fed, spec, _ = feeding(profile, choices, card)
        whole = front_end(card, fed, choices, session.dataset.items, spec)
        self.items = session.sealed()
        self.chain = whole.until(Boundary.INPUT)
        self.reader: dict[str, Any] | None = None
        if asked.format != "npy":
            if card.modality.name != IMAGE:
                raise UserError(
                    f"--format {asked.format}: a PNG is of images, and {card.path} is of a model "
                    f"that takes {card.modality.name}s; use --format npy"
                )
            self.chain = _pixels(self.chain, asked.profile)
            self.reader = reader(profile, choices)
        self.keeper: Keeper = keeper(
            self.home, asked.format, card.task, card.modality.placing(profile, spec), self.items,
            card.modality.suffixes, asked.shard,
        )  # fmt: skip
        self.shards = Shards(self.home, asked.format)

    def work(self) -> dict[str, object]:
        """Return all that the files depend on besides the options."""
        stamp = self.session.card.task.stamp
        samples = [[item.name, stamp(item.truth), item.sha256] for item in self.items]
        steps = [recipe.identity() for recipe in self.chain.recipes]
        return {"samples": digest(samples), "stack": steps, "placing": self.keeper.identity()}

    def run(self) -> RenderSummary:
        """Write what is not there yet, then what is told of all of it."""
        rows: list[Row] = []
        skipped: dict[str, str] = {}
        size = self.asked.shard
        for number, start in enumerate(range(0, len(self.items), size)):
            found = self.shards.known(number)
            if found is None:
                found = self._group(start, self.items[start : start + size])
                self.shards.close(number, *found)
            rows += found[0]
            skipped |= found[1]
            self.session.show.advance(min(start + size, len(self.items)), len(self.items))
        if not rows:
            raise DataError(f"{self.session.dataset.root}: no sample could be used; {skipped}")
        return self._finish(rows, skipped)

    def _group(self, start: int, items: Sequence[Item]) -> tuple[list[Row], dict[str, str]]:
        """Send some samples through the stack, and keep what comes of each."""
        show, rows, skipped = self.session.show, list[Row](), dict[str, str]()
        asides = plan({}, asides={ASIDE: self.chain})
        results = self.session.executor.run(asides, items, self.keeper)
        with closing(results):  # type: ignore[type-var]
            for number, done in enumerate(results, start + 1):
                if done.skipped is None:
                    rows.append(done.seen)
                else:
                    skipped[done.item.name] = done.skipped
                show.advance(number, len(self.items))
        return rows, skipped

    def _finish(self, rows: Sequence[Row], skipped: dict[str, str]) -> RenderSummary:
        session, home = self.session, self.home
        write_truths(home, self.asked.format, session.card, rows, self.shards.folder)
        if self.reader is not None:
            text = yaml.safe_dump(self.reader, sort_keys=False, allow_unicode=True)
            write_whole(home / PROFILE, text.encode())
        files = ((f"{self.shards.folder}/{row.name}", row.sample, row.sha256) for row in rows)
        samples = table(("file", "sample", "sha256"), files)
        write_whole(home / SAMPLES, samples)
        summary: RenderSummary = {
            "profile": self.profile.name,
            "overrides": list(self.profile.overrides),
            "model": session.card.spec.name,
            "format": self.asked.format,
            "samples": len(rows),
            "skipped": skipped,
            "versions": self._versions(),
            "files": self.shards.digests(),
            "digest": hashlib.sha256(samples).hexdigest(),
        }
        write_json(home / SUMMARY, summary)
        self.shards.clean()
        return summary

    def _versions(self) -> dict[str, str | None]:
        used = [getattr(recipe, "choice", None) for recipe in self.chain.recipes]
        found: dict[str, str | None] = {}
        for choice in used:
            found |= registry.versions(choice.backend) if choice is not None else {}
        return found


def _pixels(chain: Chain, profile: str) -> Chain:
    """The steps before the one that normalizes pixels.

    Raises:
        UserError: no step of the stack does only that.
    """
    if chain.last.stage != "normalize" or len(chain.recipes) < 2:
        raise UserError(
            f"{profile}: what it sees before its numbers are normalized is not known, as its last "
            f"step is {chain.last.stage}; write the network's input: --format npy"
        )
    return Chain(chain.recipes[:-1])


PLAIN = "pillow_fp32"
"""The stack whose decoder reads them, and whose resizer has nothing to do."""
_RENDERED = ("decode", "color", "resize", "geometry")


def reader(profile: Profile, choices: Choices) -> dict[str, Any]:
    """Return the document of a profile that has the rest of a stack behind its pixels.

    Args:
        profile: the stack that was rendered.
        choices: its implementations.
    """
    found: dict[str, Any] = profile.spec.model_dump(
        mode="json", by_alias=True, exclude_defaults=True, exclude={"extends"}
    )
    plain = load(PLAIN).spec.model_dump(mode="json", by_alias=True, exclude_none=True)
    for stage, _ in extra_stages(profile, choices):  # they are in the pixels already
        found.pop(stage.section[0], None)
    color = {"format": "rgb", "order": found["color"]["order"]}
    evidence = found.get("evidence", {})
    return {
        **found,
        "schema": 1,
        "name": f"{profile.name}_rendered",
        "summary": f"reads what simulate render wrote of {profile.name}, and changes no pixel",
        "decode": plain["decode"],
        "color": color,
        "resize": plain["resize"],
        "geometry": {"kind": "squash"},
        "evidence": {name: one for name, one in evidence.items() if name not in _RENDERED},
    }
