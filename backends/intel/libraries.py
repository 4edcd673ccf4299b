"""OpenVINO and NNCF, kept from sending reports of use."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import cast

from simulator.contract import Library


class _Discreet(Library):
    """A library that is told that its telemetry package is not installed.

    ``openvino_telemetry`` sends without asking, from a process that it forks; both libraries
    go without it where it cannot be imported.
    """

    def load(self) -> ModuleType:
        sys.modules.setdefault("openvino_telemetry", cast(ModuleType, None))
        return super().load()


ov = _Discreet("openvino", distribution="openvino", extra="openvino")
preprocess = _Discreet("openvino.preprocess", distribution="openvino", extra="openvino")
nncf = _Discreet("nncf", distribution="nncf", extra="openvino")
