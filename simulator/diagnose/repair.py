"""What to change: the changes of all findings in one profile, which then really runs."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import JsonValue

from simulator.data.folder import Item
from simulator.diagnose.finding import Finding, Part
from simulator.diagnose.gap import INPUT_ROUNDING, OUTPUT_ROUNDING
from simulator.diagnose.parts import DEPLOY, TRAIN, Parts, cut
from simulator.diagnose.trial import apart, changed, records_of, values_of
from simulator.errors import UserError, one_line
from simulator.experiments.session import Session, Variant
from simulator.pipeline.stack import Pair
from simulator.profile.document import inside
from simulator.profile.modality import at, takes_samples
from simulator.profile.profile import Profile
from simulator.results.diagnose import Repair


def repaired(
    session: Session, pair: Pair, parts: Parts, items: Sequence[Item], findings: Sequence[Finding]
) -> Repair | None:
    """Run the deployment stack with every change, and compare it with the training stack.

    Returns:
        What came of it; None where no finding changes a field.
    """
    profile = pair[DEPLOY][0]
    own = profile.spec.front_end is not None  # code or a recording: no field of it changes pixels
    written = profile.spec.model_dump(mode="json", by_alias=True, exclude_none=True)
    change: dict[str, JsonValue] = {}
    for one in findings:
        for key, value in one.change.items():
            if (
                not (own and one.part is Part.FRONT_END)
                and inside(written, key.split(".")) != value
            ):
                change.setdefault(key, value)  # type: ignore[call-overload]
    if not change:
        return None
    before = {key: inside(written, key.split(".")) for key in change}
    found = Repair(change=change, before=before, of="", state="unknown", left=None, changed=None)
    if why := _stands_still(profile):
        return found.model_copy(update={"why": why})
    try:
        stack = session.stack(Variant("repaired", changed(pair[DEPLOY], change), pair))
        ways = {TRAIN: parts.cuts[TRAIN], DEPLOY: cut(session, stack)}
        whole = {TRAIN: parts.stacks[TRAIN].chain, DEPLOY: stack.chain}
        answers = values_of(session, whole, items)
        inner = {side: one.outputs or one.front for side, one in ways.items()}
        outputs = all(one.outputs for one in ways.values())
        chains = {side: chain for side, chain in inner.items() if chain}
        values = values_of(session, chains, items) if len(chains) == len(ways) else {}
    except UserError as error:
        return found.model_copy(update={"why": one_line(error)})
    pairs = zip(answers[TRAIN], answers[DEPLOY], items, strict=True)
    count = sum(records_of(session, item, pair)[1]["changed"] for *pair, item in pairs)
    update: dict[str, object] = {"of": "answers", "changed": count}
    if values:
        rounding = OUTPUT_ROUNDING if outputs else INPUT_ROUNDING
        gap = apart(values[TRAIN], values[DEPLOY], rounding)
        update |= {"of": "outputs" if outputs else "inputs", "state": gap.state}
        update["left"] = gap.gap.largest if gap.gap else None
    return found.model_copy(update=update)


def _stands_still(profile: Profile) -> str | None:
    """Why a change of the profile changes nothing that runs; None: it does."""
    if at(profile.spec, ("runtime", "recording")) is not None:
        return "the deployment's answers are a recording"
    if takes_samples(profile.spec):
        return "the deployment gives its answers by itself"
    return None
