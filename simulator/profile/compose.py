"""From the text of a YAML document to its nodes."""

from __future__ import annotations

from contextlib import suppress

from yaml import Node, SafeLoader, YAMLError
from yaml.composer import Composer
from yaml.constructor import SafeConstructor
from yaml.resolver import Resolver

try:
    from yaml._yaml import CParser
except ImportError:  # PyYAML was built without libyaml
    Loader = SafeLoader
else:

    class Loader(Composer, CParser, SafeConstructor, Resolver):  # type: ignore[no-redef]
        """Parses with libyaml, in a sixth of the time.

        Nodes are composed in Python: libyaml would do that by recursion in C, which a document of
        ten thousand brackets ends with the whole process.
        """

        def __init__(self, text: str) -> None:
            CParser.__init__(self, text)
            Composer.__init__(self)
            SafeConstructor.__init__(self)
            Resolver.__init__(self)


def compose(text: str) -> tuple[Loader | SafeLoader, Node | None]:
    """Return the only document of a text, None where it is empty, and what constructs its values.

    Raises:
        YAMLError: it is not valid YAML.
        RecursionError: it is nested too deeply.
    """
    if "\t" not in text:  # where tabs may be, the two parsers do not agree
        with suppress(YAMLError, ValueError):  # the other one says better what is wrong
            return _composed(Loader(text))
    return _composed(SafeLoader(text))


def _composed(loader: Loader | SafeLoader) -> tuple[Loader | SafeLoader, Node | None]:
    return loader, loader.get_single_node()
