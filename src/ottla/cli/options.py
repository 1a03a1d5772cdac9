"""Options that several verbs share, and how their text is read.

What a setting is called, and whether a value fits, is the business of the settings' own tables.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from ottla.cli.contexts.choice import CONTEXT_VARIABLE, chosen_context, completed
from ottla.config import unknown_among
from ottla.errors import ConfigError, NotYetError
from ottla.ports import is_port
from ottla.properties import read_properties

if TYPE_CHECKING:
    from ottla.cli.contexts.contexts import ClusterContext
    from ottla.client.admin import Admin
    from ottla.model import TopicPartition

F = TypeVar("F", bound=Callable[..., Any])

FILE = "ottla.command-config"
"""Where in click's context the name of the file is kept."""
CONTEXT, CONTEXT_NAME = "ottla.context", "ottla.context-name"
"""Where the context that counts is kept, and the name that was given."""
DEFAULT_ADDRESS = "127.0.0.1:9092"
ADDRESS_VARIABLE = "OTTLA_BOOTSTRAP_SERVERS"
"""Where the address comes from when neither the command nor its `--command-config` says it."""
PAGE_ADDRESS = "127.0.0.1:8080"
PATIENCE_SECONDS = 5.0
"""How long a command tries to reach a broker."""
REFUSED_MS = 1_000
"""How long a command tries an address that was given to it while connections are refused there."""
REFUSED_BY_DEFAULT_MS = 3_000
"""The same at the default address: `ottla broker &` may be about to start."""


def bootstrap_server(command: F) -> F:
    """`--bootstrap-server` and `--context`: where the cluster is."""
    address = click.option(
        "--bootstrap-server",
        metavar="HOST:PORT",
        envvar=ADDRESS_VARIABLE,
        default=DEFAULT_ADDRESS,
        show_default=f"that of the context, or {DEFAULT_ADDRESS}",
        show_envvar=True,
        callback=address_of,
        help="A broker to start from; several with commas between.",
    )
    context = click.option(
        "--context",
        metavar="NAME",
        envvar=CONTEXT_VARIABLE,
        show_envvar=True,
        is_eager=True,
        expose_value=False,
        callback=lambda context, _, name: context.meta.update({CONTEXT_NAME: name}),
        shell_complete=completed,
        help="The cluster of this name, as ottla context keeps it.",
    )
    return address(context(command))


def address_of(context: click.Context, _: click.Parameter, given: str) -> str:
    """Where the cluster is; what else the context has is kept for `client_settings`."""
    chosen = chosen_context(
        context.meta.get(CONTEXT_NAME),
        context.get_parameter_source("context"),
        context.get_parameter_source("bootstrap_server"),
        file_says="bootstrap.servers" in settings_of_file(context.meta.get(FILE)),
    )
    context.meta[CONTEXT] = chosen
    return given if chosen is None else chosen.bootstrap_servers


def settings_option(whose: str) -> Callable[[F], F]:
    """`--set key=value`, any number of times, and for a client `--command-config FILE`."""
    given = set_option(whose)
    if whose == "broker":
        return given
    file = click.option(
        "--command-config",
        metavar="FILE",
        type=click.Path(),
        is_eager=True,
        expose_value=False,
        callback=lambda context, _, place: context.meta.update({FILE: place}),
        help=f"A properties file with settings of the {whose}, such as how to log in; --set wins over it.",
    )
    return lambda command: file(given(command))


def set_option(whose: str) -> Callable[[F], F]:
    """`--set` alone."""
    return click.option(
        "--set",
        "settings",
        metavar="KEY=VALUE",
        multiple=True,
        help=f"A setting of the {whose} by Kafka's name; may be given several times.",
    )


def json_option(command: F) -> F:
    """`--json`: for programs."""
    return click.option("--json", "in_json", is_flag=True, help="As JSON.")(command)


def json_lines_option(command: F) -> F:
    """`--json` of what goes on and on."""
    return click.option("--json", "in_json", is_flag=True, help="A line of JSON for each.")(command)


def chosen_partitions(admin: Admin, topics: Iterable[str]) -> list[TopicPartition]:
    """What `TOPIC` and `TOPIC:0,2` mean; a topic or partition that is not there is an error."""
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
    """The number of a partition in what was given as a whole."""
    if not text.isdecimal():
        raise senseless(f"--topic {whole!r} must be TOPIC, or TOPIC:0,2 for some of its partitions")
    return int(text)


