"""Replays: the bundle of an audit run again, held against what it says."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from simulator.audit import bundle, figures, recount, verdict
from simulator.audit.answers import Measure, read_answers
from simulator.audit.archive import Archive
from simulator.audit.document import Audit
from simulator.audit.doubts import Doubts, doubts, stated
from simulator.audit.experiments import AuditOptions, ReplayOptions
from simulator.audit.ongoing import OngoingAudit
from simulator.audit.recorded import RecordedAudit
from simulator.audit.run import run_all
from simulator.audit.verdict import PairRun
from simulator.command.experiment import Experiment
from simulator.command.options import Options
from simulator.errors import DataError, RunError, UserError, one_line, unknown
from simulator.experiments.common import refuse_missing
from simulator.experiments.job import Job, Result
from simulator.experiments.session import Session
from simulator.pipeline.recorded import KINDS, recording
from simulator.pipeline.stack import ResolvedProfile
from simulator.report.verdict import concluded
from simulator.results.audits import Bundle, ReplayedPair, ReplaySummary
from simulator.results.json_text import JsonObject, finite, write_json
from simulator.results.layout import (
    MANIFEST,
    PAIRS_FOLDER,
    PROFILES_FOLDER,
    RECORDS,
    SUMMARY,
    TAILS_FOLDER,
)
from simulator.results.pair import PairSummary
from simulator.results.read import read_manifest, read_summary
from simulator.results.shared import Gate


def replay(experiment: Experiment[Any], asked: ReplayOptions) -> Result[ReplaySummary]:
    """Run the pairs of a bundle again, and say what changed and why.

    Rounds are not gone through again: latencies are those of the machine.
    """
    place, job = Path(asked.file), Job(experiment, asked)
    with Archive(place) as packed, tempfile.TemporaryDirectory(prefix="replay-") as scratch:
        sha256 = _intact(packed)
        recorded = RecordedAudit(packed, Path(scratch))
        models = _models(recorded)
        doubted = doubts(recorded)
        ongoing = _ongoing(job, recorded, models)
        request = job.request(models=_absolute(asked.models), images=_absolute(asked.images))
        with ongoing.sessions() as sessions, ongoing.writing(request, sessions) as begun:
            source = begun.document.model_copy(update={"path": str(place.resolve())})
            start = begun.model_copy(update={"document": source})
            write_json(ongoing.folder / MANIFEST, start)
            ongoing.copy_inputs(sessions)
            run_all(job, ongoing, sessions)
            found = _summary(recorded, ongoing, sha256, sessions, doubted)
            summary = found.model_copy(update={"seconds": job.seconds()})
            write_json(ongoing.folder / SUMMARY, summary)
            write_json(ongoing.folder / MANIFEST, start.model_copy(update={"status": "complete"}))
    return Result(summary, ongoing.folder)


def _asked(recorded: RecordedAudit, asked: ReplayOptions) -> AuditOptions:
    """Return what the audit is asked again: under its condition, with this call's options."""
    told: Any = recorded.manifest.get("under")
    shared = {field.name: getattr(asked, field.name) for field in fields(Options)}
    try:
        if told is not None:
            shared |= {"under": str(told["text"]), "trial": int(told["trial"] or 0)}
    except (KeyError, TypeError, ValueError) as error:
        raise RunError(f"{recorded.path}: {MANIFEST}: under: {one_line(error)}") from error
    return AuditOptions(document=recorded.path, **shared)


def _intact(packed: Archive) -> str:
    """Return the bundle's digest; refuse one that was changed."""
    checked = bundle.check(packed)
    if checked.problems:
        more = f" and {len(checked.problems) - 1} more" if checked.problems[1:] else ""
        raise RunError(
            f"{packed.path}: {checked.problems[0]}{more} since it was written; a bundle that was "
            "changed is not run (simulate verify names all)"
        )
    return checked.sha256


def _models(recorded: RecordedAudit) -> dict[str, JsonObject]:
    """Return for each model of a bundle what its manifest says of it.

    Raises:
        RunError: it says nothing.
    """
    listed = recorded.manifest.get("models")
    found = listed if isinstance(listed, Mapping) else {}
    for model in recorded.audit.spec.models:
        if not isinstance(found.get(model), Mapping):
            raise RunError(f"{recorded.path}: {MANIFEST} does not say what {model} is")
    return dict(found)


