"""`ottla acls list | create | delete`, with the names and options of Kafka's `kafka-acls`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click

from ottla.cli.command_groups import CommandGroup
from ottla.cli.options import bootstrap_server, json_option, settings_option, usage_error
from ottla.cli.output import echo
from ottla.cli.tables import format_table, show
from ottla.cli.topics import admin_at

if TYPE_CHECKING:
    from ottla.client.admin import AclBinding

HEADINGS = ("resource", "name", "pattern", "principal", "host", "operation", "permission")
OPERATIONS = (
    "all",
    "read",
    "write",
    "create",
    "delete",
    "alter",
    "describe",
    "cluster-action",
    "describe-configs",
    "alter-configs",
    "idempotent-write",
)
Resource = tuple[str, str]


@click.group(cls=CommandGroup)
def acls() -> None:
    """List, create and delete access rules."""


def resources(command: Any) -> Any:
    """Add the options that name resources."""
    for option in (
        click.option(
            "--transactional-id", "transactional_ids", metavar="ID", multiple=True, help="A transactional id."
        ),
        click.option("--cluster", is_flag=True, help="The cluster itself."),
        click.option("-g", "--group", "groups", metavar="GROUP", multiple=True, help="A consumer group, or * for all."),
        click.option("-t", "--topic", "topics", metavar="TOPIC", multiple=True, help="A topic, or * for all."),
    ):
        command = option(command)
    return command


def rules(command: Any) -> Any:
    """Add the options of a rule."""
    for option in (
        click.option("--operation", "operations", multiple=True, type=click.Choice(OPERATIONS, case_sensitive=False)),
        click.option(
            "--deny-host", "deny_hosts", metavar="ADDRESS", multiple=True, help="Address that is denied; * is any."
        ),
        click.option(
            "--allow-host", "allow_hosts", metavar="ADDRESS", multiple=True, help="Address that is allowed; * is any."
        ),
        click.option("--deny-principal", "denied", metavar="User:NAME", multiple=True, help="User that is denied."),
        click.option("--allow-principal", "allowed", metavar="User:NAME", multiple=True, help="User that is allowed."),
        click.option(
            "--resource-pattern-type",
            "pattern",
            type=click.Choice(["literal", "prefixed"], case_sensitive=False),
            default="literal",
            show_default=True,
            help="literal: names are complete; prefixed: names are prefixes.",
        ),
    ):
        command = option(command)
    return resources(command)


@acls.command("list")
@bootstrap_server
@resources
@click.option(
    "--resource-pattern-type",
    "pattern",
    type=click.Choice(["any", "match", "literal", "prefixed"], case_sensitive=False),
    default="any",
    show_default=True,
    help="match finds every rule that applies to the name.",
)
@click.option("--principal", metavar="User:NAME", help="Only rules about this principal.")
@json_option
@settings_option("client")
def list_acls(
    bootstrap_server: str,
    topics: tuple[str, ...],
    groups: tuple[str, ...],
    cluster: bool,
    transactional_ids: tuple[str, ...],
    pattern: str,
    principal: str | None,
    in_json: bool,
    settings: tuple[str, ...],
) -> None:
    """Print all rules, or those of some resources."""
    from ottla.client.admin import AclBindingFilter

    named = list(named_resources(topics, groups, cluster, transactional_ids))
    filters = [AclBindingFilter(kind, name, principal, pattern_type=pattern) for kind, name in named] or [
        AclBindingFilter(principal=principal)
    ]
    with admin_at(bootstrap_server, settings) as admin:
        found = sorted({each for wanted in filters for each in admin.describe_acls(wanted)})
    show(HEADINGS, rows_of(found), in_json=in_json)


@acls.command()
@bootstrap_server
@rules
@click.option(
    "--producer", is_flag=True, help="All operations that a producer needs for these topics and transactional ids."
)
@click.option("--consumer", is_flag=True, help="All operations that a consumer needs for these topics and groups.")
@settings_option("client")
def create(bootstrap_server: str, producer: bool, consumer: bool, settings: tuple[str, ...], **given: Any) -> None:
    """Allow or deny operations to principals."""
    wanted = list(rules_of(given, producer=producer, consumer=consumer))
    with admin_at(bootstrap_server, settings) as admin:
        admin.create_acls(wanted)


@acls.command()
@bootstrap_server
@rules
@click.option("--force", is_flag=True, help="Do not ask for confirmation.")
@json_option
@settings_option("client")
def delete(bootstrap_server: str, force: bool, in_json: bool, settings: tuple[str, ...], **given: Any) -> None:
    """Delete rules; without principals, all rules of the resources. With --json the deleted rules are printed."""
    from ottla.client.admin import AclBindingFilter

    if given["allowed"] or given["denied"]:
        wanted = [
            AclBindingFilter(
                each.resource_type,
                each.name,
                each.principal,
                each.operation,
                each.permission,
                each.pattern_type,
                each.host,
            )
            for each in rules_of(given, producer=False, consumer=False)
        ]
    else:
        wanted = [
            AclBindingFilter(kind, name, pattern_type=given["pattern"], operation=operation)
            for kind, name in resources_of(given)
            for operation in given["operations"] or ("any",)
        ]
    with admin_at(bootstrap_server, settings) as admin:
        found = sorted({each for some in wanted for each in admin.describe_acls(some)})
        if found and not force:
            echo(format_table(HEADINGS, rows_of(found)), err=in_json)
            question = f"Delete {'this rule' if len(found) == 1 else f'these {len(found)} rules'}?"
            click.confirm(question, abort=True, err=in_json)
        deleted = admin.delete_acls(wanted)
    if in_json:
        show(HEADINGS, rows_of(sorted(deleted)), in_json=True)


def rules_of(given: dict[str, Any], *, producer: bool, consumer: bool) -> Iterator[AclBinding]:
    """Yield every rule that the options describe."""
    from ottla.client.admin import AclBinding

    if not given["allowed"] and not given["denied"]:
        raise usage_error("no principal given: expected --allow-principal User:alice, or --deny-principal")
    for name in (*given["allowed"], *given["denied"]):
        if ":" not in name:
            raise usage_error(f"invalid principal {name!r}: expected User:{name}")
    pattern = given["pattern"]
    for principals, hosts, permission in (
        (given["allowed"], given["allow_hosts"], "allow"),
        (given["denied"], given["deny_hosts"], "deny"),
    ):
        for principal in principals:
            for host in hosts or ("*",):
                for (kind, name), operation in operations_of(given, producer=producer, consumer=consumer):
                    yield AclBinding(
                        kind, name, principal, operation, permission, pattern if kind != "cluster" else "literal", host
                    )


def operations_of(given: dict[str, Any], *, producer: bool, consumer: bool) -> Iterator[tuple[Resource, str]]:
    """Yield each resource with each of its operations."""
    for resource in resources_of(given):
        kind, _ = resource
        chosen = list(given["operations"])
        if producer and kind in ("topic", "transactional-id"):
            chosen += ["write", "describe", "create"] if kind == "topic" else ["write", "describe"]
        if consumer and kind in ("topic", "group"):
            chosen += ["read", "describe"] if kind == "topic" else ["read"]
        for operation in dict.fromkeys(chosen or ["all"]):
            yield resource, operation


def resources_of(given: dict[str, Any]) -> list[Resource]:
    """Return the given resources; raise a usage error if there are none."""
    named = list(named_resources(given["topics"], given["groups"], given["cluster"], given["transactional_ids"]))
    if not named:
        raise usage_error("no resource given: expected --topic, --group, --cluster or --transactional-id")
    return named


def named_resources(
    topics: Iterable[str], groups: Iterable[str], cluster: bool, transactional_ids: Iterable[str]
) -> Iterator[Resource]:
    yield from (("topic", name) for name in topics)
    yield from (("group", name) for name in groups)
    if cluster:
        yield "cluster", "kafka-cluster"
    yield from (("transactional-id", name) for name in transactional_ids)


def rows_of(found: Iterable[AclBinding]) -> list[tuple[str, ...]]:
    return [
        (each.resource_type, each.name, each.pattern_type, each.principal, each.host, each.operation, each.permission)
        for each in found
    ]