def pairs_of(option: str, texts: Iterable[str]) -> dict[str, str]:
    """`key=value` texts as a dict."""
    pairs: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise senseless(f"{option} {text!r} must be KEY=VALUE")
        if key in pairs:
            raise senseless(f"{option} {key} is given twice; give it once")
        pairs[key] = value
    return pairs


def level_of(option: str, name: str, text: str) -> int:
    """The number of a feature's level."""
    if not text.isdecimal():
        raise senseless(f"{option} {name}={text}: a level is a number, such as 1")
    return int(text)


def hush_log() -> None:
    """Let the error that ends a command tell what the log would tell before it; what is lost the log still tells."""
    logging.getLogger("ottla").setLevel(logging.ERROR)
    logging.getLogger("ottla.client.producer.transaction_manager").setLevel(logging.CRITICAL)


def client_settings(bootstrap: str, texts: Iterable[str], **others: Any) -> Mapping[str, Any]:
    """The settings of a client: what the user sets wins over what the verb would choose."""
    hush_log()
    chosen = {name.replace("_", "."): value for name, value in others.items() if value is not None}
    context = click.get_current_context()
    file, of_context = context.meta.get(FILE), context.meta.get(CONTEXT)
    kept = settings_of_file(file)
    if of_context is not None or context.get_parameter_source("bootstrap_server") is ParameterSource.COMMANDLINE:
        kept.pop("bootstrap.servers", None)
    if "default.api.timeout.ms" in chosen or "max.block.ms" in chosen:  # a command that does not wait for a broker
        is_default = of_context is None and context.get_parameter_source("bootstrap_server") is ParameterSource.DEFAULT
        chosen["bootstrap.refused.timeout.ms"] = REFUSED_BY_DEFAULT_MS if is_default else REFUSED_MS
    if of_context is not None:
        kept = {**settings_of_context(of_context, with_file=file is None), **kept}
    return {"bootstrap.servers": bootstrap, **chosen, **kept, **pairs_of("--set", texts)}


def settings_of_context(context: ClusterContext, *, with_file: bool) -> dict[str, str]:
    """All that a context has for clients but the address; what it says itself wins over its file."""
    of_file = properties_of(f"context {context.name}:", context.command_config if with_file else None)
    of_file.pop("bootstrap.servers", None)
    return {**of_file, **context.settings}


def settings_of_file(place: str | None) -> dict[str, str]:
    """What `--command-config` names."""
    return properties_of("--command-config", place)


def properties_of(option: str, place: str | None) -> dict[str, str]:
    """The properties in the file that an option names; nothing of a line is repeated, there may be secrets in it."""
    if place is None:
        return {}
    try:
        return {key: value for _, key, value in read_properties(Path(place).read_text(encoding="utf-8"))}
    except (OSError, UnicodeDecodeError) as error:
        told = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
        raise senseless(f"{option} {place}: {told}") from None
    except ConfigError as error:
        raise senseless(f"{option} {place}, {error}") from None


def of_an_admin(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Those of a client's settings that an admin client has too: where the cluster is, and how to get in."""
    from ottla.client.admin.config import AdminConfig
    from ottla.client.config.synonyms import understood
    from ottla.config import options_of

    known = {option.name for option in options_of(AdminConfig)}
    return {name: value for name, value in understood(settings).items() if name.replace("_", ".") in known}


def known_name(what: str, text: str, names: Sequence[str]) -> str:
    """The one of the names that a text is but for small and large letters."""
    for name in names:
        if name.lower() == text.lower():
            return name
    raise senseless(unknown_among(what, text, names, ", ".join(names)))


@contextmanager
def read_as_usage() -> Iterator[None]:
    """A setting that does not fit is a mistake in the command."""
    try:
        yield
    except (ConfigError, NotYetError) as error:
        raise senseless(str(error)) from error


def place_of(option: str, address: str) -> tuple[str, int]:
    """Host and port of a page; an address of IPv6 stands in brackets."""
    host, colon, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not is_port(port):
        raise senseless(f"{option} {address!r} must be HOST:PORT, such as {PAGE_ADDRESS}")
    return host, int(port)


metadata_option = click.option(
    "--metadata",
    metavar="DIR",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="The data directory with __cluster_metadata-0, which tells the ids of topics, where it is another one.",
)


def senseless(sentence: str) -> click.UsageError:
    """The error of a command that makes no sense."""
    return click.UsageError(sentence, click.get_current_context())
