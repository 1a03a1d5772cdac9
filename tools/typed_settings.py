"""Writes src/ottla/client/config/typed_settings.py: the settings as keywords, for type checkers and editors.

`make settings` runs it, after a setting has come, gone or changed its type; a test holds the file against the tables.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from ottla.client.admin.config import AdminConfig
from ottla.client.config.common_config import CommonConfig
from ottla.client.consumer.config import ConsumerConfig
from ottla.client.producer.config import ProducerConfig
from ottla.config import Option, Password, options_of

PLACE = Path(__file__).parent.parent / "src/ottla/client/config/typed_settings.py"
HEAD = '''"""The settings of the clients as keywords, for type checkers and editors: `Consumer(**settings: Unpack[ConsumerSettings])`.

Written by `make settings` from the config classes (`common_config.py`, and `config.py` of each client), which document the
settings and accept other forms as well, such as text for a number.
"""

# Annotations are not postponed: a type checker at run time reads these faster than text.
from collections.abc import Callable, Iterable
from typing import Any, Literal, TypedDict
'''
DESERIALIZERS = ("key_deserializer", "value_deserializer")
"""Named by the consumers themselves: their types say what is in a record."""
WRITTEN_TOO: dict[str, tuple[str | int, ...]] = {"acks": ("-1", -1)}
"""What is taken as well for one of a few values: `read_producer_settings` knows it."""


def written() -> str:
    """The whole file."""
    common = {option.field for option in options_of(CommonConfig)}
    of_consumer = [option for option in options_of(ConsumerConfig) if option.field not in common]
    plain = [option for option in of_consumer if option.field not in DESERIALIZERS]
    made = [option for option in of_consumer if option.field in DESERIALIZERS]
    parts = (
        typed_dict("CommonSettings", "TypedDict", "Settings of all clients.", options_of(CommonConfig)),
        typed_dict("ProducerSettings", "CommonSettings", "Settings of a producer.", own(ProducerConfig, common)),
        typed_dict(
            "PlainConsumerSettings", "CommonSettings", "Settings of a consumer except its deserializers.", plain
        ),
        typed_dict("ConsumerSettings", "PlainConsumerSettings", "Settings of a consumer.", made),
        typed_dict("AdminSettings", "CommonSettings", "Settings of an admin.", own(AdminConfig, common)),
    )
    return "\n\n".join((HEAD, *parts))


def own(cls: type[Any], common: set[str]) -> list[Option]:
    """What the class adds to what all have."""
    return [option for option in options_of(cls) if option.field not in common]


def typed_dict(name: str, base: str, text: str, options: Iterable[Option]) -> str:
    """One class."""
    lines = "".join(f"    {option.field}: {taken(option)}\n" for option in options)
    return f'class {name}({base}, total=False):\n    """{text}"""\n\n{lines}'


def taken(option: Option) -> str:
    """The type of what a caller may hand over."""
    too = ", ".join(as_source(value) for value in WRITTEN_TOO.get(option.field, ()))
    return spelled(option.type).replace("]", f", {too}]") if too else spelled(option.type)


def spelled(hint: Any) -> str:
    """A type as it is written; lists are taken as text with commas too, and numbers in a choice as numbers."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return spelled(args[0])
    if origin in (typing.Union, types.UnionType):
        return " | ".join(spelled(arg) for arg in args)
    if origin is typing.Literal:
        values = [*args, *(int(arg) for arg in args if str(arg).isdigit())]
        return f"Literal[{', '.join(map(as_source, values))}]"
    if origin is tuple:
        return f"str | Iterable[{spelled(args[0])}]"
    if origin is Callable:
        return f"Callable[[{', '.join(map(spelled, args[0]))}], {spelled(args[1])}]"
    if hint is Password:
        return "str"
    return "None" if hint is type(None) else str(getattr(hint, "__name__", hint))


def as_source(value: str | int) -> str:
    """A value as it stands in a program."""
    return f'"{value}"' if isinstance(value, str) else str(value)


if __name__ == "__main__":
    PLACE.write_text(written(), encoding="utf-8")
