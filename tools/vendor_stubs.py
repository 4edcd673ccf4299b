"""Write typings/: what vendors' libraries take, read from their own wheels without a device.

  python tools/vendor_stubs.py             write the stubs again, from the wheels of these versions
  python tools/vendor_stubs.py --check     say whether they differ from those wheels; exit 1

pip downloads the wheels (390 MB in all; nothing is installed), gcc makes empty stand-ins for the
NVIDIA libraries that TensorRT's module is linked against, and mypy's stubgen imports the module and
reads its signatures. Only what the backends use is kept: types outside of that become ``Any``.
`typings/acl` is not made here: CANN is in no package index, and that file names its source.
"""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

ROOT = Path(__file__).parent.parent
TYPINGS = ROOT / "typings"


@dataclass(frozen=True)
class Vendor:
    """A module whose stub is made.

    Attributes:
        stub: the file below typings/.
        wheel: the distribution and its version, as the backend pins it.
        module: what is imported, or the source file that is read.
        names: what the backends use of it.
        beside: wheels that it needs, and module that it re-exports functions of.
        linked: shared libraries that its module is linked against, and that need a device's SDK.
        platform: of the wheel, if not this machine's.
    """

    stub: str
    wheel: str
    module: str
    names: tuple[str, ...]
    beside: tuple[str, ...] = ()
    linked: tuple[str, ...] = ()
    platform: tuple[str, ...] = ()
    functions: str = field(default="")


VENDORS = (
    Vendor(
        stub="tensorrt/__init__.pyi",
        wheel="tensorrt-cu13-bindings==11.4.0.106",
        module="tensorrt_bindings.tensorrt",
        names=(
            "Builder", "BuilderFlag", "DataType", "Dims", "IBuilderConfig", "ICudaEngine",
            "EngineInspector", "IExecutionContext", "IHostMemory", "ILogger", "INetworkDefinition",
            "ITensor", "ITimingCache", "LayerInformationFormat", "OnnxParser", "ParserError",
            "ProfilingVerbosity", "Runtime", "TensorIOMode", "nptype", "__version__",
        ),
        linked=("libnvinfer.so.11", "libnvinfer_plugin.so.11", "libnvonnxparser.so.11"),
        functions="tensorrt_bindings/__init__.py",
    ),
    Vendor(
        stub="cuda/bindings/runtime.pyi",
        wheel="cuda-bindings==13.5.0",
        module="cuda.bindings.runtime",
        names=(
            "cudaDeviceAttr", "cudaDeviceGetAttribute", "cudaError_t", "cudaEventCreate",
            "cudaEventDestroy", "cudaEventElapsedTime", "cudaEventRecord", "cudaFree",
            "cudaGetErrorString", "cudaMalloc", "cudaMemcpyAsync", "cudaMemcpyKind",
            "cudaStreamCreate", "cudaStreamDestroy", "cudaStreamSynchronize",
        ),
        beside=("cuda-pathfinder==1.9.0",),
    ),
    Vendor(
        stub="nvidia/nvimgcodec/__init__.pyi",
        wheel="nvidia-nvimgcodec-cu13==0.9.0.20",
        module="nvidia.nvimgcodec.nvimgcodec_impl",
        names=(
            "Backend", "BackendKind", "ColorSpec", "DecodeParams", "Decoder", "Image",
            "NVIMGCODEC_DEVICE_CPU_ONLY",
        ),
    ),
    Vendor(
        stub="rknn/api.pyi",
        wheel="rknn-toolkit2==2.5.0",
        module="rknn/api/rknn.py",
        names=("RKNN",),
    ),
    Vendor(
        stub="rknnlite/api.pyi",
        wheel="rknn-toolkit-lite2==2.5.0",
        module="rknnlite/api/rknn_lite.py",
        names=("RKNNLite",),
        platform=("manylinux_2_17_aarch64", "manylinux2014_aarch64"),
    ),
)  # fmt: skip

OPTIONS = "provider_options.txt"
PROVIDERS = "onnxruntime-gpu==1.31.1"
"""The wheel with ONNX Runtime's providers for NVIDIA's GPUs; options have no signature."""
_OPTIONS = {
    "cuda": ("use_tf32",),
    "tensorrt": ("trt_fp16_enable", "trt_int8_enable"),
}
"""The options that the backend gives to each provider."""

_LEFT_OUT = re.compile(r"_(?!_(?:init|getitem|len|iter|buffer)__)\w+")
_PROTOCOLS = {
    "Dims": "def __iter__(self) -> typing.Iterator[int]: ...",
    "IHostMemory": "def __buffer__(self, flags: int, /) -> memoryview: ...",
}
"""What pybind11 classes do without a method that stubgen sees: iterate, and lend their bytes."""
_C_INTEGERS = re.compile(r"(?:unsigned |signed )?(?:long long|size_t|int|long|unsigned int)")


