"""No name of ours hides an attribute of a foreign base class, on the Python in use.

Such bases get new names with each release, including private ones. One of `threading.Thread`'s broke all consumer
groups.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import inspect
import pkgutil
import textwrap
from collections.abc import Iterator
from enum import Enum
from functools import cache
from types import ModuleType
from typing import Any

import ottla

FREE = frozenset({"object", "ABC", "Generic", "Protocol"})
"""Bases that add only dunder methods."""
MEANT: dict[str, frozenset[str]] = {
    "click.core.Group": frozenset(
        {"list_commands", "get_command", "resolve_command", "format_commands", "invoke", "parse_args", "shell_complete"}
    ),
    "faststream.kafka.broker.broker.KafkaBroker": frozenset({"_connect"}),
    "faststream.kafka.helpers.admin.AdminService": frozenset({"connect", "disconnect", "client", "create_topics"}),
    "http.server.BaseHTTPRequestHandler": frozenset({"close_connection", "log_message", "protocol_version"}),
    "ipywidgets.widgets.widget.Widget": frozenset({"close"}),
    "logging.Formatter": frozenset({"format", "formatException", "formatMessage"}),
    "logging.Handler": frozenset({"handleError"}),
    "logging.LoggerAdapter": frozenset({"process"}),
    "mcp.server.mcpserver.server.MCPServer": frozenset({"call_tool"}),
    "pydantic.json_schema.GenerateJsonSchema": frozenset({"model_schema"}),
    "pydantic.main.BaseModel": frozenset({"model_config"}),
    "socketserver.BaseServer": frozenset({"handle_error"}),
    "socketserver.StreamRequestHandler": frozenset({"disable_nagle_algorithm", "timeout"}),
    "socketserver.TCPServer": frozenset({"address_family", "request_queue_size"}),
    "taskiq.abc.broker.AsyncBroker": frozenset({"startup", "shutdown"}),
    "uvicorn.protocols.http.h11_impl.H11Protocol": frozenset({"connection_made", "data_received", "connection_lost"}),
    "uvicorn.server.Server": frozenset({"shutdown"}),
}
"""The attributes that a subclass of each base is expected to override, in addition to the abstract ones."""
TABLES_OF_TRAITLETS = frozenset(
    {
        "_all_trait_default_generators",
        "_descriptors",
        "_instance_inits",
        "_static_immutable_initial_values",
        "_trait_default_generators",
        "_traits",
    }
)
"""The attributes that the metaclass of traitlets adds to each class."""
INTERFACES = frozenset(
    {"pyspark.sql.datasource", "pyspark.sql.streaming.datasource", "pyspark.sql.streaming.stateful_processor"}
)
"""Modules with classes that are made to be overridden: all their public names may be redefined."""


def modules() -> Iterator[ModuleType]:
    """Yield all modules of Ottla that can be imported here, without Spark's part if Spark is missing."""
    for found in pkgutil.walk_packages(ottla.__path__, "ottla."):
        if not found.name.endswith("__main__"):
            with contextlib.suppress(ModuleNotFoundError):
                yield importlib.import_module(found.name)


def ours(kind: type) -> bool:
    return kind.__module__.split(".")[0] in ("ottla", __name__.split(".")[0])


def foreign_bases(kind: type) -> list[type]:
    return [base for base in kind.__mro__ if not ours(base) and base.__name__ not in FREE]


def heirs() -> list[type]:
    """Return our classes with a foreign base. Enumerations and named tuples check their names themselves."""
    found = {kind for module in modules() for kind in vars(module).values() if inspect.isclass(kind) and ours(kind)}
    plain = (kind for kind in found if foreign_bases(kind) and not issubclass(kind, Enum))
    return sorted((kind for kind in plain if not hasattr(kind, "_fields")), key=full_name)


def full_name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def names_of(kind: type) -> set[str]:
    """Return the names that a class defines or that its methods assign to `self`, without dunders."""
    names = {*vars(kind), *assigned_to_self(kind)} - TABLES_OF_TRAITLETS
    return {name for name in names if not name.startswith(("__", "_abc_"))}


@cache
def assigned_to_self(kind: type) -> frozenset[str]:
    try:
        source = ast.parse(textwrap.dedent(inspect.getsource(kind)))
    except (OSError, TypeError):
        return frozenset()  # the interpreter's own have no source
    attributes = (node for node in ast.walk(source) if isinstance(node, ast.Attribute))
    return frozenset(each.attr for each in attributes if is_stored_in_self(each))


def is_stored_in_self(node: ast.Attribute) -> bool:
    return isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name) and node.value.id == "self"


def hidden_by(kind: type) -> set[str]:
    """Return the attributes of foreign bases that `kind` or a base of ours overrides unintentionally."""
    mine = set().union(*(names_of(base) for base in kind.__mro__ if ours(base)))
    hidden: set[str] = set()
    for base in foreign_bases(kind):
        hidden |= (mine & names_of(base)) - meant_by(base)
        mine -= meant_by(base)
    return hidden


def meant_by(base: type) -> set[str]:
    """Return the names that a subclass of the base is expected to override."""
    public = (name for name in vars(base) if base.__module__ in INTERFACES and not name.startswith("_"))
    return {*MEANT.get(full_name(base), ()), *getattr(base, "__abstractmethods__", ()), *public}


def test_no_name_of_ours_hides_one_of_a_foreign_base() -> None:
    hidden = {full_name(kind): names for kind in heirs() if (names := hidden_by(kind))}
    assert hidden == {}, "rename it there, or name it in MEANT if its base asks for it"


def test_a_name_that_hides_one_is_found_in_every_part_of_the_base() -> None:
    import threading

    class Hides(threading.Thread):
        def __init__(self) -> None:
            super().__init__()
            self._target: Any = None

        def _bootstrap(self) -> None: ...

        def of_its_own(self) -> None: ...

    assert hidden_by(Hides) == {"_target", "_bootstrap"}


def test_nothing_of_ours_is_a_thread() -> None:
    import threading

    assert [full_name(kind) for kind in heirs() if issubclass(kind, threading.Thread)] == []
