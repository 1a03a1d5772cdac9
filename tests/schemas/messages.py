"""Generated Protobuf classes, one of them nested and one imported."""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

POOL = descriptor_pool.DescriptorPool()
FIELD = descriptor_pb2.FieldDescriptorProto


def add_file(name: str, imports: list[str], messages: dict[str, dict[str, Any]]) -> None:
    """Add a file with messages; each has fields by name, and nested messages as dicts."""
    file = descriptor_pb2.FileDescriptorProto(name=name, package="shop", syntax="proto3", dependency=imports)
    for title, fields in messages.items():
        fill_message(file.message_type.add(name=title), fields)
    POOL.Add(file)


def fill_message(message: Any, fields: dict[str, Any]) -> None:
    number = 0
    for name, kind in fields.items():
        if isinstance(kind, dict):
            fill_message(message.nested_type.add(name=name), kind)
            continue
        number += 1
        field = message.field.add(name=name, number=number, label=FIELD.LABEL_OPTIONAL)
        if isinstance(kind, str):
            field.type, field.type_name = FIELD.TYPE_MESSAGE, kind
        else:
            field.type = kind


add_file("place.proto", [], {"Place": {"street": FIELD.TYPE_STRING}})
add_file(
    "order.proto",
    ["place.proto"],
    {
        "First": {"id": FIELD.TYPE_INT64},
        "Order": {"id": FIELD.TYPE_INT64, "place": ".shop.Place", "Line": {"item": FIELD.TYPE_STRING}},
    },
)


def message_class(name: str) -> Any:
    return message_factory.GetMessageClass(POOL.FindMessageTypeByName(name))


Place, First, Order, Line = map(message_class, ("shop.Place", "shop.First", "shop.Order", "shop.Order.Line"))
