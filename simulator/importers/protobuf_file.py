"""Protobuf files of which a few fields are read, by the protobuf library itself.

A schema names the messages and, of each, the fields that are read; the library skips the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

Schema = Mapping[str, Mapping[str, tuple[int, str]]]
"""The number and type of each field by message: ``float``, ``int64``, … or a message's name; ``*``
before it where it is repeated. The first message is that of the file."""


class BrokenFileError(ValueError):
    """The bytes are no such file."""


def parse(name: str, schema: Schema, raw: bytes) -> Any:
    """Return the message of a file.

    Args:
        name: of the schema; one name has one schema.
        schema: its messages.
        raw: the file.

    Raises:
        BrokenFileError: the bytes are no such message.
    """
    made = _class_of(name, tuple((key, tuple(fields.items())) for key, fields in schema.items()))()
    try:
        made.ParseFromString(raw)
    except (DecodeError, ValueError, RecursionError) as error:
        raise BrokenFileError(str(error)) from error
    return made


@cache
def _class_of(
    name: str, schema: tuple[tuple[str, tuple[tuple[str, tuple[int, str]], ...]], ...]
) -> Any:
    file = descriptor_pb2.FileDescriptorProto(name=f"{name}.proto", package=name, syntax="proto3")
    kinds = descriptor_pb2.FieldDescriptorProto
    for message, fields in schema:
        made = file.message_type.add(name=message)
        for field, (number, kind) in fields:
            label = kinds.LABEL_REPEATED if kind.startswith("*") else kinds.LABEL_OPTIONAL
            one = made.field.add(name=field, number=number, label=label)
            plain = kind.removeprefix("*")
            if plain[0].isupper():
                one.type, one.type_name = kinds.TYPE_MESSAGE, f".{name}.{plain}"
            else:
                one.type = kinds.Type.Value(f"TYPE_{plain.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{name}.{schema[0][0]}"))
