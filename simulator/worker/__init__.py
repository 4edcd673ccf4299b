"""Backends in a separate Python environment: a process, a socket, and arrays in shared memory.

The protocol: The worker is ``python -m simulator.worker.serve MODULE:BACKEND`` with three inherited
file descriptors in ``--fds``: a socket, and two shared memory files, one written by each side. A
message is one line of JSON:

- request ``{"call": "make", "args": [stage, number of the offer, arguments...]}``: build an
  implementation; the reply's ``value`` is its number.
- request ``{"call": NAME, "of": number, "args": [...]}``: call a public method, or read a public
  attribute.
- reply ``{"value": ..., "ns": nanoseconds of the call itself}``
- reply ``{"error": kind, "message": one line}`` with the name of a class of simulator.errors.

In a message, an array or bytes object is its location in the sender's shared memory; see
:mod:`simulator.worker.codec`. If a message does not fit, its sender enlarges its file
first and sends the new ``"size"``. The worker exits when the socket is closed.
"""

import sys

if sys.version_info < (3, 11):  # noqa: UP036  the worker of a user may have any
    sys.exit(f"it is Python {sys.version.split()[0]}, and 3.11 or later is needed")
