"""The audit: several deployment stacks and models, and the rules by which they may be shipped."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

import yaml

from simulator.audit import bundle, document, figures, junit, locations, markdown
from simulator.audit.document import TRAIN, Audit, DocumentRule, load_audit
from simulator.audit.manifest import check_same, manifest, resolved
from simulator.conditions.condition import under
from simulator.errors import ProfileError, RunError, UserError
from simulator.experiments.common import refuse_missing, stacks_of
from simulator.experiments.job import Job, Options, Result
from simulator.experiments.keywords import explicit
from simulator.experiments.pairs import Wanted, is_complete, refuse_changed, run_pairs
from simulator.experiments.session import Session, Silent
from simulator.experiments.summary import vocabulary
from simulator.latency import tail
from simulator.pipeline.stack import Chosen
from simulator.results.audits import AuditSummary
from simulator.results.json_text import json_text, write_json
from simulator.results.layout import (
    CARDS_FOLDER,
    DOCUMENT,
    JUNIT,
    MANIFEST,
    MARKDOWN,
    PAIRS_FOLDER,
    PROFILES_FOLDER,
    SUMMARY,
    TAILS_FOLDER,
)
from simulator.results.lock import locked
from simulator.results.manifest import AuditManifest
from simulator.results.pair import pair_summary
from simulator.results.read import read_manifest
from simulator.results.store import Report, check_free, clear
from simulator.results.timed import TailSummary

IN_DOCUMENT = ("data", "limit", "seed")
"""Options that an audit's document says."""


@explicit(*IN_DOCUMENT)
def audit(document: str | Path, **options: Unpack[Options]) -> Result[AuditSummary]:
    """Run an audit.

    Args:
        document: the audit's YAML document.
        options: see :class:`simulator.Options`; images, limit and seed are the document's to say.

    Returns:
        The summary, and where the run was written: ``audit.md``, ``junit.xml``, ``bundle.zip``,
        the run of each pair in ``pairs/MODEL/STACK``, and of its rounds in ``tail/MODEL/STACK``.

    Raises:
        UserError: anything that the caller can fix; the message says how.

    Example:
        >>> document = '''
        ... schema: 1
        ... name: first
        ... summary: May the built-in model go to OpenCV?
        ... train: pillow_fp32
        ... deploy: {box: opencv_fp32}
        ... limit: 4
        ... rules: [{fail_on: flip_rate > 50%, because: an example}]
        ... '''
        >>> size = Path("audit.yaml").write_text(document)
        >>> audit("audit.yaml").passed
        True
    """
    job = Job("audit", None, options)
    refuse_document_options(options)
    asked = load_audit(Path(document))
    references = {name: (str(path), own) for name, (path, own) in asked.profiles().items()}
    chosen = _opened(asked, references)
    refuse_missing(chosen.values())
    ongoing = OngoingAudit(
        asked,
        chosen,
        references,
        {model: (asked.card(model), asked.data(model)) for model in asked.spec.models},
        job.folder(f"audit-{asked.spec.name}", {}),
        options,
    )
    request = {
        "command": "audit",
        "arguments": {"document": str(asked.path.resolve()), **job.condition()},
    }
    with ongoing.sessions() as sessions, ongoing.writing(request, sessions) as start:
        ongoing.copy_inputs(sessions)
        run_all(job, ongoing, sessions, len(ongoing.timed()))
        times(ongoing, len(sessions))
        found = figures.summary(ongoing.folder, asked, chosen)
        summary = found.model_copy(update={"seconds": job.seconds()})
        finish(ongoing.folder, start, summary, job.report)
    return Result(summary, ongoing.folder)


def refuse_document_options(options: Options) -> None:
    """Refuse options that the document says."""
    for name in IN_DOCUMENT:
        if options.get(name) is not None:
            raise UserError(f"{name}: it is set in the audit's document; change it there")


