"""Compare finished sweeps of several models by the recipe of their training."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from simulator.analysis.gate import borne
from simulator.checkpoints.figures import compared, grouped
from simulator.checkpoints.measured import measure, opened, shared_samples
from simulator.checkpoints.sections import sections
from simulator.errors import RunError, UserError
from simulator.report import page
from simulator.report.sections.head import Head, outcomes
from simulator.report.sections.section import Badge
from simulator.report.verdict import NOT_OK
from simulator.report.words import count, failures, title
from simulator.results.checkpoints import Checkpoints
from simulator.results.json_text import write_json
from simulator.results.read import read_run
from simulator.statistics.bootstrap import Resamples

JSON, PAGE = "checkpoints.json", "checkpoints.html"
"""What a comparison is written as."""


def checkpoints(
    runs: Sequence[str | Path],
    *,
    out: str | Path | None = None,
    allow_failed: str | None = None,
    groups: Sequence[str] = (),
) -> Checkpoints:
    """Compare the models of finished sweeps: noise against clean accuracy, grouped by recipe.

    The recipe is that of the card's ``checkpoint`` section; a model without one is a recipe of its
    own. The first model's recipe is what the others are compared with. The model cards and the data
    must still be where they were.

    Args:
        runs: folders of sweeps of the same suite, training stack and samples.
        out: an existing folder for ``checkpoints.json`` and ``checkpoints.html``; nothing is
            written by default.
        allow_failed: the share of samples, such as ``0.1%``, on which a model may fail that another
            one answers; by default one such sample fails the gate.
        groups: ``NAME=PATTERN[,PATTERN]`` each, such as ``large=*-large``: recipes that fit are
            compared as one group with those of the first group, and those that fit none are left
            out. By default each recipe is a group.

    Returns:
        The content of ``checkpoints.json``. Metrics, losses and rates are fractions.

    Raises:
        UserError: the runs cannot be compared, the share is none, or the files cannot be written.

    Examples:
        >>> from simulator import sweep
        >>> found = checkpoints([sweep("robustmq-s", limit=2)[0].folder] * 2)
        >>> [one.model for one in found.checkpoints]
        ['efficientnet-lite0', 'efficientnet-lite0']
    """
    rule = borne(allow_failed)
    if len(runs) < 2:
        raise UserError("give two runs or more of simulate sweep")
    patterns = _patterns(groups)
    sweeps = [opened(Path(run)) for run in runs]
    names = shared_samples(sweeps)
    keys = [key for key in sweeps[0].keys if all(key in sweep.keys for sweep in sweeps)]
    if not keys:
        raise UserError("there is no option that every model ran")
    task, seed = sweeps[0].task, sweeps[0].manifest.seed
    draws = Resamples(len(names), seed, task.resamples)
    models = [measure(sweep, keys, names, draws) for sweep in sweeps]
    found = compared(models, grouped(models, patterns), keys, len(names), draws.number, rule)
    if out is not None:
        write(found, Path(out))
    return found


def _patterns(groups: Sequence[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for text in groups:
        name, _, patterns = text.partition("=")
        if not name or not patterns:
            raise UserError(f"--group {text}: write NAME=PATTERN, such as large='*-large'")
        if name in found:
            raise UserError(f"--group {name} is given twice; write {name}=PATTERN,PATTERN once")
        found[name] = patterns.split(",")
    return found


def write(found: Checkpoints, out: Path) -> Path:
    """Write the figures and the page.

    Args:
        found: the figures.
        out: a folder.

    Returns:
        The page.

    Raises:
        RunError: a file cannot be written.
    """
    try:
        write_json(out / JSON, found)
    except OSError as error:
        raise RunError(f"{out / JSON}: cannot be written: {error.strerror or error}") from error
    manifest = read_run(Path(found.checkpoints[0].run))[0]
    made = page.Page(
        _head(found),
        sections(found, out),
        manifest.machine,
        str(manifest.created),
        [
            count(found.samples, found.sample_unit),
            *(f"{recipe.checkpoints} of {name}" for name, recipe in found.recipes.items()),
        ],
        [f"fails: {line}" for line in failures(found)],
        numbers=JSON,
    )
    return page.put(made.html(), out / PAGE)


def _head(found: Checkpoints) -> Head:
    metric = title(found.task, found.metric)
    names = ", ".join(found.recipes)
    return Head(
        f"{found.suite}: {len(found.checkpoints)} checkpoints",
        f"Do {names} differ in what {found.suite} costs them in {metric}?",
        found.verdict,
        [],
        None if found.gate.passed else Badge(NOT_OK, "bad"),
        [
            f"Every option is a change of {found.train.profile}, the training stack of all.",
            *outcomes(found.gate),
        ],
    )