def made(vendor: Vendor) -> str:
    """Return the stub of a vendor's module."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for wheel in (vendor.wheel, *vendor.beside):
            _unpacked(wheel, vendor.platform, folder)
        tree = _parsed(_signatures(vendor, folder))
        kept = [node for node in tree.body if _name(node) in vendor.names]
        if vendor.module.startswith("cuda."):
            kept = _cython(vendor, folder, kept)
        if vendor.functions:
            kept += _plain(vendor, (folder / vendor.functions).read_text())
    lost = set(vendor.names) - {_name(node) for node in kept}
    if lost:
        raise SystemExit(f"{vendor.wheel} has no {', '.join(sorted(lost))}: change the backend")
    body = "\n".join(ast.unparse(_trimmed(node)) for node in kept)
    body = _known(body, vendor.names)
    text = (
        f"# Made by tools/vendor_stubs.py from {vendor.wheel}; do not edit.\n"
        "import collections.abc\nimport typing\n"
        "from typing import Any, ClassVar, overload\n\n"
        f"{body}\n"
    )
    command = [
        Path(sys.executable).with_name("ruff"),
        "format",
        "--stdin-filename",
        "stub.pyi",
        "-",
    ]
    return subprocess.run(command, input=text, check=True, capture_output=True, text=True).stdout


def options() -> str:
    """Return the options that the providers' libraries know, each in a line with its provider.

    A library knows an option if its name is a whole string in it.
    """
    lines = [f"# Made by tools/vendor_stubs.py from {PROVIDERS}; do not edit."]
    with tempfile.TemporaryDirectory() as place:
        _unpacked(PROVIDERS, (), Path(place))
        for provider, names in _OPTIONS.items():
            library = Path(place, f"onnxruntime/capi/libonnxruntime_providers_{provider}.so")
            content = library.read_bytes()
            lost = [name for name in names if b"\0%s\0" % name.encode() not in content]
            if lost:
                raise SystemExit(f"{PROVIDERS} has no {', '.join(lost)}: change the backend")
            lines += [f"{provider} {name}" for name in names]
    return "\n".join(lines) + "\n"


def _parsed(text: str) -> ast.Module:
    """Parse a stub; a signature that is no Python, as of C++ types, takes anything."""
    while True:
        try:
            return ast.parse(text)
        except SyntaxError as error:
            lines, at = text.splitlines(), (error.lineno or 1) - 1
            lines[at] = re.sub(r"\(.*", "(self, *args: Any, **kwargs: Any) -> Any: ...", lines[at])
            text = "\n".join(lines)


def _unpacked(wheel: str, platform: tuple[str, ...], folder: Path) -> None:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder]
    if platform:
        command += ["--only-binary=:all:", "--python-version=311"]
        command += [f"--platform={one}" for one in platform]
    subprocess.run([*map(str, command), wheel], check=True, stderr=subprocess.DEVNULL)
    for file in folder.glob("*.whl"):
        with zipfile.ZipFile(file) as packed:
            packed.extractall(folder)
        file.unlink()


def _signatures(vendor: Vendor, folder: Path) -> str:
    """Run stubgen on the module; it is imported only where it is compiled."""
    out = folder / "stubs"
    if vendor.module.endswith(".py"):
        _stubgen([str(folder / vendor.module)], folder, out)
    else:
        _stand_ins(vendor, folder)
        _stubgen(["--inspect-mode", "--module", vendor.module], folder, out)
    (found,) = out.rglob("*.pyi")
    return found.read_text()


def _stubgen(arguments: list[str], folder: Path, out: Path) -> None:
    stubgen = Path(sys.executable).with_name("stubgen")
    paths = {"PYTHONPATH": str(folder), "LD_LIBRARY_PATH": str(folder)}
    command = [str(stubgen), *arguments, "--output", str(out)]
    subprocess.run(command, check=True, env=os.environ | paths, cwd=folder, capture_output=True)


def _stand_ins(vendor: Vendor, folder: Path) -> None:
    """Compile empty libraries with the functions that the module wants to find at its import."""
    if not vendor.linked:
        return
    (compiled,) = (folder / vendor.module.split(".", maxsplit=1)[0]).glob("*.so")
    listed = subprocess.run(
        ["nm", "-D", "--undefined-only", str(compiled)], check=True, capture_output=True, text=True
    ).stdout
    wanted = re.findall(r"^\s+U ((?!_|Py|dl)\w+)$", listed, re.MULTILINE)
    source = folder / "stand_in.c"
    source.write_text("".join(f"void {name}(void) {{}}\n" for name in wanted))
    for library in vendor.linked:
        named = [f"-Wl,-soname,{library}", "-o", str(folder / library)]
        subprocess.run(["gcc", "-shared", "-fPIC", str(source), *named], check=True)


def _name(node: ast.stmt) -> str:
    if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
        return node.name
    return (
        node.target.id
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
        else ""
    )


def _trimmed(node: ast.stmt) -> ast.stmt:
    """Leave out what every class has, and what is private; an enumeration is an int."""
    if isinstance(node, ast.ClassDef):
        is_enum = any(_name(inner) == "__members__" for inner in node.body)
        node.bases = [ast.Name("int")] if is_enum else []
        node.body = [
            _trimmed(inner)
            for inner in node.body
            if not _LEFT_OUT.match(_name(inner)) and not (is_enum and _name(inner) == "__init__")
        ]
        node.body += ast.parse(_PROTOCOLS.get(node.name, "" if node.body else "...")).body
    if isinstance(node, ast.FunctionDef) and len(node.args.args) > 1:
        node.args.kwarg = None  # a name that is not known would be taken, and ignored
    return node


def _cython(vendor: Vendor, folder: Path, kept: list[ast.stmt]) -> list[ast.stmt]:
    """Replace Cython's functions, of which stubgen knows no signature, by those of their docs."""
    functions = [
        name
        for name in vendor.names
        if not any(_name(node) == name and isinstance(node, ast.ClassDef) for node in kept)
    ]
    docs = f"{{n: getattr(m, n).__doc__ for n in {functions!r}}}"
    asked = f"import json, {vendor.module} as m; print(json.dumps({docs}))"
    said = subprocess.run(
        [sys.executable, "-c", asked], check=True, capture_output=True, text=True,
        env=os.environ | {"PYTHONPATH": str(folder)},
    ).stdout  # fmt: skip
    lines = [_from_docs(name, text) for name, text in json.loads(said).items()]
    return [
        *(node for node in kept if isinstance(node, ast.ClassDef)),
        *ast.parse("\n".join(lines)).body,
    ]


