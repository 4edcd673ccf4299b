"""Backends in a Python of their own: a process, a pipe, and arrays in shared memory.

The protocol. The worker is ``python -m simulator.worker.serve MODULE:BACKEND`` with four inherited
file descriptors in ``--fds``: requests, replies, and two shared memory files, one written by each
side. A message is one line of JSON:

- request ``{"call": "make", "args": [stage, number of the offer, arguments...]}``: build an
  implementation; the reply's ``value`` is its number.
- request ``{"call": NAME, "of": number, "args": [...]}``: call a public method, or read a public
  attribute.
- reply ``{"value": ..., "ns": nanoseconds of the call itself}``
- reply ``{"error": kind, "message": one line}`` with the name of a class of simulator.errors.

Arrays and bytes stand in the message as their place in the sender's memory; see
:mod:`simulator.worker.codec`. Before a message that does not fit, its sender enlarges its file
and says so: ``"size"``. The worker ends when the pipe of requests does.
"""
