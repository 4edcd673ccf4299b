"""The user's own Python: a function, or another callable, in a file of theirs."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import io
import os
import re
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import numpy as np

from simulator.contract import (
    MOST,
    Above,
    Array,
    Backend,
    Evidence,
    File,
    FrontEnd,
    Implied,
    ModelError,
    Offer,
    Options,
    OwnRuntime,
    SampleError,
    SampleFile,
    Stage,
    Text,
)

TAKES = ("path", "bytes", "pil", "array")
GIVES = ("tensor", "outputs", "answer")
HERE, DECLARED = "here", "declared"
_ANNOTATED = {
    "bytes": "bytes", "ndarray": "array", "NDArray": "array", "Image": "pil", "str": "path",
    "Path": "pathlib", "PathLike": "path",
}  # fmt: skip
"""What a function takes, by the first of these names in its first parameter's annotation."""
_TRANSFORMS = {"torchvision": "pil", "timm": "pil"}
"""What the transforms of a package take, which say it nowhere."""


class PythonFrontEnd(FrontEnd):
    """Calls a function with each sample; what it returns is the network's input."""

    runs_code: ClassVar[bool] = True

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._name = self.called(options)
        self._function = _loaded(options, self._name)
        self._takes = _taken(self._function, options["takes"], self._name)

    @classmethod
    def called(cls, options: Options) -> str:
        """Return the file's name and the function's."""
        return f"{os.path.basename(options['file'])}:{options['function']}"

    @classmethod
    def python(cls, options: Options) -> str | None:
        """Return the interpreter that the profile names."""
        return None if options["python"] == HERE else os.path.expanduser(options["python"])

    @classmethod
    def seconds(cls, options: Options) -> float:
        """Return the time limit of the profile."""
        return float(options["timeout_s"])

    def gives(self, _: None = None) -> str:
        """Return what the function's decorator says."""
        said = str(getattr(self._function, "gives", "tensor"))
        if said not in GIVES:
            raise ModelError(f"{self._name} gives {said!r}; one of {', '.join(GIVES)} expected")
        return "" if said == "tensor" else said

    def tensors(self, sample: SampleFile) -> Array | Mapping[str, Array]:
        """Call the function."""
        with nullcontext("") if sample.path else tempfile.TemporaryDirectory() as folder:
            given = _given(self._takes, sample, Path(folder))
            try:
                found = self._function(given)
            except SystemExit as error:
                raise SampleError(f"{self._name} called exit({error.code})") from error
            except BaseException as error:  # people's code may raise anything
                told = _told(error)
                if self._takes == "path" and "'str'" in told:
                    told += (
                        "; it got a path; for a picture, annotate its parameter: "
                        "PIL.Image.Image or np.ndarray"
                    )
                raise SampleError(f"{self._name} raised {told}") from error
        if isinstance(found, list | tuple) and len(found) == 1:
            (found,) = found
        if isinstance(found, Mapping):
            return {str(name): _array(one, self._name) for name, one in found.items()}
        return _array(found, self._name)


def _loaded(options: Options, name: str) -> Callable[[Any], Any]:
    """Import the file as ``python FILE`` would, but for its name, and return the callable."""
    file = Path(options["file"])
    root, module, up = file.parent, file.stem, _relative(file)
    while up > 0 or (root / "__init__.py").is_file():
        root, module, up = root.parent, f"{root.name}.{module}", up - 1
    os.chdir(os.environ.get("PIPELINE_SIMULATOR_FOLDER", os.curdir))
    sys.path[:] = [str(root), *sys.path, os.getcwd()]
    if (root / "backends").is_dir() or (root / "backends.py").is_file():  # theirs, and not ours
        for known in [name for name in sys.modules if name.partition(".")[0] == "backends"]:
            del sys.modules[known]
    sys.argv[:] = [str(file)]
    for variable in ("PYTHONSAFEPATH", "PYTHONPATH"):  # ours, and not for what it starts
        os.environ.pop(variable, None)
    try:
        found: Any = _imported(file, module)
    except SystemExit as error:
        raise ModelError(
            f"{name}: its file calls exit({error.code}) when imported; put what only a script "
            'does below if __name__ == "__main__":'
        ) from error
    except BaseException as error:  # people's code may raise anything
        raise ModelError(f"{name}: its file cannot be imported: {_told(error)}") from error
    for part in options["function"].split("."):
        if not hasattr(found, part):
            names = [n for n, one in vars(found).items() if callable(one) and n[0] != "_"]
            raise ModelError(f"{name}: there is no {part!r} (callable: {', '.join(names)})")
        found = getattr(found, part)
    if not callable(found) or inspect.isclass(found):
        what = "a class" if inspect.isclass(found) else f"a {type(found).__name__}"
        raise ModelError(f"{name} is {what}; name a function, or an object that can be called")
    return found  # type: ignore[no-any-return]


