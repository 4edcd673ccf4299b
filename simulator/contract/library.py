"""Third-party libraries, imported on first use."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
from types import ModuleType
from typing import Any

from simulator.errors import MissingLibrary, one_line


class Library:
    """A module that is imported when an attribute of it is first read.

    Adapters are listed, and profiles checked, on machines that lack the library; so no
    adapter imports its library at the top. ``cv2 = Library("cv2", ...)`` reads like an import
    and costs nothing until ``cv2.resize`` is called.

    Args:
        module: the module's dotted name.
        distribution: the name of the installed package that has it, for its version.
        extra: the extra of ``pipeline-simulator`` that installs it.
    """

    def __init__(self, module: str, *, distribution: str, extra: str) -> None:
        self._module = module
        self._distribution = distribution
        self._extra = extra
        self._loaded: ModuleType | None = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # Python asks every object for these; no reason to import
            raise AttributeError(name)
        return getattr(self.load(), name)

    def load(self) -> ModuleType:
        """Import the module.

        Raises:
            MissingLibrary: it is not installed, or it is installed and fails to load.
        """
        if self._loaded is None:
            try:
                self._loaded = importlib.import_module(self._module)
            except ModuleNotFoundError as error:
                missing = error.name or self._module
                raise MissingLibrary(
                    f"{self._module} is needed and {missing!r} is not installed; "
                    f"try: pip install 'pipeline-simulator[{self._extra}]'"
                ) from error
            except Exception as error:  # whatever its own code raises while it loads
                raise MissingLibrary(
                    f"{self._module} is installed and does not load: {one_line(error)}; "
                    f"try: pip install --force-reinstall {self._distribution}"
                ) from error
        return self._loaded

    @property
    def version(self) -> str | None:
        """The installed version, or None; nothing is imported."""
        try:
            return importlib.metadata.version(self._distribution)
        except importlib.metadata.PackageNotFoundError:
            return None

    @property
    def present(self) -> bool:
        """Whether the module can be found, under whatever distribution; it is not imported."""
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
        """The installed package that has the library."""
        return self._distribution