def _opened(asked: Audit, references: Mapping[str, tuple[str, list[str]]]) -> dict[str, Chosen]:
    """Load every stack, and find the cards and images; all mistakes at once, in their locations."""
    problems = [*locations.missing_files(asked)]
    chosen: dict[str, Chosen] = {}
    for name, (reference, own) in references.items():
        try:
            chosen |= stacks_of({name: reference}, [f"{name}.{one}" for one in own])
        except UserError as error:
            problems += [locations.located(asked, line) for line in str(error).splitlines()]
    if problems:
        raise ProfileError(list(dict.fromkeys(problems)))
    return chosen


@dataclass(frozen=True, slots=True)
class OngoingAudit:
    """An audit that is going on.

    Attributes:
        audit: what was asked.
        chosen: the stacks; the training stack is called ``train``.
        references: for each stack its profile and the overrides, as ``KEY=VALUE``.
        sources: for each model its card and its images; None are the built-in ones.
        folder: where the run goes.
        options: what the caller gave.
    """

    audit: Audit
    chosen: Mapping[str, Chosen]
    references: Mapping[str, tuple[str, list[str]]]
    sources: Mapping[str, tuple[Path | None, Path | None]]
    folder: Path
    options: Options

    @contextmanager
    def sessions(self) -> Iterator[dict[str, Session]]:
        """Open every model with its images, and hold the rules against what they will give."""
        spec, given = self.audit.spec, self.options
        if not self._goes_on():
            if self.folder.resolve() in self.audit.path.resolve().parents:
                raise UserError(f"{self.folder} holds the document; choose another --out")
            check_free(self.folder, given.get("overwrite", False))
        with ExitStack() as held:
            found = {}
            for model, (card, data) in self.sources.items():
                session = Session(
                    card, data, spec.limit, spec.seed,
                    given.get("workers"), given.get("memory"), given.get("progress"),
                    under(given.get("under"), given.get("trial", 0)),
                    given.get("executor", "local"),
                )  # fmt: skip
                found[model] = held.enter_context(session)
                self._check(model, session)
            yield found

    def _check(self, model: str, session: Session) -> None:
        spec = self.audit.spec
        stacks = [name for name in spec.deploy if self.audit.timed(name)]
        rules = [one for one in self.audit.rules if one.models is None or model in one.models]
        task = session.card.task
        document.check(rules, pair_summary(task.Flips), vocabulary(session.card))
        if spec.tail and stacks:
            session.require_truth()
            deadlines = spec.tail.deadlines_ms
            timed = [o for o in self.audit.tail_rules if o.models is None or model in o.models]
            sides = (TRAIN, "deploy")
            document.check(timed, TailSummary, tail.vocabulary(task, sides, deadlines))

    @contextmanager
    def writing(
        self, request: Mapping[str, Any], sessions: Mapping[str, Session]
    ) -> Iterator[AuditManifest]:
        """Begin the run's folder, or go on with it; what stops the audit is told there.

        Yields:
            The manifest.

        Raises:
            RunError: the folder cannot be written, or is of another audit.
        """
        start = manifest(request, self.audit, self.chosen, self.sources, sessions)
        show = self.options.get("progress") or Silent()
        with locked(self.folder, show.note):
            yield from self._written(start, sessions)

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
            start = start.model_copy(update={"created": check_same(self.folder, start)})
            for model, session in sessions.items():
                runs = (
                    (self.folder / kind / model / deploy, self.sides(deploy))
                    for kind in (PAIRS_FOLDER, TAILS_FOLDER)
                    for deploy in self.audit.spec.deploy
                )
                refuse_changed(session, [one for one in runs if is_complete(one[0])])
        else:
            write_json(self.folder / MANIFEST, start)
            clear(self.folder)
        write_json(self.folder / MANIFEST, start)
        return start

    def _goes_on(self) -> bool:
        """Whether the folder has an audit that is to be resumed."""
        return bool(self.options.get("resume")) and (self.folder / MANIFEST).is_file()

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

    def rules(self, model: str, deploy: str) -> list[DocumentRule]:
        """Return the rules on a pair."""
        return [one for one in self.audit.rules if one.is_for(model, deploy)]

    def sides(self, deploy: str) -> dict[str, Chosen]:
        """Return the profiles of a pair."""
        return {"train": self.chosen[TRAIN], "deploy": self.chosen[deploy]}

    def pair(self, deploy: str) -> dict[str, Any]:
        """Return how another job is asked for a pair: its profiles and overrides."""
        sides = {"train": self.references[TRAIN], "deploy": self.references[deploy]}
        return {
            **{side: reference for side, (reference, _) in sides.items()},
            "overrides": [f"{side}.{one}" for side, (_, own) in sides.items() for one in own],
        }


