"""XML of strangers: elements that know their line; nothing that could expand is read."""

from __future__ import annotations

from collections.abc import Mapping
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

_DEEP = 64


class Node(Element):
    """An element.

    Attributes:
        line: where it begins in its file, from 1.
    """

    line = 0


class NotXmlError(ValueError):
    """A text that is no XML, or has what is not read.

    Attributes:
        line: where, from 1.
    """

    def __init__(self, line: int, why: str) -> None:
        super().__init__(why)
        self.line = line


def parse(text: str | bytes) -> Element:
    """Return the root of a document, a :class:`Node` as all below it are.

    Raises:
        NotXmlError: it is no XML, is nested too deeply, or has a document type, with which
            entities could expand.
    """
    builder, parser = TreeBuilder(element_factory=Node), expat.ParserCreate()
    depth = 0

    def refuse(*_: object) -> None:
        why = "has a <!DOCTYPE>, which is not read; remove it"
        raise NotXmlError(parser.CurrentLineNumber, why)

    def start(tag: str, attributes: Mapping[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > _DEEP:
            raise NotXmlError(parser.CurrentLineNumber, "nested too deeply")
        element = builder.start(tag, dict(attributes))
        assert isinstance(element, Node)
        element.line = parser.CurrentLineNumber

    def end(tag: str) -> None:
        nonlocal depth
        depth -= 1
        builder.end(tag)

    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = builder.data
    try:
        parser.Parse(text, True)
    except NotXmlError:
        raise
    except (expat.ExpatError, LookupError, ValueError) as error:  # the latter two: its encoding
        why = expat.ErrorString(error.code) if isinstance(error, expat.ExpatError) else error
        raise NotXmlError(parser.CurrentLineNumber, f"not XML: {why}") from error
    return builder.close()
