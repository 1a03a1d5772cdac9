"""`ottla schemas list | show | register | check | diff | delete`."""

from __future__ import annotations

import difflib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ottla.cli.command_groups import CommandGroup
from ottla.cli.consent import confirm_at_terminal, yes_option
from ottla.cli.near_names import suggest_similar_subjects
from ottla.cli.options import json_option, usage_error
from ottla.cli.output import echo
from ottla.cli.records.registered import open_registry, registry_config_option, registry_option
from ottla.cli.tables import show as show_table

if TYPE_CHECKING:
    from ottla.schemas import RegisteredSchema, Schema

LIST = ("SUBJECT", "VERSIONS", "TYPE", "ID")
TYPES = {".avsc": "AVRO", ".proto": "PROTOBUF", ".json": "JSON"}
"""The type of a schema by the suffix of its file."""
version_option = click.option("--version", metavar="N", type=click.IntRange(1), help="The version.  [default: newest]")
type_option = click.option(
    "--type",
    "kind",
    type=click.Choice(("avro", "json", "protobuf")),
    help="The type of the schema.  [default: by the file's suffix, .avsc, .json or .proto]",
)
reference_option = click.option(
    "--reference", "references", metavar="NAME=SUBJECT:VERSION", multiple=True, help="A schema that this one uses."
)
file_argument = click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))


@click.group(cls=CommandGroup)
def schemas() -> None:
    """List, show, register, check and delete the schemas of a registry."""


@schemas.command("list")
@click.argument("prefix", default="")
@click.option("--deleted", is_flag=True, help="Also subjects that were deleted, but not for ever.")
@registry_option
@registry_config_option
@json_option
def list_schemas(prefix: str, deleted: bool, registry: str | None, registry_config: Path | None, in_json: bool) -> None:
    """List the subjects whose names begin with PREFIX, with their versions and the newest id."""
    rows: list[tuple[Any, ...]] = []
    with open_registry(registry, registry_config) as client:
        for subject in client.get_subjects(prefix or None, deleted=deleted):
            if not subject.startswith(prefix):
                continue
            versions = client.get_versions(subject, deleted=deleted)
            newest = client.get_version(subject, versions[-1], deleted=deleted)
            rows.append((subject, versions, newest.schema.schema_type, newest.schema_id))
    if not in_json:
        rows = [(subject, ", ".join(map(str, versions)), kind, number) for subject, versions, kind, number in rows]
    show_table(LIST, rows, in_json=in_json)


@schemas.command()
@click.argument("subject")
@version_option
@click.option("--id", "by_id", is_flag=True, help="SUBJECT is the id of a schema.")
@registry_option
@registry_config_option
@json_option
def show(
    subject: str, version: int | None, by_id: bool, registry: str | None, registry_config: Path | None, in_json: bool
) -> None:
    """Print a schema: a version of SUBJECT, or the schema of an id."""
    with open_registry(registry, registry_config) as client:
        if by_id:
            if not subject.isdecimal():
                raise usage_error(f"--id needs a number, and SUBJECT is {subject!r}")
            schema = client.get_schema(int(subject))
            place: dict[str, Any] = {"id": int(subject)}
        else:
            with suggest_similar_subjects(client, subject):
                found = client.get_version(subject, version or "latest")
            schema = found.schema
            place = {"subject": found.subject, "version": found.version, "id": found.schema_id, "guid": found.guid}
    if in_json:
        echo(json.dumps({**place, **schema.to_dict()}))
        return
    echo(schema.readable_text())


@schemas.command()
@click.argument("subject")
@file_argument
@type_option
@reference_option
@click.option("--normalize", is_flag=True, help="Let the registry normalise the schema.")
@registry_option
@registry_config_option
def register(
    subject: str,
    file: Path,
    kind: str | None,
    references: tuple[str, ...],
    normalize: bool,
    registry: str | None,
    registry_config: Path | None,
) -> None:
    """Register the schema in FILE under SUBJECT, such as orders-value, and print its id."""
    schema = read_schema(file, kind, references)
    with open_registry(registry, registry_config) as client:
        found = client.register_schema_full_response(subject, schema, normalize)
    echo(f"{subject}: schema {found.schema_id}")