def _relative(file: Path) -> int:
    """How many folders up the relative imports of a file reach."""
    try:
        nodes = ast.walk(ast.parse(file.read_bytes()))
    except (OSError, SyntaxError, ValueError):
        return 0
    return max((node.level for node in nodes if isinstance(node, ast.ImportFrom)), default=0)


def _imported(file: Path, module: str) -> ModuleType:
    if "." in module:
        return importlib.import_module(module)
    name = module if module not in sys.modules else f"_{module}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file.name} is not a Python file")
    made = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def _taken(function: Callable[[Any], Any], asked: str, name: str) -> str:
    """What a function takes: as the profile says, its decorator, or its annotation; else a path."""
    if asked == DECLARED:
        asked = str(getattr(function, "takes", None) or _annotated(function))
    if asked not in (*TAKES, "pathlib"):
        raise ModelError(f"{name} takes {asked!r}; one of {', '.join(TAKES)} expected")
    return asked


def _annotated(function: Callable[[Any], Any]) -> str:
    package = type(function).__module__.partition(".")[0]
    if package in _TRANSFORMS:
        return _TRANSFORMS[package]
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return "path"
    written = parameters[0].annotation if parameters else ""
    text = written.__name__ if isinstance(written, type) else str(written)
    text = re.sub(r"(?<!Optional)(?<!Union)(?<!Annotated)\[.*?\]", "", text)
    return next((_ANNOTATED[one] for one in re.findall(r"\w+", text) if one in _ANNOTATED), "path")


def _given(takes: str, sample: SampleFile, folder: Path) -> Any:
    """A sample as a function takes it; a picture is that of Pillow, in RGB, without EXIF's turn."""
    if takes in ("path", "pathlib"):
        file = sample.path or folder / os.path.basename(sample.name)
        if sample.path is None:
            file.write_bytes(sample.data or b"")
        return file if takes == "pathlib" else str(file)
    data = sample.data if sample.path is None else sample.path.read_bytes()
    if takes == "bytes":
        return data
    try:
        from PIL import Image

        picture = Image.open(io.BytesIO(data or b"")).convert("RGB")
    except ImportError as error:
        raise ModelError(f"takes {takes} needs Pillow in {sys.executable}") from error
    except Exception as error:
        raise SampleError(f"Pillow cannot read it: {_told(error)}") from error
    return picture if takes == "pil" else np.asarray(picture)


def _array(found: Any, name: str) -> Array:
    """What a function returned as an array: also a tensor of PyTorch, and a picture of Pillow."""
    if found is None:
        raise SampleError(f"{name} returned None; is its `return` missing?")
    if hasattr(found, "detach"):
        found = found.detach().cpu().numpy()
    try:
        array = np.asarray(found)
    except Exception as error:
        raise SampleError(f"{name} returned no array: {_told(error)}") from error
    if array.dtype.kind not in "fiubU":
        kind = f"a {type(found).__name__} ({array.dtype})"
        raise SampleError(f"{name} returned {kind}, which is no array of numbers")
    if array.nbytes > MOST:
        what = f"{array.dtype} {'x'.join(map(str, array.shape))}"
        raise SampleError(f"{name} returned {what}, more than {MOST >> 20:,} MiB")
    return array


def _told(error: BaseException) -> str:
    """An error in one line, with the last line of the user's own files that it came through."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename.startswith(sys.path[0] + os.sep)]
    try:
        text = " ".join(str(error).split())[:300]
    except Exception:  # of an error whose text is an error
        text = ""
    where = f" ({os.path.basename(own[-1].filename)}:{own[-1].lineno})" if own else ""
    return f"{type(error).__name__}: {text}{where}" if text else f"{type(error).__name__}{where}"


class PythonRuntime(OwnRuntime):
    """A function whose value is what the network gives, or the answer."""

    runs_code: ClassVar[bool] = True


_OPTIONS: dict[str, Any] = {
    "file": File(".py", lambda path: None),
    "function": Text(),
    "takes": Implied((DECLARED, *TAKES), DECLARED),
    "python": Implied(Text(), HERE),
    "timeout_s": Implied(Above(0), 120),
}
BACKEND = Backend(
    name="python",
    summary="a function of your own, in a file or a package",
    offers=(
        Offer(Stage.FRONT_END, _OPTIONS, PythonFrontEnd, Evidence.NATIVE),
        Offer(Stage.RUNTIME, {**_OPTIONS, **OwnRuntime.OPTIONS}, PythonRuntime, Evidence.NATIVE),
    ),
    fields={
        "file": "the Python file",
        "function": "the name in the file of what is called with each sample",
        "takes": "what it is called with; declared: as its decorator or its annotation says",
        "python": "the path of the interpreter that runs it; here: that of the simulator",
        "gives": "what it gives: the network's outputs, or the answer",
        "timeout_s": "seconds that a call may take, and the import",
    },
)
