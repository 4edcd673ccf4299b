"""The experiments ``audit`` and ``replay``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from simulator.command.experiment import Experiment
from simulator.command.options import Option, Options, Under

if TYPE_CHECKING:
    from simulator.results.audits import AuditSummary

_SPECIMEN = """\
schema: 1
name: specimen
summary: May it be shipped?
train: pillow_fp32
deploy: {opencv: opencv_fp32}
models: {example: {}}
limit: 4
rules: [{fail_on: flip_rate > 90%, because: most answers must stay}]
"""


@dataclass(frozen=True, kw_only=True)
class AuditOptions(Under, Options):
    """What ``simulate audit`` takes; model, data, limit and seed are the document's to say."""

    document: Annotated[str | Path, Option(
        "the audit's document (YAML)", "AUDIT", "file", positional=True
    )]  # fmt: skip


class Audit(Experiment[AuditOptions]):
    """May these stacks be shipped? Check several stacks and models against a document's rules.

      simulate audit audit.yaml --out audit

    The document is described in docs/audit.md. The run folder has audit.md for a pull request,
    junit.xml with a test case for each rule, the run of each pair, and bundle.zip, which others can
    check with simulate verify and simulate replay. The exit code is 1 if a rule fails.
    """

    name = "audit"
    about = "check several stacks and models against the rules of one document"
    Options = AuditOptions
    runs = "simulator.audit.run:audit"
    returns = (
        "The summary, and where the run was written: ``audit.md``, ``junit.xml``, ``bundle.zip``, "
        "the run of each pair in ``pairs/MODEL/STACK``, and of its rounds in ``tail/MODEL/STACK``."
    )
    summary = "simulator.results.audits:AuditSummary"
    screen = "simulator.audit.screen:audit"
    verdict = "simulator.audit.screen:audit_verdict"
    signed = True

    def specimen(self, folder: Path) -> Mapping[str, object]:
        """Return a document of one pair and one rule, on four built-in images."""
        place = folder / "audit.yaml"
        place.write_text(_SPECIMEN, "utf-8")
        return {"document": str(place)}

    def report(self, folder: Path) -> None:
        """Write the page of every run below the audit that has one, and its own."""
        from simulator.results.read import read_summary

        for pair in read_summary(folder)[1]["pairs"]:
            for place in filter(None, (pair["folder"], pair["tail"])):
                super().report(folder / place)
        super().report(folder)

    def question(self, summary: AuditSummary) -> tuple[str, str]:
        """Return the title of a run's page, and the question that it answers."""
        question = summary.summary or (
            f"May the stacks of {summary.name} be shipped in place of {summary.train}?"
        )
        return f"Audit {summary.name}", question


@dataclass(frozen=True, kw_only=True)
class ReplayOptions(Options):
    """What ``simulate replay`` takes; condition, limit and seed are the bundle's to say."""

    file: Annotated[str | Path, Option(
        "the bundle.zip of an audit", "BUNDLE", "file", positional=True
    )]  # fmt: skip
    models: Annotated[Sequence[str], Option(
        "the card of a model that is not built in; repeatable", "[MODEL=]CARD", flag="model"
    )] = ()  # fmt: skip
    images: Annotated[Sequence[str], Option(
        "data that are not built in; repeatable", "[MODEL=]PATH", flag="data"
    )] = ()  # fmt: skip
    overrides: Annotated[Sequence[str], Option(
        "override one field, e.g. board.runtime.recording=here/recording.yaml", "STACK.KEY=VALUE",
        flag="set",
    )] = ()  # fmt: skip


class Replay(Experiment[ReplayOptions]):
    r"""Run the pairs of an audit's bundle again, and say what changed and why.

      simulate replay audit/bundle.zip
      simulate replay audit/bundle.zip --model model.yaml --data val/

    Each pair is bit-equal, equal within stated noise, or different (docs/audit.md says when). The
    possible causes are listed: versions, processor flags, digests of the model and of the images,
    values of profiles. A bundle contains no images and no model. The exit code is 1 if a pair is
    different.

    A replay runs what the bundle's profiles say. Read them before you run a bundle from others.
    """

    name = "replay"
    about = "run the bundle of an audit again, and say what changed and why"
    Options = ReplayOptions
    runs = "simulator.audit.replay:replay"
    returns = (
        "The summary, and where the run was written, as an audit's. Its gate has passed where no "
        "pair is different."
    )
    summary = "simulator.results.audits:ReplaySummary"
    screen = "simulator.audit.screen:replay"
    verdict = "simulator.audit.screen:replay_verdict"
    reported = False

    def specimen(self, folder: Path) -> Mapping[str, object]:
        """Return the bundle of the specimen of an audit, which is run for it."""
        audit = Audit()
        asked = AuditOptions(**audit.specimen(folder), out=folder / "audit")  # type: ignore[arg-type]
        return {"file": str(audit.run(asked).folder / "bundle.zip")}
