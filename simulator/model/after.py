"""The last steps to an artifact: passes over the final model file, and its compilation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from simulator import machine, registry
from simulator.contract import Runtime, Stage
from simulator.contract.model_format import suffix_of
from simulator.contract.passes import PASSES, AfterPass, Request
from simulator.errors import ModelError, ProfileError
from simulator.model.card import Card
from simulator.model.store import Artifact, about, digest, entry, makers
from simulator.profile import messages
from simulator.profile.implementations import Choice, Choices

REPORT = "report.json"
"""The file with the pass's report, in the folder of the changed model file."""


def finish(card: Card, made: Artifact, choices: Choices, after: Sequence[Request] = ()) -> Artifact:
    """Apply the passes of the phase ``after``, then let the runtime compile the result.

    Args:
        card: the model card.
        made: the result of :func:`prepare`.
        choices: the profile's implementations.
        after: the passes, in order; their reports are in the artifact's ``reports``.

    Raises:
        UserError: there is no such pass.
        ModelError: a pass cannot act on this file, or has no such option.
    """
    runtime = choices[Stage.RUNTIME]
    for request in after:
        made = _altered(card, made, runtime, request)
    return _compiled(card, made, runtime)


def _altered(card: Card, given: Artifact, runtime: Choice, request: Request) -> Artifact:
    """Let a pass change the file that the runtime opens."""
    one = PASSES[request.name]
    if not isinstance(one, AfterPass):
        raise ModelError(
            f"{one.name} is a pass of the phase {one.phase}; request it with graph.{one.name} in a "
            "profile, it cannot run after quantization"
        )
    if given.format not in one.formats:
        raise ModelError(
            f"{one.name} changes only {' and '.join(one.formats)} files, but "
            f"{runtime.backend.name} opens a file of the format {given.format}"
        )
    try:
        options = messages.checked(one.Options, request.options, lambda _: one.name, "options")
    except ProfileError as error:
        raise ModelError(str(error)) from None
    asked = [one.name, PASSES.package(one.name), options.model_dump(mode="json")]
    key = digest([given.key, "after", asked, makers()])
    name = f"model{suffix_of(given.format)}"

    def make(draft: Path) -> None:
        report = one.apply(given.path, draft / name, options)
        (draft / REPORT).write_text(report.model_dump_json())

    with about(card, f"{one.name} cannot change"):
        folder = entry("artifacts", card, key, make)
    report = one.Report.model_validate_json((folder / REPORT).read_text())
    return replace(given, path=folder / name, key=key, reports=(*given.reports, report))


def _compiled(card: Card, given: Artifact, choice: Choice) -> Artifact:
    runtime: type[Runtime] = choice.offer.make
    options = runtime.compiled_by
    if options is None or given.format == runtime.compiled_format:
        return given
    identity = choice.identity(options)
    backend, offer = choice.backend, choice.offer
    with about(card, f"{backend.name} cannot {choice.stage}"):
        place = registry.compile_identity(backend, offer)
        processor = machine.processor()
        key = digest([given.key, "compile", identity, place, processor, makers()])
        folder = entry(
            "compiled",
            card,
            key,
            lambda draft: registry.compile(backend, offer, given.path, draft, choice.options),
        )
    return replace(given, path=folder, key=key, format="compiled", made_of=given)
