"""Options that several commands share, and the parsing of their values.

Names and values of settings are checked by the settings' own tables.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click
from click.core import ParameterSource

from ottla.cli.contexts.choice import CONTEXT_VARIABLE, chosen_context, complete_names
from ottla.config import unknown_among
from ottla.errors import ConfigError, NotYetError
from ottla.ports import is_port
from ottla.properties import read_properties

if TYPE_CHECKING:
    from pathlib import Path

    from ottla.cli.contexts.contexts import ClusterContext
    from ottla.client.admin import Admin
    from ottla.model import TopicPartition

F = TypeVar("F", bound=Callable[..., Any])

FILE = "ottla.command-config"
"""The key of the file's name in click's context."""
CONTEXT, CONTEXT_NAME = "ottla.context", "ottla.context-name"
"""The keys of the selected context and of the given name."""
DEFAULT_ADDRESS = "127.0.0.1:9092"
ADDRESS_VARIABLE = "OTTLA_BOOTSTRAP_SERVERS"
"""The variable with the address, used if neither the command nor its `--command-config` gives one."""
PAGE_ADDRESS = "127.0.0.1:8080"
PATIENCE_SECONDS = 5.0
"""The time for which a command tries to reach a broker."""
REFUSED_MS = 1_000
"""The time for which a command retries an explicit address that refuses connections."""
REFUSED_BY_DEFAULT_MS = 3_000
"""The same for the default address: `ottla broker &` may just be starting."""


def bootstrap_server(command: F) -> F:
    """Add `-b`, `--bootstrap-server` and `--context`."""
    address = click.option(
        "-b",
        "--bootstrap-server",
        metavar="HOST:PORT",
        envvar=ADDRESS_VARIABLE,
        default=DEFAULT_ADDRESS,
        show_default=f"address of the context, or {DEFAULT_ADDRESS}",
        show_envvar=True,
        callback=address_of,
        help="A broker of the cluster; several are separated by commas.",
    )
    context = click.option(
        "--context",
        metavar="NAME",
        envvar=CONTEXT_VARIABLE,
        show_envvar=True,
        is_eager=True,
        expose_value=False,
        callback=lambda context, _, name: context.meta.update({CONTEXT_NAME: name}),
        shell_complete=complete_names,
        help="The cluster by its name in ottla context.",
    )
    return address(context(command))


def address_of(context: click.Context, _: click.Parameter, given: str) -> str:
    """Return the address of the cluster, and store the selected context for `client_settings`."""
    chosen = chosen_context(
        context.meta.get(CONTEXT_NAME),
        context.get_parameter_source("context"),
        context.get_parameter_source("bootstrap_server"),
        file_says="bootstrap.servers" in settings_of_file(context.meta.get(FILE)),
    )
    context.meta[CONTEXT] = chosen
    return given if chosen is None else chosen.bootstrap_servers


def settings_option(owner: str) -> Callable[[F], F]:
    """Return a decorator that adds `--set key=value` and, for a client, `--command-config FILE`."""
    given = set_option(owner)
    if owner == "broker":
        return given
    file = click.option(
        "--command-config",
        metavar="FILE",
        type=click.Path(),
        is_eager=True,
        expose_value=False,
        callback=lambda context, _, place: context.meta.update({FILE: place}),
        help=f"A properties file with settings of the {owner}, such as the login; --set overrides it.",
    )
    return lambda command: file(given(command))


def set_option(owner: str) -> Callable[[F], F]:
    """Return a decorator that adds `--set`."""
    return click.option(
        "--set",
        "settings",
        metavar="KEY=VALUE",
        multiple=True,
        help=f"A setting of the {owner} by Kafka's name; may be repeated.",
    )


def names_argument(name: str, kind: str, metavar: str, *, required: bool = True) -> Callable[[F], F]:
    """Give a command an argument with several names. The option `--KIND`, as in Kafka's tools, adds to them."""

    def decorate(command: F) -> F:
        @click.argument(name, metavar=f"{metavar}..." if required else f"[{metavar}]...", nargs=-1)
        @name_option(kind, metavar, f"A {kind}, instead of {metavar}; may be repeated.", multiple=True)
        @wraps(command)
        def run(named: tuple[str, ...], **others: Any) -> Any:
            names = (*others.pop(name), *named)
            if required and not names:
                raise click.MissingParameter(param_hint=f"'{metavar}...'", param_type="argument")
            return command(**{name: names}, **others)

        return cast("F", run)

    return decorate


