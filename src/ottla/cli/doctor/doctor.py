"""`ottla doctor`: check for common problems."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from ottla.cli.doctor.cluster import (
    group_findings,
    node_findings,
    partition_finding,
    topic_findings,
    transaction_findings,
)
from ottla.cli.doctor.data import data_findings
from ottla.cli.doctor.findings import COLUMNS, OK, PROBLEM, WARNING, Finding, summary, warning
from ottla.cli.doctor.machine import disk_finding, machine_findings
from ottla.cli.doctor.network import (
    advertised_findings,
    bootstrap_finding,
    clock_finding,
    kind_finding,
    protocol_finding,
)
from ottla.cli.options import (
    CONTEXT,
    FILE,
    bootstrap_server,
    json_option,
    metadata_option,
    read_as_usage,
    settings_of_file,
    settings_option,
    usage_error,
)
from ottla.cli.tables import show
from ottla.cli.topics import admin_at
from ottla.errors import ConfigError, OttlaError
from ottla.escaping import escape_controls

if TYPE_CHECKING:
    from ottla.cli.doctor.network import AddressFacts
    from ottla.client.admin import Admin
    from ottla.client.admin.health import ClusterHealth

COLOURS = {OK: "green", WARNING: "yellow", PROBLEM: "red"}
ILL = 1


@click.command()
@bootstrap_server
@click.option(
    "--data-dir",
    "data_dirs",
    metavar="DIR",
    multiple=True,
    type=click.Path(path_type=Path),
    help="A broker's data directory to check; may be repeated.",
)
@metadata_option
@click.option("--verify", "thorough", is_flag=True, help="Read every byte of --data-dir, not only headers.")
@json_option
@settings_option("client")
def doctor(
    bootstrap_server: str,
    data_dirs: tuple[Path, ...],
    metadata: Path | None,
    thorough: bool,
    in_json: bool,
    settings: tuple[str, ...],
) -> None:
    """Check this machine, the connection to a cluster, the cluster and data directories; print problems and remedies.

    Nothing is changed. The exit status is 1 if there is a problem; warnings leave it at 0.
    """
    if metadata is not None and not data_dirs:
        raise usage_error("--metadata needs the data directory that it describes: add --data-dir")
    findings: list[Finding] = []
    for each in all_findings(bootstrap_server, data_dirs, metadata, settings, thorough=thorough):
        findings.append(each)
        if not in_json:
            click.echo(line_of(each))
    if in_json:
        show(COLUMNS, findings, in_json=True)
    else:
        click.echo(f"\n{summary(findings)}")
    if any(each.level == PROBLEM for each in findings):
        raise click.exceptions.Exit(ILL)


def line_of(finding: Finding) -> str:
    """Return a finding as one line."""
    level = click.style(f"{finding.level:<7}", fg=COLOURS[finding.level])
    said = f"{finding.check:<12}  {finding.seen}" + (f"; {finding.remedy}" if finding.remedy else "")
    return f"{level}  {escape_controls(said)}"


def all_findings(
    bootstrap: str, data_dirs: Sequence[Path], metadata: Path | None, settings: tuple[str, ...], *, thorough: bool
) -> Iterator[Finding]:
    """Yield the findings, nearest checks first; checks that depend on a failed one are skipped."""
    from ottla.cli.doctor.local import collect_data_facts, collect_machine_facts

    yield from machine_findings(collect_machine_facts())
    for each in collect_data_facts(data_dirs, metadata, thorough=thorough):
        yield from data_findings(each)
    with admin_at(bootstrap, settings) as admin:
        yield from connection_findings(admin, is_default=is_default_address())


def is_default_address() -> bool:
    """Return true if the address is the default because neither an option, a file nor a context gives one."""
    context = click.get_current_context()
    said = context.get_parameter_source("bootstrap_server") is not ParameterSource.DEFAULT
    of_file = "bootstrap.servers" in settings_of_file(context.meta.get(FILE))
    return not (said or of_file or context.meta.get(CONTEXT))


def connection_findings(admin: Admin, *, is_default: bool) -> Iterator[Finding]:
    """Yield the findings about the connection, and about the cluster if it can be reached."""
    from ottla.cli.doctor.remote import check_addresses
    from ottla.client.network.bootstrap import parse_address

    protocol = admin.config.security_protocol
    with read_as_usage():
        asked = check_addresses(parse_address(each, protocol) for each in admin.config.bootstrap_servers)
    yield from (bootstrap_finding(each, is_default=is_default) for each in asked)
    if all(each.trouble for each in asked):
        return
    error = None
    try:
        admin.describe_cluster()
    except ConfigError:
        raise
    except OttlaError as refusal:
        error = str(refusal)
    yield protocol_finding(error, protocol, is_default=is_default)
    if error is None:
        yield from cluster_findings(admin, asked)


def cluster_findings(admin: Admin, asked: list[AddressFacts]) -> Iterator[Finding]:
    """Yield the findings about the cluster, one check after the other."""
    from ottla.cli.doctor import remote as remote

    now_ms = time.time_ns() // 1_000_000
    nodes = admin.describe_cluster().nodes
    found = remote.check_addresses((node.host, node.port) for node in nodes)
    brokers = dict(zip((node.node_id for node in nodes), found, strict=True))
    is_ottla = None
    try:
        is_ottla, runs = remote.query_kind(admin)
        yield kind_finding(is_ottla=is_ottla, metadata_version=runs)
    except OttlaError as error:
        yield unknown_finding("broker", error)
    yield from advertised_findings(brokers, asked)
    yield from findings_or_warning(
        "clock", lambda: [clock_finding(*measured)] if (measured := remote.measure_clock_offset(admin)) else []
    )
    yield from findings_or_warning("nodes", lambda: node_findings(health_at(admin), now_ms))
    if any(each.trouble for each in brokers.values()):
        yield warning(
            "cluster", "not all brokers can be reached, so other findings may be missing or late", "solve this first"
        )
    topics = None
    try:
        topics = remote.query_topics(admin)
    except OttlaError as error:
        yield unknown_finding("topics", error)
    partitions = [each for topic in topics or () for each in topic.partitions]
    if topics is not None:
        yield from partition_finding(partitions)
        yield from topic_findings(topics, len(nodes), refuses=is_ottla is True and len(nodes) == 1)
    yield from findings_or_warning("groups", lambda: group_findings(*remote.query_groups(admin, partitions)))
    yield from findings_or_warning(
        "transactions",
        lambda: transaction_findings(
            list(remote.query_transactions(admin, now_ms)), remote.find_hanging_partitions(admin, partitions, now_ms)
        ),
    )
    yield from findings_or_warning("disk", lambda: disk_findings(admin))


def health_at(admin: Admin) -> ClusterHealth:
    from ottla.cli.clusters.health import describe_health

    return describe_health(admin, admin.describe_topics().values())[1]


def disk_findings(admin: Admin) -> list[Finding]:
    """Report the disks of brokers that report their sizes."""
    return [
        disk_finding("disk", f"{path} of broker {broker}", directory.usable_bytes, directory.total_bytes)
        for broker, directories in sorted(admin.describe_log_dirs().items())
        for path, directory in sorted(directories.items())
        if directory.usable_bytes is not None and directory.total_bytes is not None
    ]


def findings_or_warning(check: str, collect: Callable[[], list[Finding]]) -> list[Finding]:
    """Return the findings of a check. A check that fails, for example without permission, becomes a warning."""
    try:
        return collect()
    except OttlaError as error:
        return [unknown_finding(check, error)]


def unknown_finding(check: str, error: OttlaError) -> Finding:
    denied = "AUTHORIZATION" in str(error)
    remedy = "allow this user to describe it: ottla acls create" if denied else "try again, and see the broker's log"
    return warning(check, f"could not be checked: {error}", remedy)
