"""A worker that may be taken over by the file that it reads: it starts with as little as it needs.

``python -m simulator.worker.confined WRITES ...`` gives up what the system lets an ordinary user
give up, and then serves as :mod:`simulator.worker.serve` does with the other arguments. WRITES are
the folders that it may write to, separated by colons. What the system does not offer is left out;
the worker's call
``confinement`` says what is in force.

It may still read files, start programs, and use the processor and memory: nothing hides those.

Source:
    https://docs.kernel.org/userspace-api/landlock.html,
    https://docs.kernel.org/userspace-api/seccomp_filter.html, user_namespaces(7).
"""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import struct
import sys
from contextlib import suppress
from pathlib import Path

from simulator.worker.home import IN_FORCE, first_to_go

_LIBC = ctypes.CDLL(None, use_errno=True)
_NEW_USER, _NEW_NET = 0x10000000, 0x40000000
_NO_NEW_PRIVILEGES, _SET_SECCOMP, _FILTER = 38, 22, 2
_MACHINES = {
    "x86_64": (0xC000003E, {"socket": 41, "ptrace": 101, "process_vm_writev": 311}),
    "aarch64": (0xC00000B7, {"socket": 198, "ptrace": 117, "process_vm_writev": 271}),
}
"""The audit number of a machine, and numbers of system calls that differ between machines."""
_IO_URING, _PIDFD_GETFD, _X32 = 425, 438, 0x40000000
_DEVICES = ("null", "zero", "nvidia*", "dri/*")
_WRITE_FILE, _ALL_WRITES = 1 << 1, sum(1 << bit for bit in (1, 4, 5, 6, 7, 8, 9, 10, 11, 12))
_REFER, _TRUNCATE = 1 << 13, 1 << 14


def confine(writes: list[str]) -> list[str]:
    """Give up privileges of this process, before it has a second thread; return what took effect.

    Args:
        writes: the folders that it may write to.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    first_to_go()
    steps = {
        "no new privileges": _LIBC.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) == 0,
        "network of its own": _without_network(),
        "writes to its own folder only": _writes_only(writes),
        "no sockets": _without_sockets(),
    }
    return [name for name, done in steps.items() if done]


def _without_network() -> bool:
    """Move to a network without a connection, as the same user."""
    user, group = os.getuid(), os.getgid()
    if _LIBC.unshare(_NEW_USER | _NEW_NET) != 0:
        return False
    with suppress(OSError):
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    return True


def _writes_only(folders: list[str]) -> bool:
    """Let Landlock refuse writes elsewhere, TCP, and signals and debugging of other processes."""
    version = _LIBC.syscall(444, None, 0, 1)
    if version < 1:
        return False
    handled = _ALL_WRITES | (_REFER if version > 1 else 0) | (_TRUNCATE if version > 2 else 0)
    net, scopes = (3 if version > 3 else 0), (3 if version > 5 else 0)
    rules = struct.pack("QQQ", handled, net, scopes)[: 24 if version > 5 else 16 if net else 8]
    ruleset = _LIBC.syscall(444, rules, len(rules), 0)
    if ruleset < 0:
        return False
    devices = [str(path) for name in _DEVICES for path in Path("/dev").glob(name)]
    file = _WRITE_FILE | (handled & _TRUNCATE)
    for place, allowed in [
        *((folder, handled) for folder in folders),
        *((device, file) for device in devices),
    ]:
        with suppress(OSError):
            opened = os.open(place, os.O_PATH)
            _LIBC.syscall(445, ruleset, 1, struct.pack("=Qi", allowed, opened), 0)
            os.close(opened)
    done = bool(_LIBC.syscall(446, ruleset, 0) == 0)
    os.close(ruleset)
    return done


def _without_sockets() -> bool:
    """Let the kernel refuse sockets, and ways into other processes, with EPERM."""
    if platform.machine() not in _MACHINES:
        return False
    machine, calls = _MACHINES[platform.machine()]
    refused = [*calls.values(), _IO_URING, _PIDFD_GETFD]
    load, equal, above, answer = 0x20, 0x15, 0x35, 0x06
    many = len(refused)
    program = [
        (load, 0, 0, 4),  # the machine
        (equal, 0, many + 3, machine),
        (load, 0, 0, 0),  # the call
        (above, many + 1, 0, _X32),
        *((equal, many - at, 0, call) for at, call in enumerate(refused)),
        (answer, 0, 0, 0x7FFF0000),  # allow
        (answer, 0, 0, 0x00050001),  # EPERM
    ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *one) for one in program))
    whole = struct.pack("HxxxxxxP", len(program), ctypes.addressof(code))
    return bool(_LIBC.prctl(_SET_SECCOMP, _FILTER, whole, 0, 0) == 0)


if __name__ == "__main__":
    os.environ[IN_FORCE] = ", ".join(confine([one for one in sys.argv.pop(1).split(":") if one]))
    from simulator.worker import serve  # NumPy has threads

    serve.main()
