"""`--value-format`, `--key-format` and `--registry`: keys and values with a schema id are shown and written as JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ottla.cli.options import properties_of, usage_error

if TYPE_CHECKING:
    from ottla.schemas import SchemaRegistryClient

F = TypeVar("F", bound=Callable[..., Any])
REGISTRY_VARIABLE = "OTTLA_REGISTRY"
FORMATS = ("avro", "json", "protobuf")

registry_option = click.option(
    "--registry",
    metavar="URL",
    envvar=REGISTRY_VARIABLE,
    show_envvar=True,
    help="The schema registry, such as http://localhost:8081; http://NAME:PASSWORD@… logs in.",
)
registry_config_option = click.option(
    "--registry-config",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Settings of the registry client, such as ssl.ca.location=…, one a line.",
)


def format_options(command: F) -> F:
    """Add the options for registered keys and values."""
    value = click.option(
        "--value-format", type=click.Choice(FORMATS), help="The values have a schema id: they are JSON here."
    )
    key = click.option("--key-format", type=click.Choice(FORMATS), help="The same for keys.")
    return value(key(registry_option(registry_config_option(command))))


def open_registry(
    url: str | None, config: Path | None, defaults: Mapping[str, Any] = MappingProxyType({})
) -> SchemaRegistryClient:
    """Return a client for the options of a command; the file replaces the settings of `defaults`."""
    from ottla.errors import ConfigError
    from ottla.schemas import SchemaRegistryClient

    settings = dict(defaults)
    if config is not None:
        settings |= properties_of("--registry-config", str(config))
    if url is not None:
        settings["url"] = url
    if "url" not in settings:
        raise usage_error(f"name the schema registry with --registry URL, or with {REGISTRY_VARIABLE}")
    try:
        return SchemaRegistryClient(settings)
    except ConfigError as error:
        raise usage_error(str(error)) from None


def readers(key_format: str | None, value_format: str | None, client: SchemaRegistryClient) -> dict[str, Any]:
    """Return the settings with which a consumer shows registered keys and values as JSON."""
    from ottla.schemas.json_values import JsonReader

    formats = {"key_deserializer": key_format, "value_deserializer": value_format}
    return {name: JsonReader(form, client) for name, form in formats.items() if form is not None}


def writers(key_format: str | None, value_format: str | None, client: SchemaRegistryClient) -> dict[str, Any]:
    """Return the settings with which a producer reads JSON and writes registered keys and values."""
    from ottla.schemas.json_values import JsonWriter

    formats = {"key_serializer": key_format, "value_serializer": value_format}
    return {name: JsonWriter(form, client) for name, form in formats.items() if form is not None}
