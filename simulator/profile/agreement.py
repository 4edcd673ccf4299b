"""Check the sections of a profile against each other: what one makes, the next must take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simulator import registry
from simulator.contract import Offer, Stage
from simulator.contract.model_format import MODEL_FORMATS, RECORD
from simulator.profile.artifact import own_file
from simulator.profile.profile import Profile

if TYPE_CHECKING:
    from simulator.profile.implementations import Choices


NO_MODEL = ("recording", "sample")
"""What a runtime takes that opens no model file."""


def disagreements(profile: Profile, choices: Choices) -> list[str]:
    """Return one line for each section that does not fit another.

    Args:
        profile: the profile.
        choices: the implementations of its sections, without those that could not be found.
    """
    checks = (_artifact, _storage, _cast_computes, _formats, _calibration, _adaptation, _batch)
    return [line for check in checks for line in check(profile, choices)]


def _artifact(profile: Profile, choices: Choices) -> list[str]:
    """Check that the runtime opens a profile's own file, and that nothing would change the file."""
    found, runtime = own_file(profile), choices.get(Stage.RUNTIME)
    if found is None or runtime is None:
        return []
    where, name = profile.where(("precision", "artifact")), found.path.name
    if not registry.opens(runtime.offer, found.format.name):
        able = ", ".join(registry.openers(found.format.name))
        how = f"these do: {able}" if able else f"no runtime here does; {RECORD}"
        return [
            f"{where}: precision.artifact: {name} is {found.format.about}, which "
            f"{runtime.backend.name} does not open; {how}"
        ]
    as_it_is = f"{name} is opened as it is ({where}: precision.artifact)"
    problems = []
    if Stage.EXPORT in choices:
        key = ("runtime", "exporter")
        problems.append(f"{profile.where(key)}: runtime.exporter: {as_it_is}; write exporter: null")
    for axis in profile.spec.graph.model_dump(exclude_defaults=True):
        problems.append(f"{profile.where(('graph', axis))}: graph.{axis}: {as_it_is}; write keep")
    return problems


def _storage(profile: Profile, choices: Choices) -> list[str]:
    """Check that something makes the weights' precision, or that the model comes with it."""
    precision, runtime = profile.spec.precision, choices.get(Stage.RUNTIME)
    made = precision.artifact or precision.cast or precision.quantizer
    if precision.storage == "fp32" or made or runtime is None:
        return []
    takes = runtime.offer.make.takes
    typed = takes in NO_MODEL or (takes in MODEL_FORMATS and MODEL_FORMATS[takes].typed)
    if typed and Stage.EXPORT not in choices:
        return []
    return [
        f"{profile.where(('precision', 'storage'))}: precision.storage: {precision.storage} "
        "needs a cast or a quantizer that makes it"
    ]


def _cast_computes(profile: Profile, choices: Choices) -> list[str]:
    """Check that integers are multiplied only where a cast decides that."""
    cast = choices.get(Stage.CAST)
    if cast is None or profile.spec.precision.compute != "int8" or cast.offer.make.sets_compute:
        return []
    return [
        f"{profile.where(('precision', 'compute'))}: precision.compute: a cast by "
        f"{cast.backend.name} stores weights only; compute int8 needs a quantizer"
    ]


def _formats(profile: Profile, choices: Choices) -> list[str]:
    """Check that each tool from the exporter to the runtime accepts the format it receives."""
    if Stage.RUNTIME not in choices or choices[Stage.RUNTIME].offer.make.takes in NO_MODEL:
        return []
    if profile.spec.precision.artifact:
        return []
    runtime, problems = choices[Stage.RUNTIME].offer.make, []
    exporter = choices.get(Stage.EXPORT)
    format = exporter.offer.make.gives if exporter else runtime.takes
    for stage, part in ((Stage.CAST, "cast"), (Stage.QUANTIZE, "quantizer")):
        maker = choices.get(stage)
        if maker is None:
            continue
        if maker.offer.make.format != format:
            key = ("precision", part, "backend")
            problems.append(
                f"{profile.where(key)}: {'.'.join(key)}: {maker.backend.name} works on "
                f"{maker.offer.make.format} files, but here the model is {format}"
            )
        format = getattr(maker.offer.make, "gives", None) or format
    if not problems and format not in (runtime.takes, *runtime.also_takes):
        place = ("runtime", "exporter" if exporter else "backend")
        problems.append(
            f"{profile.where(place)}: {'.'.join(place)}: {profile.spec.runtime.backend} opens "
            f"{runtime.takes} files, but the profile makes a {format} file"
        )
    return problems


def _calibration(profile: Profile, choices: Choices) -> list[str]:
    """Check that a quantizer has calibration samples just where it needs them."""
    quantizer = profile.spec.precision.quantizer
    if quantizer is None or Stage.QUANTIZE not in choices:
        return []
    choice = choices[Stage.QUANTIZE]
    if choice.offer.make.calibrates == (quantizer.calibration is not None):
        return []
    key = ("precision", "quantizer", "calibration")
    name, needs = choice.backend.name, choice.offer.make.calibrates
    what = f"required by {name}" if needs else f"{name} needs none here; leave it out"
    return [f"{profile.where(key)}: {'.'.join(key)}: {what}"]


def _adaptation(profile: Profile, choices: Choices) -> list[str]:
    """Check that what adapts computes with the runtime of the profile, on the same network."""
    adapter, runtime = choices.get(Stage.ADAPT), choices.get(Stage.RUNTIME)
    if adapter is None or runtime is None:
        return []
    name, inside = adapter.backend.name, adapter.offer.make.runs_in
    if runtime.backend.name not in inside:
        key, what = "backend", f"{name} adapts networks in {' or '.join(inside)}, not in "
        what += f"{runtime.backend.name}; use runtime.backend: {inside[0]}"
    elif Stage.EXPORT not in choices:
        key, what = "exporter", f"{name} adapts the card's ONNX file, which {runtime.backend.name} "
        what += f"runs too where the profile says runtime.exporter: {{backend: {name}}}"
    else:
        return []
    return [f"{profile.where(('runtime', key))}: runtime.{key}: {what}"]


def _batch(profile: Profile, choices: Choices) -> list[str]:
    """Check that the runtime takes the batches that a profile asks for."""
    asked, runtime = profile.spec.runtime, choices.get(Stage.RUNTIME)
    if asked.samples == 1 or runtime is None:
        return []
    name, where = runtime.backend.name, f"{profile.where(('runtime', 'batch'))}: runtime.batch: "
    if Stage.ADAPT in choices:
        return [f"{where}a network that adapts has its own, runtime.adaptation.batch"]
    kind = "dynamic" if asked.is_dynamic else "fixed"
    takes = batches_of(runtime.offer)
    if kind in takes:
        return []
    able = [
        backend.name
        for backend in registry.backends()
        if any(kind in batches_of(offer) for offer in backend.of(Stage.RUNTIME))
    ]
    lacks = f"a {kind} batch" if takes else "several samples at once"
    return [f"{where}{name} does not take {lacks} here; these do: {', '.join(able)}"]


def batches_of(offer: Offer) -> tuple[str, ...]:
    """Return the batches that a runtime takes; a recording takes none."""
    found: tuple[str, ...] = getattr(offer.make, "batches", ())
    return found