def name_argument(kind: str) -> Callable[[F], F]:
    """Give a command an argument with the name of a topic or a group, or the option `--KIND`; either becomes `KIND`."""
    metavar = kind.upper()

    def decorate(command: F) -> F:
        @click.argument(kind, metavar=metavar, required=False)
        @name_option(kind, metavar, f"The {kind}, instead of {metavar}.", multiple=False)
        @wraps(command)
        def run(named: str | None, **others: Any) -> Any:
            given = others.pop(kind)
            if given is not None and named is not None:
                raise usage_error(f"the {kind} is given twice: {given!r} and -{kind[0]} {named!r}")
            if given is None and named is None:
                raise click.MissingParameter(param_hint=f"'{metavar}'", param_type="argument")
            return command(**{kind: named if given is None else given}, **others)

        return cast("F", run)

    return decorate


def name_option(kind: str, metavar: str, text: str, *, multiple: bool) -> Callable[[F], F]:
    """Add `-t, --topic` or `-g, --group`, which becomes `named`."""
    return click.option(f"-{kind[0]}", f"--{kind}", "named", metavar=metavar, multiple=multiple, help=text)


topics_argument = names_argument("topics", "topic", "TOPIC")
"""The argument TOPIC..., or `-t` for each topic, as in kcat."""
topic_argument = name_argument("topic")
"""The argument TOPIC, or `-t`."""
group_argument = name_argument("group")
"""The argument GROUP, or `-g`."""


def json_option(command: F) -> F:
    """Add `--json`."""
    return click.option("--json", "in_json", is_flag=True, help="Print JSON.")(command)


def json_lines_option(command: F) -> F:
    """Add `--json` for continuous output."""
    return click.option("--json", "in_json", is_flag=True, help="Print JSON lines.")(command)


def list_options(command: F) -> F:
    """Add `--long` and `--names`, which choose what a list prints; see `prints_table`."""
    long = click.option(
        "-l",
        "--long",
        is_flag=True,
        help="Print the table of a terminal, also into a pipe, and with --json its columns.",
    )
    names = click.option("-q", "--names", "names_only", is_flag=True, help="Print only names, also at a terminal.")
    return long(names(command))


def reject_both(long: bool, names_only: bool) -> None:
    """Raise a usage error if `--long` and `--names` are both given."""
    if long and names_only:
        raise usage_error("--long and --names exclude each other")


def chosen_partitions(admin: Admin, topics: Iterable[str]) -> list[TopicPartition]:
    """Return the partitions of `TOPIC` and `TOPIC:0,2`; raise an error for unknown topics and partitions."""
    from ottla.model import TopicPartition

    chosen: dict[TopicPartition, None] = {}
    for text in topics:
        topic, colon, numbers = text.partition(":")
        known = [info.partition for info in admin.describe_topics([topic])[topic].partitions]
        wanted = [number_of(each, text) for each in numbers.split(",")] if colon else known
        for number in wanted:
            if number not in known:
                raise click.ClickException(f"topic {topic!r} has no partition {number}, only 0 to {max(known)}")
            chosen[TopicPartition(topic, number)] = None
    return sorted(chosen)


def number_of(text: str, whole: str) -> int:
    """Return a partition number of the option value `whole`."""
    if not text.isdecimal():
        raise usage_error(
            f"invalid value {whole!r} for --topic: expected TOPIC, or TOPIC:0,2 for some of its partitions"
        )
    return int(text)


def pairs_of(option: str, texts: Iterable[str]) -> dict[str, str]:
    """Return `key=value` texts as a dict."""
    pairs: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise usage_error(f"invalid value {text!r} for {option}: expected KEY=VALUE")
        if key in pairs:
            raise usage_error(f"{option} {key} is given twice; give it once")
        pairs[key] = value
    return pairs


