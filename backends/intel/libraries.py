"""OpenVINO and NNCF, with their telemetry switched off."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import cast

from simulator.contract import Library


class _Discreet(Library):
    """A library that is loaded without its telemetry package.

    ``openvino_telemetry`` sends data without asking, from a forked process. Both libraries work
    if it cannot be imported.
    """

    def load(self) -> ModuleType:
        sys.modules.setdefault("openvino_telemetry", cast(ModuleType, None))
        return super().load()


ov = _Discreet("openvino", distribution="openvino", extra="openvino")
opset15 = _Discreet("openvino.opset15", distribution="openvino", extra="openvino")
preprocess = _Discreet("openvino.preprocess", distribution="openvino", extra="openvino")
transformations = _Discreet(
    "openvino._offline_transformations", distribution="openvino", extra="openvino"
)
nncf = _Discreet("nncf", distribution="nncf", extra="openvino")
