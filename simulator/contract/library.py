"""Third-party libraries, imported on first use."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import os
import sys
from functools import cache
from types import ModuleType
from typing import Any

from simulator.contract.installing import install
from simulator.errors import MissingLibrary, one_line


class Library:
    """A module that is imported when an attribute of it is first read.

    Backends are listed, and profiles checked, on machines without the library. So no backend
    imports its library at the top of its module. ``cv2 = Library("cv2", ...)`` is used like an
    import and costs nothing until ``cv2.resize`` is called.

    Args:
        module: the module's dotted name.
        distribution: the package that contains it, for its version.
        extra: the extra of ``pipeline-simulator`` that installs it.
        others: packages that contain the same module, built for other devices.

    Attributes:
        slow: whether importing it takes seconds: searches first try what needs no such library.
    """

    slow = False

    def __init__(
        self, module: str, *, distribution: str, extra: str, others: tuple[str, ...] = ()
    ) -> None:
        self._module = module
        self._distributions = (distribution, *others)
        self._extra = extra
        self._loaded: ModuleType | None = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # Python reads these of any object: do not import
            raise AttributeError(name)
        return getattr(self.load(), name)

    def load(self) -> ModuleType:
        """Import the module.

        Raises:
            MissingLibrary: it is not installed, two packages contain it, or it fails to load.
        """
        if self._loaded is None:
            self._refuse_two()
            try:
                self._loaded = importlib.import_module(self._module)
            except ModuleNotFoundError as error:
                missing = error.name or self._module
                raise MissingLibrary(
                    f"{self._module} is needed, but {missing!r} is not installed; "
                    f"try: {install(self._extra)}"
                ) from error
            except Exception as error:  # its code may raise anything while it loads
                raise MissingLibrary(
                    f"{self._module} is installed but does not load: {one_line(error)}; "
                    f"try: pip install --force-reinstall {self.distribution}"
                ) from error
        return self._loaded

    def _refuse_two(self) -> None:
        both = self._installed()
        if len(both) > 1:
            raise MissingLibrary(
                f"{' and '.join(both)} are both installed and overwrite each other's "
                f"{self._module}; try: pip uninstall -y {' '.join(both)}, "
                "then pip install the one that you want"
            )

    def _installed(self) -> list[str]:
        return [name for name in self._distributions if installed_version(name)]

    @property
    def loaded(self) -> bool:
        """Whether the module is imported already."""
        return self._loaded is not None

    @property
    def version(self) -> str | None:
        """Return the installed version, or None; nothing is imported."""
        return installed_version(self.distribution)

    @property
    def present(self) -> bool:
        """Whether the module can be found, whatever package it is from; it is not imported."""
        try:
            return importlib.util.find_spec(self._module) is not None
        except (ImportError, ValueError):
            return False

    @property
    def extra(self) -> str:
        """The extra that installs the library."""
        return self._extra

    @property
    def distribution(self) -> str:
        """The package that contains the library: the installed one, if there are others."""
        return next(iter(self._installed()), self._distributions[0])


def installed_version(distribution: str) -> str | None:
    """Return the version of an installed package, or None.

    To look for one in vain takes longest, so nobody looks again until a folder of ``sys.path``
    has changed, as it does when a package is installed.
    """
    now = _folders()
    if _missing.get(distribution) == now:
        return None
    try:
        return _read(distribution)
    except importlib.metadata.PackageNotFoundError:
        _missing[distribution] = now
        return None


_Folders = list[tuple[str, int | None]]
_missing: dict[str, _Folders] = {}


def _folders() -> _Folders:
    return [(place, _changed(place)) for place in sys.path]


def _changed(place: str) -> int | None:
    try:
        return os.stat(place or ".").st_mtime_ns
    except (OSError, ValueError):
        return None


@cache
def _read(distribution: str) -> str:
    return importlib.metadata.version(distribution)