def _from_docs(name: str, text: str) -> str:
    """``f(size_t size)`` and the names under Returns, as a line of a stub."""
    head, _, _ = text.partition("\n")
    inside = head[head.index("(") + 1 : head.rindex(")")]
    arguments = []
    for one in filter(None, (part.strip() for part in inside.split(","))):
        if ":" in one:
            arguments.append(one)
        elif " " in one:
            kind, _, argument = one.rpartition(" ")
            arguments.append(f"{argument}: {'int' if _C_INTEGERS.fullmatch(kind) else 'Any'}")
        else:
            arguments.append(f"{one}: Any")
    returns = text.partition("Returns\n-------\n")[2].partition("\n\n")[0]
    values = re.findall(r"^\S", returns, re.MULTILINE)
    given = ", ".join(["cudaError_t", *("Any" for _ in values[1:])])
    return f"def {name}({', '.join(arguments)}) -> tuple[{given}]: ..."


def _plain(vendor: Vendor, source: str) -> list[ast.stmt]:
    """The functions and the version that the package's own Python file adds."""
    lines = [
        f"def {node.name}({', '.join(f'{a.arg}: Any' for a in node.args.args)}) -> Any: ..."
        for node in ast.parse(source).body
        if isinstance(node, ast.FunctionDef) and node.name in vendor.names
    ]
    return ast.parse("\n".join([*lines, "__version__: str"])).body


def _known(body: str, names: tuple[str, ...]) -> str:
    """Replace types that the stub leaves out by Any."""

    class Types(ast.NodeTransformer):
        def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
            self.generic_visit(node)
            last = [one for one in (node.args.vararg, node.args.kwarg) if one is not None]
            for one in (*node.args.args, *node.args.kwonlyargs, *last):
                if one.annotation is None and one.arg != "self":
                    one.annotation = ast.Name("Any")
            node.returns = node.returns or ast.Name("Any")
            return node

        def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
            node.annotation = self.visit(node.annotation)
            return node

        def visit_Name(self, node: ast.Name) -> ast.expr:
            ours = {*names, *dir(__builtins__), "Any", "ClassVar", "overload"}
            return (
                node if node.id in ours or node.id in ("typing", "collections") else ast.Name("Any")
            )

        def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
            root = ast.unparse(node).partition(".")[0]
            return (
                node
                if root in ("typing", "collections", *names) or "setter" in node.attr
                else ast.Name("Any")
            )

    return ast.unparse(ast.fix_missing_locations(Types().visit(ast.parse(body))))


def main() -> int:
    """Write or check every stub."""
    check, differ = "--check" in sys.argv[1:], False
    files = [(vendor.stub, vendor.wheel, partial(made, vendor)) for vendor in VENDORS]
    for stub, wheel, make in [*files, (OPTIONS, PROVIDERS, options)]:
        text, place = make(), TYPINGS / stub
        if check:
            same = place.exists() and place.read_text() == text
            print(f"{place.relative_to(ROOT)}: {'as in' if same else 'DIFFERS from'} {wheel}")
            differ |= not same
        else:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
            print(f"{place.relative_to(ROOT)}: {len(text.splitlines())} lines from {wheel}")
    return int(differ)


if __name__ == "__main__":
    sys.exit(main())