@schemas.command()
@click.argument("subject")
@file_argument
@type_option
@reference_option
@registry_option
@registry_config_option
def check(
    subject: str,
    file: Path,
    kind: str | None,
    references: tuple[str, ...],
    registry: str | None,
    registry_config: Path | None,
) -> None:
    """Check that the schema in FILE is compatible with SUBJECT; the exit status is 1 if it is not."""
    schema = read_schema(file, kind, references)
    with open_registry(registry, registry_config) as client:
        reasons = client.explain_compatibility(subject, schema)
        level = client.get_compatibility(subject)
    if reasons:
        raise click.ClickException(f"{file} is not compatible with {subject} ({level}): {'; '.join(reasons)}")
    echo(f"{file} is compatible with {subject} ({level})")


@schemas.command()
@click.argument("subject")
@click.argument("older", type=click.IntRange(1), required=False)
@click.argument("newer", type=click.IntRange(1), required=False)
@registry_option
@registry_config_option
def diff(
    subject: str, older: int | None, newer: int | None, registry: str | None, registry_config: Path | None
) -> None:
    """Print what changed between two versions of SUBJECT, by default between the newest and the one before."""
    with open_registry(registry, registry_config) as client:
        with suggest_similar_subjects(client, subject):
            versions = client.get_versions(subject)
        if len(versions) < 2 and newer is None:
            echo(f"{subject} has only version {versions[-1]}: nothing to compare", err=True)
            return
        chosen = [older or versions[-2 if len(versions) > 1 else -1], newer or versions[-1]]
        before, after = (client.get_version(subject, version) for version in chosen)
    lines = difflib.unified_diff(
        before.schema.readable_text().splitlines(),
        after.schema.readable_text().splitlines(),
        label(before),
        label(after),
        lineterm="",
    )
    for line in lines:
        echo(line)


@schemas.command()
@click.argument("subject")
@version_option
@click.option("--permanent", is_flag=True, help="For ever: the version cannot be restored, and its id cannot be read.")
@yes_option
@registry_option
@registry_config_option
def delete(
    subject: str, version: int | None, permanent: bool, agreed: bool, registry: str | None, registry_config: Path | None
) -> None:
    """Delete SUBJECT, or one version of it. Ids can still be read, unless it is permanent."""
    what = f"version {version} of {subject}" if version is not None else f"all versions of {subject}"
    with open_registry(registry, registry_config) as client:
        confirm_at_terminal(lambda: what, f"Delete {what}{' for ever' if permanent else ''}?", agreed=agreed)
        with suggest_similar_subjects(client, subject):
            if version is not None:
                deleted = [client.delete_version(subject, version, permanent)]
            else:
                deleted = client.delete_subject(subject, permanent)
    echo(f"{subject}: deleted {', '.join(map(str, deleted))}")


def label(found: RegisteredSchema) -> str:
    """Return the name of a version for a diff."""
    return f"{found.subject} version {found.version} (id {found.schema_id})"


def read_schema(file: Path, kind: str | None, references: tuple[str, ...]) -> Schema:
    """Return the schema in a file."""
    from ottla.schemas import Schema, SchemaReference

    chosen = kind.upper() if kind is not None else TYPES.get(file.suffix)
    if chosen is None:
        raise usage_error(f"the suffix of {file} is not .avsc, .json or .proto: name the type with --type")
    used: list[SchemaReference] = []
    for text in references:
        name, _, place = text.partition("=")
        subject, _, version = place.rpartition(":")
        if not (name and subject and version.isdecimal()):
            raise usage_error(f"invalid value {text!r} for --reference: expected NAME=SUBJECT:VERSION")
        used.append(SchemaReference(name, subject, int(version)))
    try:
        return Schema(file.read_text(encoding="utf-8"), chosen, used)
    except UnicodeDecodeError:
        raise click.ClickException(f"{file} is not UTF-8 text; write the schema as text") from None