def run_all(
    job: Job, ongoing: OngoingAudit, sessions: Mapping[str, Session], after: int = 0
) -> None:
    """Run every pair that is not finished: for each model one plan.

    Args:
        job: the call.
        ongoing: the audit.
        sessions: by model.
        after: how many passes over the samples follow.
    """
    for number, (model, session) in enumerate(sessions.items(), 1):
        session.show.stage(number, len(sessions) + after, model)
        card, data = ongoing.sources[model]
        spec = ongoing.audit.spec
        inner: Options = {"data": data, "limit": spec.limit, "seed": spec.seed}
        if session.under:
            inner |= {"under": session.under.condition.text, "trial": session.under.trial}
        alone = Job("run", card, inner)
        wanted = []
        for deploy in spec.deploy:
            rules = [one.rule for one in ongoing.rules(model, deploy)]
            request = alone.request(
                **ongoing.pair(deploy),
                pixels="own",
                fail_on=[rule.text for rule in rules],
                strict=False,
                quick=True,
                undecided="fail",
            )
            wanted.append(
                Wanted(
                    ongoing.sides(deploy),
                    ongoing.pair(deploy)["overrides"],
                    rules,
                    ongoing.folder / PAIRS_FOLDER / model / deploy,
                    request,
                )
            )
        run_pairs(job, session, wanted)


def times(ongoing: OngoingAudit, before: int) -> None:
    """Go through the rounds of every stack that has a tail, after some passes, one by one."""
    spec, given = ongoing.audit.spec, ongoing.options
    if spec.tail is None:
        return
    show, pairs = given.get("progress") or Silent(), ongoing.timed()
    for number, (model, deploy) in enumerate(pairs, before + 1):
        card, data = ongoing.sources[model]
        folder = ongoing.folder / TAILS_FOLDER / model / deploy
        if is_complete(folder):
            continue
        show.stage(number, before + len(pairs), f"rounds of {model} / {deploy}")
        rules = [one for one in ongoing.audit.tail_rules if one.is_for(model, deploy)]
        tail.tail(
            **ongoing.pair(deploy),
            model=card,
            deadlines_ms=spec.tail.deadlines_ms,
            under=given.get("under"),
            trial=given.get("trial", 0),
            rounds=spec.tail.rounds,
            max_rounds=spec.tail.max_rounds,
            max_minutes=spec.tail.max_minutes,
            fail_on=[one.rule.text for one in rules],
            data=data, limit=spec.limit, seed=spec.seed, out=folder, resume=True,
            workers=given.get("workers"), memory=given.get("memory"),
            progress=given.get("progress"),
        )  # fmt: skip


def finish(
    folder: Path, start: AuditManifest, summary: AuditSummary, report: Report | None
) -> None:
    """Write what an audit leaves besides the runs of its pairs, and mark it complete."""
    whole = start.model_copy(update={"status": "complete", "seconds": summary.seconds})
    write_json(folder / SUMMARY, summary)
    (folder / JUNIT).write_bytes(junit.document(summary, start.created))
    digest = bundle.write(folder, {MANIFEST: json_text(whole).encode()})
    text = markdown.comment(summary, digest)
    (folder / MARKDOWN).write_text(text, encoding="utf-8", newline="\n")
    if report:
        write_json(folder / MANIFEST, start.model_copy(update={"status": "reporting"}))
        report(folder)
    write_json(folder / MANIFEST, whole)
