"""`/connector-plugins`: the available sources, sinks, transforms and predicates, and validation of their settings."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import BaseModel, ValidationError

from ottla._version import __version__
from ottla.config import unknown
from ottla.pipelines.file.document import Document
from ottla.pipelines.file.reading import paths
from ottla.pipelines.file.sentences import path_of, sentence
from ottla.pipelines.manager.rest.answers import RestError, RestResponse, json_response, not_found_error
from ottla.pipelines.model import WithTexts
from ottla.pipelines.place import Place
from ottla.pipelines.sinks import SINKS
from ottla.pipelines.sources import SOURCES
from ottla.pipelines.transforms import CONNECT, PREDICATES
from ottla.pipelines.transforms.connect.connect_transform import PACKAGE
from ottla.pipelines.transforms.predicates import PACKAGE as PREDICATES_PACKAGE

if TYPE_CHECKING:
    from ottla.pipelines.manager.rest.api import RestRequest

CONNECTS_OWN = {"name", "connector.class", "tasks.max", "key.converter", "value.converter", "header.converter"}
"""Settings that tools of Connect add, and that have no meaning here."""
KINDS = {"string": "STRING", "integer": "LONG", "number": "DOUBLE", "boolean": "BOOLEAN", "array": "LIST"}
"""Types of JSON Schema and Connect's names for them."""


class Plugin(NamedTuple):
    """A source, sink, transform or predicate."""

    name: str
    """The value of `type`."""
    kind: str
    """Connect's name for the kind."""
    model: type[BaseModel]

    @property
    def of_class(self) -> str:
        """Return the class name for tools of Connect."""
        if self.kind == "transformation":
            return f"{PACKAGE}{self.name}"
        return f"{PREDICATES_PACKAGE}{self.name}" if self.kind == "predicate" else f"ottla.{self.kind}.{self.name}"


PLUGINS = [
    *(Plugin(name, "source", model) for name, model in SOURCES.items()),
    *(Plugin(name, "sink", model) for name, model in SINKS.items()),
    *(Plugin(name, "transformation", model) for name, model in CONNECT.items()),
    *(Plugin(name, "predicate", model) for name, model in PREDICATES.items()),
]


def plugins(request: RestRequest) -> RestResponse:
    """Return sources and sinks; with `connectorsOnly=false` the others too."""
    only = request.query.get("connectorsOnly", ["true"])[-1].lower() != "false"
    shown = [one for one in PLUGINS if not only or one.kind in ("source", "sink")]
    return json_response([{"class": one.of_class, "type": one.kind, "version": __version__} for one in shown])


def plugin_of(request: RestRequest) -> Plugin:
    """Return the plugin of a class, or of an unambiguous end of it: `ottla.sink.delta`, `sink.delta`, `delta`."""
    name = request.names["plugin"].removesuffix("$Value").removesuffix("$Key")
    fitting = [one for one in PLUGINS if one.of_class == name or one.of_class.endswith(f".{name}")]
    if len(fitting) != 1:
        text = unknown("plugin", name, [one.of_class for one in PLUGINS])
        raise not_found_error(
            text if not fitting else f"{name!r} may be {' or '.join(one.of_class for one in fitting)}"
        )
    return fitting[0]


def config(request: RestRequest) -> RestResponse:
    return json_response(definitions(plugin_of(request).model))


def validate(request: RestRequest) -> RestResponse:
    """Return each setting with its errors, including unknown settings."""
    plugin = plugin_of(request)
    try:
        given = {str(name): value for name, value in dict(json.loads(request.body)).items()}
    except (ValueError, TypeError):
        raise RestError(400, "the body must be an object of JSON, with settings and their values") from None
    errors = errors_of(plugin, {name: value for name, value in given.items() if name not in CONNECTS_OWN})
    known = {one["name"]: one for one in definitions(plugin.model)}
    shown = [*known, *(name for name in errors if name not in known)]
    configs = [
        {
            "definition": known.get(name, definition(name, {}, False)),
            "value": {
                "name": name,
                "value": given.get(name),
                "recommended_values": [],
                "errors": errors.get(name, []),
                "visible": True,
            },
        }
        for name in shown
    ]
    return json_response(
        {"name": plugin.of_class, "error_count": sum(map(len, errors.values())), "groups": [], "configs": configs}
    )


def errors_of(plugin: Plugin, given: dict[str, Any]) -> dict[str, list[str]]:
    """Return the errors by setting."""
    schema = plugin.model.model_json_schema(by_alias=True).get("properties", {})
    value = {name: convert_setting(text, schema.get(name, {})) for name, text in given.items()}
    if "type" in schema:
        value["type"] = plugin.name
    document = Document("", value, {path: Place("", 0, 0) for path in paths(value, ())})
    try:
        plugin.model.model_validate(value)
    except ValidationError as error:
        found: dict[str, list[str]] = {}
        for one in error.errors(include_url=False):
            path = path_of(document, one["loc"])
            setting = str(one["loc"][0]) if one["loc"] else next(iter(schema), "type")
            text = sentence(document, plugin.model, dict(one), path)
            if text not in found.setdefault(setting, []):
                found[setting].append(text)
        return found
    return {}


def convert_setting(text: Any, schema: dict[str, Any]) -> Any:
    """Return a setting in the type of its model; tools of Connect send text only."""
    kinds = {schema.get("type"), *(one.get("type") for one in schema.get("anyOf", ()))}
    if not isinstance(text, str) or "string" in kinds or "enum" in schema or not kinds - {None}:
        return text
    try:
        return json.loads(text)
    except ValueError:
        return [one.strip() for one in text.split(",")] if "array" in kinds else text


def definitions(model: type[BaseModel]) -> list[dict[str, Any]]:
    """Return the settings of a model in Connect's format."""
    schema = model.model_json_schema(by_alias=True, schema_generator=WithTexts)
    required = schema.get("required", [])
    shown = [(name, one) for name, one in schema.get("properties", {}).items() if name != "type"]
    return [definition(name, one, name in required, order) for order, (name, one) in enumerate(shown, 1)]


def definition(name: str, schema: dict[str, Any], required: bool, order: int = 0) -> dict[str, Any]:
    """Return one setting in Connect's format."""
    kinds = [schema.get("type"), *(one.get("type") for one in schema.get("anyOf", ()))]
    default = schema.get("default")
    return {
        "name": name,
        "type": next((KINDS[kind] for kind in kinds if kind in KINDS), "STRING"),
        "required": required,
        "default_value": None if default is None else default if isinstance(default, str) else json.dumps(default),
        "importance": "HIGH" if required else "MEDIUM",
        "documentation": schema.get("description", ""),
        "group": None,
        "width": "NONE",
        "display_name": name,
        "dependents": [],
        "order": order,
    }


ROUTES: list[tuple[str, str, Callable[[Any], RestResponse]]] = [
    ("GET", "/connector-plugins", plugins),
    ("GET", "/connector-plugins/{plugin}/config", config),
    ("PUT", "/connector-plugins/{plugin}/config/validate", validate),
]
