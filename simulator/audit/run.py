"""The audit: several deployment stacks and models, and the rules by which they may be shipped."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from simulator.analysis.gate import Borne
from simulator.audit import bundle, figures, junit, markdown
from simulator.audit.document import Audit, load_audit
from simulator.audit.experiments import AuditOptions
from simulator.audit.ongoing import OngoingAudit
from simulator.command.experiment import Experiment
from simulator.command.options import Progress
from simulator.errors import ProfileError, UserError
from simulator.experiments.common import refuse_missing, stacks_of
from simulator.experiments.compare.experiment import Compare, CompareOptions
from simulator.experiments.job import Job, Result
from simulator.experiments.pairs import Wanted, is_complete, run_pairs
from simulator.experiments.session import Session
from simulator.latency import tail
from simulator.latency.experiments import Tail, TailOptions
from simulator.pipeline.stack import ResolvedProfile
from simulator.profile.document import Key
from simulator.profile.suite import overrides
from simulator.results.audits import AuditSummary
from simulator.results.json_text import json_text, write_json
from simulator.results.layout import JUNIT, MANIFEST, MARKDOWN, PAIRS_FOLDER, SUMMARY, TAILS_FOLDER
from simulator.results.manifest import AuditManifest
from simulator.results.read import read_summary
from simulator.results.store import Report


def audit(experiment: Experiment[Any], given: AuditOptions) -> Result[AuditSummary]:
    """Run an audit.

    Examples:
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
    job = Job(experiment, given)
    asked = load_audit(Path(given.document))
    asked.require_rules()
    references = asked.profiles()
    chosen = _opened(asked, references)
    refuse_missing(chosen.values())
    ongoing = OngoingAudit(
        asked,
        chosen,
        references,
        {model: (asked.card(model), asked.data(model)) for model in asked.spec.models},
        job.folder(f"audit-{asked.spec.name}", {}),
        given,
    )
    request = job.request()
    with ongoing.sessions() as sessions, ongoing.writing(request, sessions) as start:
        ongoing.copy_inputs(sessions)
        run_all(job, ongoing, sessions, len(ongoing.timed()))
        times(ongoing, len(sessions))
        found = figures.collect(
            lambda place: read_summary(ongoing.folder / place)[1], asked, chosen
        )
        summary = found.model_copy(update={"seconds": job.seconds()})
        finish(ongoing.folder, start, summary, job.report)
    return Result(summary, ongoing.folder)


def _opened(
    asked: Audit, references: Mapping[str, tuple[str, list[str]]]
) -> dict[str, ResolvedProfile]:
    """Load every stack, and find the cards and images; all mistakes at once, in their locations."""
    problems = [*_missing_files(asked)]
    chosen: dict[str, ResolvedProfile] = {}
    for name, (reference, own) in references.items():
        try:
            chosen |= stacks_of({name: reference}, [f"{name}.{one}" for one in own])
        except UserError as error:
            problems += [_located(asked, line) for line in str(error).splitlines()]
    if problems:
        raise ProfileError(list(dict.fromkeys(problems)))
    return chosen


def _missing_files(audit: Audit) -> Iterator[str]:
    """Name the model cards and images that are not there, each as ``file:line: key: what``."""
    for model, spec in audit.spec.models.items():
        card, data = audit.card(model), audit.data(model)
        if card is not None and not os.path.isfile(card):
            yield _line(audit, ("models", model, "card"), f"there is no file {card}")
        if data is not None and not os.path.exists(data):
            key: Key = ("models", model, "data") if spec.data else ("data",)
            yield _line(audit, key, f"there is no file or folder {data}")


def _located(audit: Audit, problem: str) -> str:
    """Say where in the document a value stands, of which a message says ``--set STACK.KEY=``."""
    for name, stack, key in audit.stacks():
        for field, override in zip(stack.set, overrides(stack.set), strict=True):
            told = f"--set {name}.{override}: "
            if problem.startswith(told):
                what = problem.removeprefix(told).removeprefix(f"{field}: ")
                return _line(audit, (*key, "set", field), what)
    return problem


def _line(audit: Audit, key: Key, what: str) -> str:
    return f"{audit.document.where(key)}: {'.'.join(map(str, key))}: {what}"


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
        wanted = []
        for deploy in spec.deploy:
            rules = [document_rule.rule for document_rule in ongoing.audit.of_pair(model, deploy)]
            options = CompareOptions(
                **ongoing.pair(deploy), model=card, data=data, limit=spec.limit, seed=spec.seed,
                fail_on=[rule.text for rule in rules if not isinstance(rule, Borne)],
                allow_failed=spec.allow_failed, quick=True,
                under=ongoing.given.under, trial=ongoing.given.trial,
            )  # fmt: skip
            request = Job(Compare(), options).request()
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
    spec, given = ongoing.audit.spec, ongoing.given
    if spec.tail is None:
        return
    show, pairs = given.progress or Progress(), ongoing.timed()
    for number, (model, deploy) in enumerate(pairs, before + 1):
        card, data = ongoing.sources[model]
        folder = ongoing.folder / TAILS_FOLDER / model / deploy
        if is_complete(folder):
            continue
        show.stage(number, before + len(pairs), f"rounds of {model} / {deploy}")
        rules = [
            tail_rule for tail_rule in ongoing.audit.tail_rules if tail_rule.is_for(model, deploy)
        ]
        asked = TailOptions(
            **ongoing.pair(deploy),
            model=card,
            deadlines_ms=spec.tail.deadlines_ms,
            under=given.under,
            trial=given.trial,
            rounds=spec.tail.rounds,
            max_rounds=spec.tail.max_rounds,
            max_minutes=spec.tail.max_minutes,
            fail_on=[rule.rule.text for rule in rules],
            allow_failed=spec.allow_failed,
            data=data, limit=spec.limit, seed=spec.seed, out=folder, resume=True,
            workers=given.workers, memory=given.memory, progress=given.progress,
            isolate=given.isolate,
        )  # fmt: skip
        tail.tail(Tail(), asked)


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
