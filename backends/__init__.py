"""Third-party libraries behind the contract, one library a file.

ONNX Runtime, which several of them load, is told not to report its use: it would keep a database
of events in the user's home folder, and send it.
"""

import os

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
