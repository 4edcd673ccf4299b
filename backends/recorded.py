"""Recordings of real devices: outputs, predictions or input tensors, replayed."""

from __future__ import annotations

from typing import ClassVar

from backends.storages import STORED
from simulator.contract import AtLeast, Backend, Evidence, Offer, Options, Stage, Text, Unsupported


class Recorded:
    """Computes nothing: the engine looks up every answer (simulator/data/recording.py)."""

    takes: ClassVar[str] = "recording"
    runs_code: ClassVar[bool] = False

    def __init__(self, options: Options) -> None:
        raise Unsupported(f"{options['recording']} is a recording; it cannot run other images")


BACKEND = Backend(
    name="recorded",
    summary="outputs of a real device, dumped there and matched by image",
    offers=(
        Offer(
            Stage.RUNTIME,
            {
                "recording": Text(),
                "device": Text(),
                "threads": AtLeast(1),
                "storage": STORED,
                "compute": ("fp32", "fp16", "bf16", "int8"),
            },
            Recorded,
            Evidence.RECORDED,
        ),
        Offer(Stage.FRONT_END, {"recording": Text()}, Recorded, Evidence.RECORDED),
    ),
    fields={"recording": "the file that describes the recording: docs/recordings.md"},
)
