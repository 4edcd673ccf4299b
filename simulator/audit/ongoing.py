"""An audit that is going on: its folder, its models opened, its stacks."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from simulator import checkout, machine, registry
from simulator.audit import document
from simulator.audit.document import TRAIN, Audit
from simulator.audit.experiments import AuditOptions
from simulator.command.options import Progress
from simulator.conditions.condition import under
from simulator.digests import sha256
from simulator.errors import RunError, UserError
from simulator.experiments.pairs import is_complete, refuse_changed
from simulator.experiments.session import Session
from simulator.experiments.summary import vocabulary
from simulator.latency import tail
from simulator.pipeline.stack import ResolvedProfile
from simulator.results.json_text import JsonObject, finite, write_json
from simulator.results.layout import (
    CARDS_FOLDER,
    DOCUMENT,
    MANIFEST,
    PAIRS_FOLDER,
    PROFILES_FOLDER,
    TAILS_FOLDER,
)
from simulator.results.lock import locked
from simulator.results.manifest import AuditManifest, Request
from simulator.results.pair import pair_summary
from simulator.results.read import read_manifest
from simulator.results.run_folder import cannot_resume, changed, check_free, clear
from simulator.results.tail import TailSummary
from simulator.typed import plain

_SAME = ("stacks", "models", "seed", "limit")
"""What of the manifest must not change until the audit is resumed, besides the document."""


@dataclass(frozen=True, slots=True)
class OngoingAudit:
    """An audit that is going on.

    Attributes:
        audit: what was asked.
        chosen: the stacks; the training stack is called ``train``.
        references: for each stack its profile and the overrides, as ``KEY=VALUE``.
        sources: for each model its card and its images; None are the built-in ones.
        folder: where the run goes.
        given: what the caller gave.
    """

    audit: Audit
    chosen: Mapping[str, ResolvedProfile]
    references: Mapping[str, tuple[str, list[str]]]
    sources: Mapping[str, tuple[Path | None, Path | None]]
    folder: Path
    given: AuditOptions

    @contextmanager
    def sessions(self) -> Iterator[dict[str, Session]]:
        """Open every model with its images, and hold the rules against what they will give."""
        spec, given = self.audit.spec, self.given
        if not self._goes_on():
            if self.folder.resolve() in self.audit.path.resolve().parents:
                raise UserError(f"{self.folder} holds the document; choose another --out")
            check_free(self.folder, given.overwrite)
        with ExitStack() as held:
            found = {}
            for model, (card, data) in self.sources.items():
                session = Session.open(
                    card, data, spec.limit, spec.seed,
                    given.workers, given.memory, given.progress,
                    under(given.under, given.trial), given.executor, given.isolate,
                )  # fmt: skip
                found[model] = held.enter_context(session)
                self._check(model, session)
            yield found

    def _check(self, model: str, session: Session) -> None:
        spec = self.audit.spec
        stacks = [name for name in spec.deploy if self.audit.timed(name)]
        rules = [rule for rule in self.audit.rules if rule.models is None or model in rule.models]
        task = session.card.task
        document.check(rules, pair_summary(task.Flips), vocabulary(session.card))
        if spec.tail and stacks:
            session.require_truth()
            deadlines = spec.tail.deadlines_ms
            timed = [o for o in self.audit.tail_rules if o.models is None or model in o.models]
            sides = (TRAIN, "deploy")
            document.check(timed, TailSummary, tail.vocabulary(task, sides, deadlines))

    @contextmanager
    def writing(self, request: Request, sessions: Mapping[str, Session]) -> Iterator[AuditManifest]:
        """Begin the run's folder, or go on with it; what stops the audit is told there.

        Yields:
            The manifest.

        Raises:
            RunError: the folder cannot be written, or is of another audit.
        """
        start = self._manifest(request, sessions)
        show = self.given.progress or Progress()
        with locked(self.folder, show.note):
            yield from self._written(start, sessions)

    def _manifest(self, request: Request, sessions: Mapping[str, Session]) -> AuditManifest:
        """Return what is known of the audit before its first pair."""
        versions: dict[str, str | None] = {}
        for _, choices in self.chosen.values():
            for choice in choices.values():
                versions |= registry.versions(choice.backend)
        found: dict[str, object] = {
            "status": "running",
            "command": request.command,
            "created": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
            "commit": checkout.commit(),
            "machine": machine.describe(versions),
            "document": {"path": str(self.audit.path.resolve()), "sha256": sha256(self.audit.path)},
            "seed": self.audit.spec.seed,
            "limit": self.audit.spec.limit,
            "models": {
                model: {
                    "name": session.card.spec.name,
                    "card": _place(self.sources[model][0]),
                    "data": _place(self.sources[model][1]),
                    "sha256": session.source.digest,
                    "card_sha256": sha256(session.card.path),
                }
                for model, session in sessions.items()
            },
            "under": next(
                (plain(one.condition) for one in sessions.values() if one.condition), None
            ),
            "stacks": {name: resolved(own) for name, own in self.chosen.items()},
            "request": request,
        }
        return AuditManifest.model_validate(finite(found))

    def _written(
        self, start: AuditManifest, sessions: Mapping[str, Session]
    ) -> Iterator[AuditManifest]:
        try:
            start = self._begin(start, sessions)
            try:
                yield start
            except BaseException:
                with suppress(OSError, RunError):
                    if read_manifest(self.folder)["status"] != "reporting":
                        stopped = start.model_copy(update={"status": "interrupted"})
                        write_json(self.folder / MANIFEST, stopped)
                raise
        except OSError as error:
            why = error.strerror or error
            raise RunError(f"{self.folder}: cannot be written: {why}") from error

    def _begin(self, start: AuditManifest, sessions: Mapping[str, Session]) -> AuditManifest:
        """Mark the run as going on; one that is refused stays as it is."""
        if self._goes_on():
            start = start.model_copy(update={"created": self._begun(start)})
            for model, session in sessions.items():
                runs = (
                    (self.folder / kind / model / deploy, self.sides(deploy))
                    for kind in (PAIRS_FOLDER, TAILS_FOLDER)
                    for deploy in self.audit.spec.deploy
                )
                refuse_changed(session, [run for run in runs if is_complete(run[0])])
        else:
            write_json(self.folder / MANIFEST, start)
            clear(self.folder)
        write_json(self.folder / MANIFEST, start)
        return start

    def _begun(self, start: AuditManifest) -> str:
        """Return when the audit in the folder was begun; refuse to go on with another one."""
        old = read_manifest(self.folder)
        parts = changed(old, start, _SAME)
        said = old.get("document")
        if not isinstance(said, Mapping) or said.get("sha256") != start.document.sha256:
            parts.insert(0, "document")
        if parts:
            raise cannot_resume(self.folder, parts)
        return str(old.get("created"))

    def _goes_on(self) -> bool:
        """Whether the folder has an audit that is to be resumed."""
        return self.given.resume and (self.folder / MANIFEST).is_file()

    def copy_inputs(self, sessions: Mapping[str, Session]) -> None:
        """Put the document, the profiles as resolved and the model cards into the run."""
        for inner in (PROFILES_FOLDER, CARDS_FOLDER):
            (self.folder / inner).mkdir(exist_ok=True)
        target = self.folder / DOCUMENT
        if self.audit.path.resolve() != target.resolve():
            shutil.copyfile(self.audit.path, target)
        for name, chosen in self.chosen.items():
            text = yaml.safe_dump(resolved(chosen), sort_keys=False, allow_unicode=True)
            place = self.folder / PROFILES_FOLDER / f"{name}.yaml"
            place.write_text(text, encoding="utf-8", newline="\n")
        for model, session in sessions.items():
            shutil.copyfile(session.card.path, self.folder / CARDS_FOLDER / f"{model}.yaml")

    def timed(self) -> list[tuple[str, str]]:
        """Return the model and the stack of every pair that has a tail."""
        if self.audit.spec.tail is None:
            return []
        stacks = [name for name in self.audit.spec.deploy if self.audit.timed(name)]
        return [(model, deploy) for model in self.sources for deploy in stacks]

    def sides(self, deploy: str) -> dict[str, ResolvedProfile]:
        """Return the profiles of a pair."""
        return {"train": self.chosen[TRAIN], "deploy": self.chosen[deploy]}

    def pair(self, deploy: str) -> dict[str, Any]:
        """Return how another job is asked for a pair: its profiles and overrides."""
        sides = {"train": self.references[TRAIN], "deploy": self.references[deploy]}
        return {
            **{side: reference for side, (reference, _) in sides.items()},
            "overrides": [f"{side}.{one}" for side, (_, own) in sides.items() for one in own],
        }


def resolved(chosen: ResolvedProfile) -> JsonObject:
    """Return a profile that needs no other: what it inherits and overrides is written in it.

    It extends nothing, so that what it removed of another stays removed.
    """
    profile, _ = chosen
    found: JsonObject = profile.spec.model_dump(
        mode="json", by_alias=True, exclude_none=True, exclude={"extends"}
    )
    return found


def _place(path: Path | None) -> str | None:
    return None if path is None else str(path.resolve())
