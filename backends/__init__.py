"""Backends for third-party libraries, one library per module.

ONNX Runtime's telemetry is switched off for the backends that load it: it would store events in the
user's home folder and send them.
"""

import os

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
