"""The audit: several deployment stacks and models, and the rules by which they may be shipped."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Unpack

from simulator.analysis.gate import Borne
from simulator.audit import bundle, figures, junit, locations, markdown
from simulator.audit.document import Audit, load_audit
from simulator.audit.ongoing import OngoingAudit
from simulator.errors import ProfileError, UserError
from simulator.experiments.common import refuse_missing, stacks_of
from simulator.experiments.job import Job, Options, Result, borne_as_asked
from simulator.experiments.keywords import explicit
from simulator.experiments.pairs import Wanted, is_complete, run_pairs
from simulator.experiments.session import Session, Silent
from simulator.latency import tail
from simulator.pipeline.stack import Chosen
from simulator.results.audits import AuditSummary
from simulator.results.json_text import json_text, write_json
from simulator.results.layout import (
    JUNIT,
    MANIFEST,
    MARKDOWN,
    PAIRS_FOLDER,
    SUMMARY,
    TAILS_FOLDER,
)
from simulator.results.manifest import AuditManifest
from simulator.results.store import Report

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
    job = Job("audit", None, options)
    refuse_document_options(options)
    asked = load_audit(Path(document))
    asked.require_rules()
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
        "arguments": {"document": str(asked.path.resolve()), **job.circumstances()},
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
            rules = [one.rule for one in ongoing.audit.of_pair(model, deploy)]
            request = alone.request(
                **ongoing.pair(deploy),
                pixels="own",
                fail_on=[rule.text for rule in rules if not isinstance(rule, Borne)],
                **borne_as_asked(spec.allow_failed),
                strict=False,
                quick=True,
                until_decided=False,
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
            allow_failed=spec.allow_failed,
            data=data, limit=spec.limit, seed=spec.seed, out=folder, resume=True,
            workers=given.get("workers"), memory=given.get("memory"),
            progress=given.get("progress"), isolate=given.get("isolate", "auto"),
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
