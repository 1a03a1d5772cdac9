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
from ottla.client.share.config import ShareConsumerConfig
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
"""Types that are also accepted for a choice; `read_producer_settings` converts them."""


def written() -> str:
    """The whole file."""
    common = {option.field for option in options_of(CommonConfig)}
    parts = (
        typed_dict("CommonSettings", "TypedDict", "Settings of all clients.", options_of(CommonConfig)),
        typed_dict("ProducerSettings", "CommonSettings", "Settings of a producer.", own(ProducerConfig, common)),
        *consumer_dicts("ConsumerSettings", "a consumer", own(ConsumerConfig, common)),
        *consumer_dicts("ShareConsumerSettings", "a share consumer", own(ShareConsumerConfig, common)),
        typed_dict("AdminSettings", "CommonSettings", "Settings of an admin.", own(AdminConfig, common)),
    )
    return "\n\n".join((HEAD, *parts))


def consumer_dicts(name: str, owner: str, options: Iterable[Option]) -> tuple[str, str]:
    """Two classes: the settings without the deserializers, and all of them."""
    options = list(options)
    plain = [option for option in options if option.field not in DESERIALIZERS]
    made = [option for option in options if option.field in DESERIALIZERS]
    return (
        typed_dict(f"Plain{name}", "CommonSettings", f"Settings of {owner} except its deserializers.", plain),
        typed_dict(name, f"Plain{name}", f"Settings of {owner}.", made),
    )


def own(cls: type[Any], common: set[str]) -> list[Option]:
    """Return the settings that the class adds to the common ones."""
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
    """Return a value as Python source."""
    return f'"{value}"' if isinstance(value, str) else str(value)


if __name__ == "__main__":
    PLACE.write_text(written(), encoding="utf-8")
