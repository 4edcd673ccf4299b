"""OpenMMLab's configurations: MMDetection, MMPretrain (mmcls), MMSegmentation, MMDeploy's SDK.

Sources: open-mmlab/mmengine, docs ``advanced_tutorials/config.md`` (``_base_``, ``_delete_``,
``{{_base_.name}}``, ``read_base()``); open-mmlab/mmdeploy, ``docs/en/02-how-to-run``
(``pipeline.json``, ``deploy.json``), ``csrc/mmdeploy/preprocess/transform/*.cpp``; those of
:mod:`simulator.importers.openmmlab_steps`.
"""

from __future__ import annotations

from pathlib import Path

from simulator.errors import ProfileError
from simulator.importers import values
from simulator.importers.draft import Draft, Order
from simulator.importers.image_steps import ImageSteps, follow
from simulator.importers.importer import ConfigFile, Importer
from simulator.importers.keys import Keys
from simulator.importers.openmmlab_steps import ASIDE, BY_MMCV, kinds, preprocessor
from simulator.importers.python_values import Reader, Scope
from simulator.profile.document import inside

_MOST_BASES = 40
_PLACES = (
    ("test_dataloader", "dataset"), ("data", "test"), ("val_dataloader", "dataset"),
    ("data", "val"), (),
)  # fmt: skip
"""Where a data set with its pipeline may stand; last the module itself."""
_AROUND = ("MultiScaleFlipAug", "TestTimeAug")


class OpenMMLab(Importer):
    """The test pipeline of a Python configuration."""

    name = tool = "openmmlab"
    about = "a Python configuration of MMDetection, MMPretrain or MMSegmentation (MMEngine, MMCV)"
    base = "opencv_fp32"
    line = r"^(test_pipeline|test_dataloader|_base_|img_norm_cfg|data_preprocessor)\s*="

    def read(self, file: ConfigFile, draft: Draft, stack: int) -> None:
        """Follow the pipeline, then the data preprocessor."""
        reader, config = _config(file.path, file.text, [])
        top = Keys(draft, config, reader.where(config))
        place = _pipeline(config)
        if place is None:
            top.problem("test_pipeline", "no list of steps is written in this file or in its bases")
            return
        steps = ImageSteps(draft, "OpenMMLab", "bgr", ["mmcv reads images as BGR"])
        where = reader.where(config)
        near = Keys(draft, config, where, hidden=len(place) - 1).below(*place[:-1])
        order = _follow(steps, near, place[-1])
        found = _preprocessor(config)
        if found is not None and not draft.problems:
            order = preprocessor(steps, top.below(*found))
        if inside(config, ("model", "test_cfg", "mode")) == "slide":
            why = "the network sees windows of an image, one by one; a profile has one input"
            top.below("model", "test_cfg").refuse("mode", why)
        if not draft.problems:
            steps.finish(order, top)


class MMDeploy(Importer):
    """The first task of a ``pipeline.json``, which MMDeploy's SDK runs."""

    name = tool = "mmdeploy"
    about = "MMDeploy's pipeline.json, or deploy.json beside it"
    base = "opencv_fp32"
    stems = ("pipeline", "deploy")
    beside = ("pipeline.json",)

    def recognises(self, file: ConfigFile) -> bool:
        """Whether it has the tasks of a pipeline, or the models of a deployment."""
        if not file.is_json:
            return False
        inner = file.json.get("pipeline")
        is_deploy = {"version", "models", "task"} <= file.json.keys()
        return is_deploy or (isinstance(inner, dict) and "tasks" in inner)

    def read(self, file: ConfigFile, draft: Draft, stack: int) -> None:
        """Follow the transforms that come before the network."""
        if "pipeline" not in file.json:
            beside = file.path.with_name("pipeline.json")
            draft.aside.append("deploy.json: the steps are those of pipeline.json beside it")
            _precision(file.json_keys(draft))
            file = ConfigFile(beside)
        inner = file.json.get("pipeline")
        tasks = inner.get("tasks") if isinstance(inner, dict) else None
        tasks = tasks if isinstance(tasks, list) else []
        top = Keys(draft, file.json, lambda _: str(file.path), hidden=1)
        modules = [task.get("module") if isinstance(task, dict) else None for task in tasks]
        first = modules.index("Transform") if "Transform" in modules else None
        if first is None:
            draft.problems.append(f"{file.path}: pipeline.tasks: no task of module Transform")
            return
        keys = top.below("pipeline", "tasks", first)
        steps = ImageSteps(draft, "MMDeploy", "bgr", ["the SDK is fed BGR images"])
        follow(steps, _each(keys, "transforms"), kinds(is_sdk=True), ASIDE)
        if not draft.problems:
            steps.finish(BY_MMCV, keys)
        why = "the application decodes, and hands the SDK a BGR image"
        draft.claim("decode", "assumed", why)
        for holder, key in (
            (top, "pipeline"),
            (top.below("pipeline"), "tasks"),
            (keys, "transforms"),
        ):
            holder.skip(key)
            holder.rest(dict.fromkeys(holder.values, "around the steps"), named=[key])
        others = [task for at, task in enumerate(tasks) if at != first]
        draft.aside += [f"tasks={values.show(task)}: after the preprocessing" for task in others]


