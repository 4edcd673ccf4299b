"""Faults in a network that runs in a confined worker: both sides of it.

A trace stays in the worker; here it is a name, and the feeds to make it again where the worker was
restarted.
"""

from __future__ import annotations

import itertools
import weakref
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from simulator.contract import Array, Offer, Options
from simulator.contract.bits import dtype
from simulator.contract.injection import BitFault, Faulty, Injector, Site, Suffix, Trace
from simulator.worker.client import Worker
from simulator.worker.remote import Implementation

STAGE = "runtime.injector"
"""What a worker makes :class:`Served` by."""
Feeds = Mapping[str, Array]


class Served:
    """The worker's side.

    Args:
        kind: the real injector.
        artifact: the file.
        options: of the runtime.
    """

    def __init__(self, kind: type[Injector], artifact: Path, options: Options) -> None:
        self._real = kind(artifact, options)
        self._traces: dict[int, Trace] = {}
        self._suffixes: dict[tuple[int, ...], Suffix] = {}

    def told(self) -> tuple[str, str, tuple[Site, ...]]:
        """Return the injector's attributes."""
        return self._real.method, self._real.tap, tuple(self._real.sites)

    def trace(self, token: int, feeds: Feeds) -> dict[str, int]:
        """Make a trace and keep it; return its sizes in bytes."""
        self._traces[token] = found = self._real.trace(feeds)
        return {name: array.nbytes for name, array in found.items()}

    def forget(self, tokens: Sequence[int]) -> None:
        """Drop traces."""
        for token in tokens:
            self._traces.pop(token, None)

    def golden(self, token: int) -> Faulty | None:
        """Return what a trace says; None: it is not here."""
        found = self._traces.get(token)
        return None if found is None else self._real.golden(found)

    def stored(self, site: int) -> tuple[Array, str]:
        """Return the values of a site as bytes, with the name of their type."""
        found = np.ascontiguousarray(self._real.stored(self._real.sites[site]))
        return found.view(np.uint8), found.dtype.name

    def run(self, token: int, sites: tuple[int, ...], faults: Sequence[BitFault]) -> Faulty | None:
        """Run the network from sites on; None: the trace is not here."""
        found = self._traces.get(token)
        if found is None:
            return None
        if sites not in self._suffixes:
            self._suffixes[sites] = self._real.at(*(self._real.sites[at] for at in sites))
        return self._suffixes[sites].run(found, faults)

    def shut(self, sites: tuple[int, ...]) -> None:
        """Close the rest of the network from sites on."""
        if sites in self._suffixes:
            self._suffixes.pop(sites).close()

    def close(self) -> None:
        """Free all."""
        for sites in list(self._suffixes):
            self.shut(sites)
        self._real.close()


class _Trace(dict[str, Array]):
    """Arrays of the right sizes that take no memory, and what the worker makes the real one of."""

    def __init__(self, token: int, feeds: Feeds, sizes: Mapping[str, int]) -> None:
        nothing = np.zeros(1, np.uint8)
        super().__init__({n: np.broadcast_to(nothing, size) for n, size in sizes.items()})
        self.token, self.feeds = token, feeds


class ConfinedInjector(Injector):
    """Our side.

    Args:
        worker: it is confined.
        number: of the runtime's offer among those of the backend.
        offer: of the runtime.
        artifact: as for the real one.
        options: as for the real one.
    """

    def __init__(
        self, worker: Worker, number: int, offer: Offer, artifact: Path, options: Options
    ) -> None:
        self._remote = Implementation(worker, STAGE, number, artifact, options)
        self._tokens, self._gone = itertools.count(), deque[int]()
        super().__init__(artifact, options)

    def _open(self, artifact: Path) -> None:
        self.method, self.tap, self.sites = self._remote.call("told")
        self._places = {site: at for at, site in enumerate(self.sites)}

    def trace(self, feeds: Feeds) -> Trace:
        """Run the network once without faults; what the suffixes need stays in the worker."""
        token = next(self._tokens)
        made = _Trace(token, feeds, self._remote.call("trace", token, dict(feeds)))
        weakref.finalize(made, self._gone.append, token)
        return made

    def asked(self, name: str, trace: Trace, *arguments: Any) -> Faulty:
        """Call the worker about a trace, which is made again where the worker lacks it."""
        assert isinstance(trace, _Trace)
        if self._gone:
            gone = [self._gone.popleft() for _ in range(len(self._gone))]
            self._remote.call("forget", gone)
        while (found := self._remote.call(name, trace.token, *arguments)) is None:
            self._remote.call("trace", trace.token, dict(trace.feeds))
        assert isinstance(found, Faulty)
        return found

    def golden(self, trace: Trace) -> Faulty:
        """Return what a trace says of the inference without faults."""
        return self.asked("golden", trace)

    def stored(self, site: Site) -> Array:
        """Return a copy of the weights or biases of a site."""
        values, kind = self._remote.call("stored", self._places[site])
        found: Array = values.reshape(-1).view(dtype(kind)).reshape(site.shape)
        return found

    def at(self, *sites: Site) -> Suffix:
        """Open the rest of the network from sites on."""
        return _ConfinedSuffix(self, tuple(self._places[site] for site in sites))

    def shut(self, sites: tuple[int, ...]) -> None:
        """Close the rest of the network from sites on."""
        self._remote.call("shut", sites)

    def close(self) -> None:
        """Free what the worker holds."""
        self._remote.close()


class _ConfinedSuffix(Suffix):
    def __init__(self, injector: ConfinedInjector, sites: tuple[int, ...]) -> None:
        self._injector, self._sites = injector, sites

    def run(self, trace: Trace, faults: Sequence[BitFault] = ()) -> Faulty:
        """Run the rest of the network with faults at its sites."""
        return self._injector.asked("run", trace, self._sites, list(faults))

    def close(self) -> None:
        """Free what the worker holds."""
        self._injector.shut(self._sites)
