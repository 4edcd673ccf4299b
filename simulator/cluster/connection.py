"""The connection of this process to Ray: a cluster of its own on this machine, or one to join."""

from __future__ import annotations

import atexit
import importlib
import os
import re
import secrets
import signal
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from simulator.cluster.temporary import Temporary
from simulator.contract.library import Library
from simulator.errors import UserError, one_line

RAY = Library("ray", distribution="ray", extra="ray")
STORE = 256 * 2**20
"""Bytes of the object store of an own cluster: plans, and model files while they are sent."""
STARTS = 3
"""How often a cluster of our own is started at most."""
PATIENCE = 10.0
"""Seconds until a cluster that does not answer is given up."""
Needs = tuple[tuple[str, float], ...]
"""The resources that a stack asks for, by name."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster that this process is connected to.

    Attributes:
        ray: the library.
        place: the address, as it was given; empty for a cluster of our own on this machine.
        logs: where an own cluster writes what its workers say.
        idle: workers of an own cluster that wait for the next run, by what they were started with.
    """

    ray: Any
    place: str
    logs: Path | None = None
    idle: dict[Any, list[Any]] = field(default_factory=dict)

    def nodes(self) -> dict[str, Mapping[str, float]]:
        """Return the resources of every node that is alive, by its name."""
        alive = [node for node in self.ray.nodes() if node["Alive"]]
        return {
            f"{node['NodeManagerHostname']} {node['NodeID'][:8]}": node["Resources"]
            for node in alive
        }

    def capacity(self, needs: Needs) -> int:
        """Return how many workers with some resources the nodes hold together."""
        wanted = {_ray_name(name): amount for name, amount in needs}
        if self.place and not wanted:
            wanted["CPU"] = 1.0
        every = self.nodes().values()
        return sum(
            min((_times(amount, node.get(name, 0)) for name, amount in wanted.items()), default=1)
            for node in every
        )

    def signal(self, error: Exception) -> str:
        """Return the signal that ended a worker of an own cluster; empty if it is not known."""
        process = re.search(r"\tpid: (\d+)", str(error))
        if process is None or self.logs is None:
            return ""
        for log in self.logs.glob(f"worker-*-{process[1]}.err"):
            with suppress(OSError):
                said = log.read_text(errors="replace")
                found = re.search(r"^\*{3} (SIG[A-Z]+) received", said, re.MULTILINE)
                return found[1] if found else ""
        return ""

    def lacking(self, who: str, needs: Needs, lost: bool = False) -> UserError:
        """Return the error of a stack whose resources no node has, or none has any more."""
        found = "; ".join(f"{name}: {_has(has)}" for name, has in self.nodes().items())
        now = "no node of the cluster has that"
        if lost:
            now = "the last node that had that is lost; what was done stays for simulate resume"
        return UserError(
            f"{who} needs {told(needs)}, and {now}; the nodes: {found}; "
            "start a node with: ray start --resources='{...}', or change runtime.resources"
        )

    @contextmanager
    def reached(self) -> Iterator[None]:
        """Say in one line that the cluster has gone, in place of what Ray's client raises.

        Raises:
            UserError: it has.
        """
        try:
            yield
        except (ConnectionError, self.ray.exceptions.RaySystemError) as error:
            raise UserError(
                f"--executor ray:{self.place}: the cluster answers no more ({one_line(error)}); "
                "what was done stays for simulate resume"
            ) from error

    def options(self, needs: Needs) -> dict[str, object]:
        """Return what a worker with some resources asks Ray for.

        One that names its resources asks for no processor besides, so that workers of other stacks,
        which are one for each processor, never keep it from its machine.
        """
        cpus = 1 if self.place and not needs else 0
        found: dict[str, object] = {"num_cpus": cpus, "max_restarts": 0}
        others = dict(needs)
        if "cpu" in others:
            found["num_cpus"] = others.pop("cpu")
        if "gpu" in others:
            found["num_gpus"] = others.pop("gpu")
        return found | {"resources": others, "max_task_retries": 0}


_joined: list[Cluster] = []
"""The cluster that this process is connected to, if it is."""


def connect(place: str) -> Cluster:
    """Connect this process to a cluster; it stays connected until it ends.

    Args:
        place: ``HOST:PORT`` of a cluster that this machine is a node of, ``//HOST:PORT`` of a
            cluster's client server, or empty: a cluster of our own is started on this machine.

    Raises:
        MissingLibrary: Ray is not installed.
        UserError: there is no such cluster, or the process is connected to another one.
    """
    known = next((cluster for cluster in _joined if cluster.ray.is_initialized()), None)
    if known is not None:
        if known.place == place:
            return known
        raise UserError(
            f"--executor ray: this process is connected to {known.place or 'one of its own'}, "
            f"so it cannot go to {place or 'one of its own'}"
        )
    if place:
        _refuse_silent(place)
    os.environ["RAY_ENABLE_AUTO_CONNECT"] = "0"  # else who asks a cluster that is gone starts one
    ray = RAY.load()
    if not place:
        _alone()
    try:
        logs = _init(ray, place)
    except Exception as error:  # Ray raises many kinds
        what = f"join the cluster at {place.lstrip('/')}" if place else "start a cluster here"
        raise UserError(f"--executor ray: cannot {what}: {one_line(error)}") from error
    _hush()
    _joined[:] = [Cluster(ray, place, logs)]
    return _joined[0]