def _precision(keys: Keys) -> None:
    models = keys.mappings("models", "it names the network")
    written = models[0].get("precision") if models else None
    if written not in (None, "FP32"):
        why = f"precision={values.show(written)}; {keys.draft.base.name}'s precision is used"
        keys.draft.claim("precision", "assumed", f"deploy.json says {why}")


def _follow(steps: ImageSteps, keys: Keys, key: str) -> Order:
    """Follow a list of steps, and the list inside of a ``MultiScaleFlipAug``."""
    draft = steps.draft
    for name, step in _each(keys, key):
        if name not in _AROUND:
            follow(steps, [(name, step)], kinds(), ASIDE)
        elif name == "TestTimeAug" or step.values.get("flip") not in (None, False):
            step.problem(name, "several inputs of one image; a profile has one")
        else:
            inner = kinds(scale=step.values.get("img_scale"))
            follow(steps, _each(step, "transforms"), inner, ASIDE)
        if draft.problems:
            break
    return BY_MMCV


def _each(keys: Keys, key: str) -> list[tuple[str, Keys]]:
    """Return the name and keys of every step of a list."""
    found = keys.mappings(key, "it is the list of steps")
    names = [str(step.get("type", "")).rpartition(".")[2] for step in found]
    return [(name, keys.below(key, at)) for at, name in enumerate(names)]


def _pipeline(config: Scope) -> tuple[str, ...] | None:
    """Return the place of the list of steps."""
    for place in _PLACES:
        found = inside(config, place)
        way: tuple[str, ...] = place
        while isinstance(found, dict) and isinstance(found.get("dataset"), dict) and way:
            found, way = found["dataset"], (*way, "dataset")  # a wrapper around the data set
        name = "pipeline" if place else "test_pipeline"
        if isinstance(found, dict) and isinstance(found.get(name), list):
            return (*way, name)
    return None


def _preprocessor(config: Scope) -> tuple[str, ...] | None:
    """Return the place of the data preprocessor."""
    places = ("model", "data_preprocessor"), ("data_preprocessor",)
    return next((one for one in places if isinstance(inside(config, one), dict)), None)


def _config(path: Path, text: str, around: list[Path]) -> tuple[Reader, Scope]:
    """Return the names of a file over those of its bases.

    Raises:
        ProfileError: a base is not there, or bases go in a circle.
    """

    def base(reader: Reader, name: str) -> Scope:
        beside = _beside(path, name)
        if beside in around or len(around) > _MOST_BASES:
            raise ProfileError([f"{path}:1: _base_={values.show(name)}: bases in a circle"])
        if not beside.is_file():
            why = "not there; keep the files that a configuration is based on beside it"
            raise ProfileError([f"{path}:1: _base_={values.show(name)}: {why}"])
        other, found = _config(beside, ConfigFile(beside).text, [*around, beside])
        reader.adopt(other)
        return found

    reader = Reader(path, text, base)
    reader.scope.pop("_base_", None)
    return reader, _over(reader, reader.bases, reader.scope)


def _beside(path: Path, name: str) -> Path:
    """Return the file of ``../_base_/x.py``, or of ``.._base_.x`` below ``read_base()``."""
    if name.endswith((".py", ".yaml", ".json")):
        return (path.parent / name).resolve()
    dots = len(name) - len(name.lstrip("."))
    folder = path.resolve().parents[max(dots - 1, 0)]
    return folder.joinpath(*name.lstrip(".").split(".")).with_suffix(".py")


def _over(reader: Reader, base: Scope, own: Scope) -> Scope:
    """Merge as MMEngine does: mappings key by key unless ``_delete_``, anything else anew."""
    made = dict(base)
    for key, value in own.items():
        before = made.get(key)
        merges = isinstance(before, dict) and isinstance(value, dict)
        if isinstance(value, dict) and value.pop("_delete_", False):
            merges = False
        made[key] = _over(reader, before or {}, value) if merges else value
    reader.inherit(made, base, own)
    return made


OPENMMLAB = OpenMMLab()
MMDEPLOY = MMDeploy()