def _ongoing(job: Job, recorded: RecordedAudit, models: Mapping[str, JsonObject]) -> OngoingAudit:
    asked, audit = job.asked, recorded.audit
    given = _asked(recorded, asked)
    cards = _given("--model", asked.models, audit)
    data = _given("--data", asked.images, audit)
    missing = []
    for model, said in models.items():
        for option, found, key in (("--model", cards, "card"), ("--data", data, "data")):
            if said.get(key) is not None and model not in found:
                missing.append(
                    f"{model}: the bundle does not hold {said[key]}; give {option} {model}=PATH"
                )
    if missing:
        raise UserError("\n".join(missing))
    chosen = recorded.stacks(asked.overrides)
    refuse_missing(chosen.values())
    _refuse_lost(chosen)
    folder = job.folder(f"replay-{audit.spec.name}", {})
    references: dict[str, tuple[str, list[str]]] = {
        n: (str((folder / PROFILES_FOLDER / f"{n}.yaml").resolve()), []) for n in chosen
    }
    sources = {model: (cards.get(model), data.get(model)) for model in audit.spec.models}
    return OngoingAudit(audit, chosen, references, sources, folder, given)


def _given(option: str, written: Sequence[str], audit: Audit) -> dict[str, Path]:
    """Read ``[MODEL=]PATH``; a path without a name is for all models."""
    found: dict[str, Path] = {}
    for one in written:
        model, path = _parted(one)
        if model is None:
            found |= {name: Path(path) for name in audit.spec.models if name not in found}
        elif model not in audit.spec.models:
            raise UserError(f"{option} {one}: {unknown('model', model, audit.spec.models)}")
        else:
            found[model] = Path(path)
    return found


def _absolute(written: Sequence[str]) -> list[str]:
    """Spell paths out, so that the run can be resumed from anywhere."""
    parted = ((model, str(Path(path).resolve())) for model, path in map(_parted, written))
    return [path if model is None else f"{model}={path}" for model, path in parted]


def _parted(written: str) -> tuple[str | None, str]:
    """The model, None where none is named, and the path of ``[MODEL=]PATH``."""
    model, equals, path = written.partition("=")
    return (model, path) if equals and "/" not in model else (None, written)


def _refuse_lost(chosen: Mapping[str, ResolvedProfile]) -> None:
    """Refuse recordings that are not here: a bundle holds none."""
    lost = []
    for name, own in chosen.items():
        for stage in KINDS:
            try:
                recording(*own, stage)
            except DataError as error:
                lost.append(
                    f"{name}: {error}; the bundle does not hold recordings; give --set "
                    f"{name}.{stage}.recording=PATH"
                )
    if lost:
        raise UserError("\n".join(lost))


def _summary(
    recorded: RecordedAudit,
    ongoing: OngoingAudit,
    sha256: str,
    sessions: Mapping[str, Session],
    doubted: Doubts,
) -> ReplaySummary:
    spec, others = recorded.audit.spec, doubted.others
    pairs = [
        _pair(recorded, ongoing.folder, session, (model, deploy), doubted)
        for model, session in sessions.items()
        for deploy in spec.deploy
    ]
    same = all(pair.verdict != verdict.DIFFERENT for pair in pairs)
    summary = ReplaySummary(
        name=spec.name,
        bundle=Bundle(path=str(recorded.path), sha256=sha256),
        pairs=pairs,
        not_replayed=[tail_rule.rule.text for tail_rule in recorded.audit.tail_rules],
        stated=[*doubted.unverified, *stated(recorded, recount.STATED)],
        contradictions=[
            f"the audit's summary does not follow from its pairs and document: {one}"
            for one in others
        ],
        gate=Gate(passed=same and not others),
    )
    return concluded(summary)


def _pair(
    recorded: RecordedAudit, folder: Path, session: Session, pair: tuple[str, str], doubted: Doubts
) -> ReplayedPair:
    """Hold a pair that was run again, below *folder*, against the recorded one."""
    model, deploy = pair
    place = f"{PAIRS_FOLDER}/{model}/{deploy}"
    truths = {item.name: item.truth for item in session.dataset.items}
    measure = Measure(session.card.task, truths, session.seed, recorded.where(place))
    against = [*doubted.of_pairs.get(pair, ())]
    tail = f"{TAILS_FOLDER}/{model}/{deploy}"
    if recorded.audit.timed(deploy) and (times := recount.rounds_at(recorded, tail)):
        rounds = replace(measure, where=recorded.where(tail))
        against += [f"{tail}.{one}" for one in recount.of_tail(recorded, tail, times, rounds)]
    manifest = read_manifest(folder / place)
    answers = read_answers((folder / place / RECORDS).read_bytes(), manifest, place)
    new = PairRun(manifest, finite(read_summary(folder / place)[1]), answers)
    begun, answers = recorded.read_json(f"{place}/{MANIFEST}"), recorded.answers(place)
    try:
        summary = figures.of_shape(recorded.summary(place), PairSummary, recorded.where(place))
    except RunError as error:
        found = verdict.unreadable(one_line(error))
    else:
        found = verdict.compare(PairRun(begun, finite(summary), answers, against), new, measure)
    return ReplayedPair.model_validate({"model": model, "deploy": deploy, **found})