def _init(ray: Any, place: str) -> Path | None:
    """Join a cluster, or start one, and return the folder of its logs.

    Ray gives a busy machine 30 s to start one, so it is tried thrice.
    """
    if place:
        _join(ray, address=f"ray:{place}" if place.startswith("//") else place)
        return None
    temporary = Temporary()
    atexit.register(_end, ray, temporary)
    for left in reversed(range(STARTS)):
        try:
            with _loopback():
                _join(
                ray, address="local", num_cpus=0, include_dashboard=False,
                object_store_memory=STORE, _temp_dir=str(temporary.inside),
            )  # fmt: skip
            break
        except RuntimeError:  # it was too slow, or a process of it did not start
            ray.shutdown()
            if not left:
                raise
    return temporary.inside / "session_latest" / "logs"


@contextmanager
def _loopback() -> Iterator[None]:
    """Let a cluster that is started have 127.0.0.1, where all its servers listen there alone.

    Ray takes no such address from its caller, but has it where it knows no clusters of machines, as
    on macOS; who joins one afterwards needs it otherwise.
    """
    constants: Any = importlib.import_module("ray._private.ray_constants")
    before = constants.ENABLE_RAY_CLUSTER
    constants.ENABLE_RAY_CLUSTER = False
    try:
        yield
    finally:
        constants.ENABLE_RAY_CLUSTER = before


def _join(ray: Any, **how: Any) -> None:
    before = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(log_to_driver=False, logging_level="ERROR", namespace="pipeline-simulator", **how)
    finally:
        if before is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)  # Ray would end the process with code 15


def _alone() -> None:
    """Set what a cluster of our own needs: a secret that no file has, and no reports to Ray.

    Ray reads both when it is imported, maybe by somebody else, so it is told to read them again.
    It hides every GPU from workers that do not ask for one; ours see what this process sees.
    """
    os.environ["RAY_AUTH_MODE"] = "token"
    os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"
    inner: Any = importlib.import_module("ray._raylet")
    inner.Config.initialize("")
    inner.AuthenticationTokenLoader.instance().reset_cache()


def leave() -> None:
    """Disconnect this process; a cluster of its own ends."""
    for cluster in _joined:
        cluster.ray.shutdown()
    _joined.clear()


def _end(ray: Any, temporary: Temporary) -> None:
    ray.shutdown()
    temporary.remove()


def _hush() -> None:
    """Keep Ray's own words about workers that die off stdout; we say it ourselves."""
    with suppress(ImportError, AttributeError):
        worker: Any = importlib.import_module("ray._private.worker")
        if callable(worker.print_to_stdstream):
            worker.print_to_stdstream = lambda *given, **named: None


def _refuse_silent(place: str) -> None:
    host, _, port = place.lstrip("/").rpartition(":")
    if not host or not port.isdecimal():
        raise UserError(
            f"--executor ray:{place}: an address HOST:PORT expected, for example ray:10.0.0.5:6379 "
            "or ray://10.0.0.5:10001"
        )
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=PATIENCE):
            pass
    except (OSError, OverflowError, UnicodeError) as error:  # a name may be none
        raise UserError(
            f"--executor ray:{place}: nobody answers there: {one_line(error)}; start a cluster "
            "with: ray start --head"
        ) from error


def _ray_name(name: str) -> str:
    return {"gpu": "GPU", "cpu": "CPU"}.get(name, name)


def _times(amount: float, has: float) -> int:
    """How often an amount fits in what a node has; 0.1 fits in 1 ten times."""
    return int(has / amount + 1e-9)


def told(needs: Needs) -> str:
    """Return resources as a profile has them, for messages."""
    return "{" + (", ".join(f"{name}: {amount:g}" for name, amount in needs) or "cpu: 1") + "}"


def _has(has: Mapping[str, float]) -> str:
    """The resources of a node, without those that Ray itself adds."""
    own = {
        name.lower() if name in ("CPU", "GPU") else name: amount
        for name, amount in has.items()
        if ":" not in name and name not in ("memory", "object_store_memory")
    }
    return ", ".join(f"{name} {amount:g}" for name, amount in sorted(own.items())) or "none"
