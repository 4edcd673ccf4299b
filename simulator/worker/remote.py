"""The contract's stages, played by a worker."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from simulator.contract import (
    U8,
    Array,
    Cast,
    Converter,
    Decoder,
    Effective,
    Encoded,
    Encoder,
    Exporter,
    Frame,
    Matrix,
    Options,
    Port,
    Quantizer,
    Range,
    Resizer,
    Runtime,
    Stage,
)
from simulator.errors import Unsupported
from simulator.worker.client import Stale, Worker


class _Remote:
    """One implementation in a worker; made again when the worker had to be started anew."""

    def __init__(self, worker: Worker, *arguments: Any) -> None:
        self.worker, self._arguments = worker, arguments
        self._made: tuple[int, int] | None = None
        self._making = threading.Lock()

    def call(self, name: str, *arguments: Any) -> Any:
        while True:
            with self._making:
                made = self._made = self._made or self.worker.call("make", *self._arguments)
            try:
                return self.worker.call(name, *arguments, of=made)
            except Stale:
                with self._making:
                    if self._made == made:
                        self._made = None

    def close(self) -> None:
        """Close it where it still is; a worker that died has closed it."""
        if self._made is not None:
            with suppress(Stale):
                self.worker.call("close", of=self._made)


class RemoteDecoder(Decoder):
    """Decodes in the worker."""

    def __init__(self, remote: _Remote, options: Options) -> None:
        super().__init__(options)
        self._remote = remote

    def _rgb(self, image: Encoded) -> U8:
        frame: Frame = self._remote.call("rgb", image)
        return frame.rgb

    def _planes(self, image: Encoded) -> Frame:
        frame: Frame = self._remote.call("planes", image)
        return frame


class RemoteResizer(Resizer):
    """Resamples in the worker."""

    def __init__(self, remote: _Remote, options: Options) -> None:
        super().__init__(options)
        self._remote = remote

    def _resize(self, plane: U8, height: int, width: int) -> Array:
        out: Array = self._remote.call("resize", plane, height, width)
        return out


class RemoteEncoder(Encoder):
    """Makes YUV in the worker."""

    def __init__(self, remote: _Remote, options: Options) -> None:
        super().__init__(options)
        self._remote = remote

    def _encode(self, rgb: U8) -> Frame:
        from simulator.contract import rgb_frame

        frame: Frame = self._remote.call("encode", rgb_frame(rgb))
        return frame


class RemoteConverter(Converter):
    """Makes RGB in the worker."""

    def __init__(self, remote: _Remote, options: Options) -> None:
        super().__init__(options)
        self._remote = remote

    @property
    def assumes(self) -> tuple[Matrix, Range]:
        """What the real converter assumes."""
        found: tuple[Matrix, Range] = self._remote.call("assumes")
        return found

    def _convert(self, frame: Frame) -> U8:
        out: Frame = self._remote.call("convert", frame)
        return out.rgb


class RemoteRuntime(Runtime):
    """Runs a model in the worker."""

    def __init__(self, remote: _Remote, artifact: Path, options: Options) -> None:
        self._remote = remote
        super().__init__(artifact, options)

    def _open(self, artifact: Path) -> tuple[tuple[Port, ...], tuple[Port, ...]]:
        return self._remote.call("inputs"), self._remote.call("outputs")

    def _run(self, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        outputs: Mapping[str, Array] = self._remote.call("run", dict(feeds))
        return outputs

    def effective(self, feeds: Mapping[str, Array]) -> Effective:
        """Ask the real runtime."""
        found: Effective = self._remote.call("effective", dict(feeds))
        home = self._remote.worker.home
        return replace(found, details={**found.details, "worker": home.python})

    def _close(self) -> None:
        self._remote.close()


class RemoteExporter(Exporter):
    """Converts model files in the worker."""

    def __init__(self, remote: _Remote, options: Options) -> None:
        super().__init__(options)
        self._remote = remote

    def export(self, source: Path, target: Path) -> None:
        """Convert in the worker."""
        self._remote.call("export", source, target)


class RemoteMaker(Cast, Quantizer):
    """Casts and quantizes model files in the worker."""

    def __init__(self, remote: _Remote, options: Options) -> None:
        super().__init__(options)
        self._remote = remote

    def cast(self, source: Path, target: Path) -> None:
        """Cast in the worker."""
        self._remote.call("cast", source, target)

    def quantize(self, source: Path, target: Path, feeds: Iterator[Mapping[str, Array]]) -> None:
        """Quantize in the worker; all the calibration inputs travel at once."""
        self._remote.call("quantize", source, target, [dict(feed) for feed in feeds])


_SAID = ("gives", "gives_planes", "drops_odd", "takes", "also_takes", "format")
_KINDS: dict[Stage, Any] = {
    Stage.DECODE: RemoteDecoder,
    Stage.RESIZE: RemoteResizer,
    Stage.ENCODE: RemoteEncoder,
    Stage.CONVERT: RemoteConverter,
    Stage.RUNTIME: RemoteRuntime,
    Stage.EXPORT: RemoteExporter,
    Stage.CAST: RemoteMaker,
    Stage.QUANTIZE: RemoteMaker,
}


def make(worker: Worker, stage: Stage, number: int, real: type[Any], *arguments: Any) -> Any:
    """Build an implementation in a worker.

    Args:
        worker: where.
        stage: what it does.
        number: of the backend's offers for that stage, which.
        real: the implementation's class, for what it says of itself.
        arguments: what the implementation is built from; its options last.
    """
    if stage not in _KINDS:
        raise Unsupported(f"{stage} cannot run in an environment of its own")
    said = {name: getattr(real, name) for name in _SAID if hasattr(real, name)}
    kind = type(f"Remote{real.__name__}", (_KINDS[stage],), said)
    return kind(_Remote(worker, str(stage), number, *arguments), *arguments)