def level_of(option: str, name: str, text: str) -> int:
    """Return the number of a feature's level."""
    if not text.isdecimal():
        raise usage_error(f"{option} {name}={text}: expected a number as level, such as 1")
    return int(text)


def suppress_repeated_logs() -> None:
    """Suppress warnings that only repeat the error which ends the command; losses of data are still logged."""
    logging.getLogger("ottla").setLevel(logging.ERROR)
    logging.getLogger("ottla.client.producer.transaction_manager").setLevel(logging.CRITICAL)


def client_settings(bootstrap: str, texts: Iterable[str], **others: Any) -> Mapping[str, Any]:
    """Return the settings of a client. The user's settings override those of the command."""
    suppress_repeated_logs()
    chosen = {name.replace("_", "."): value for name, value in others.items() if value is not None}
    context = click.get_current_context()
    file, of_context = context.meta.get(FILE), context.meta.get(CONTEXT)
    kept = settings_of_file(file)
    if of_context is not None or context.get_parameter_source("bootstrap_server") is ParameterSource.COMMANDLINE:
        kept.pop("bootstrap.servers", None)
    if "default.api.timeout.ms" in chosen or "max.block.ms" in chosen:  # a command that fails fast
        is_default = of_context is None and context.get_parameter_source("bootstrap_server") is ParameterSource.DEFAULT
        chosen["bootstrap.refused.timeout.ms"] = REFUSED_BY_DEFAULT_MS if is_default else REFUSED_MS
    if of_context is not None:
        kept = {**settings_of_context(of_context, with_file=file is None), **kept}
    return {"bootstrap.servers": bootstrap, **chosen, **kept, **pairs_of("--set", texts)}


def settings_of_context(context: ClusterContext, *, with_file: bool) -> dict[str, str]:
    """Return the settings of a context except the address; its own settings override those of its file."""
    of_file = properties_of(f"context {context.name}:", context.command_config if with_file else None)
    of_file.pop("bootstrap.servers", None)
    return {**of_file, **context.settings}


def settings_of_file(place: str | None) -> dict[str, str]:
    """Return the settings of `--command-config`."""
    return properties_of("--command-config", place)


def properties_of(option: str, place: str | None) -> dict[str, str]:
    """Return the properties of an option's file. Errors do not quote lines, which may contain secrets."""
    if place is None:
        return {}
    from pathlib import Path

    try:
        return {key: value for _, key, value in read_properties(Path(place).read_text(encoding="utf-8"))}
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise usage_error(f"{option} {place}: {reason}") from None
    except ConfigError as error:
        raise usage_error(f"{option} {place}, {error}") from None


def admin_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return those settings of a client that an admin client also has: the address and the login."""
    from ottla.client.admin.config import select_admin_settings  # not loaded by commands without a client

    return select_admin_settings(settings)


def known_name(what: str, text: str, names: Sequence[str]) -> str:
    """Return the name that equals the text case-insensitively; raise a usage error if there is none."""
    for name in names:
        if name.lower() == text.lower():
            return name
    raise usage_error(unknown_among(what, text, names, ", ".join(names)))


@contextmanager
def read_as_usage() -> Iterator[None]:
    """Turn a ConfigError or NotYetError into a usage error."""
    try:
        yield
    except (ConfigError, NotYetError) as error:
        raise usage_error(str(error)) from error


def place_of(option: str, address: str) -> tuple[str, int]:
    """Return host and port of a page's address; an IPv6 address has brackets."""
    host, colon, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not is_port(port):
        raise usage_error(f"invalid value {address!r} for {option}: expected HOST:PORT, such as {PAGE_ADDRESS}")
    return host, int(port)


def convert_path(context: click.Context, parameter: click.Parameter, place: str | None) -> Path | None:
    """Return the path of an option. `click.Path(path_type=Path)` would load `pathlib` for every command."""
    from pathlib import Path

    return None if place is None else Path(place)


metadata_option = click.option(
    "--metadata",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False),
    callback=convert_path,
    help="The data directory with __cluster_metadata-0, for the topic ids, if it is another one.",
)


def usage_error(sentence: str) -> click.UsageError:
    """Return the error for an invalid command line."""
    return click.UsageError(sentence, click.get_current_context())
