"""`ottla cluster start | describe | log-dirs | quorum | features | elect | reassign | reassignments | add-controller | remove-controller | unregister | unregister-controller`."""

from __future__ import annotations

import time

import click

from ottla.cli.clusters.disks import log_dirs
from ottla.cli.clusters.features import features
from ottla.cli.clusters.members import add_controller, remove_controller, unregister, unregister_controller
from ottla.cli.clusters.moves import elect, reassign, reassignments
from ottla.cli.clusters.quorum import quorum
from ottla.cli.clusters.start import start
from ottla.cli.command_groups import CommandGroup
from ottla.cli.options import bootstrap_server, json_option, settings_option
from ottla.cli.output import echo, to_json
from ottla.cli.tables import format_table, to_objects
from ottla.cli.topics import admin_at

MOST_ROWS = 20
"""The maximum number of unhealthy partitions shown without --all."""


@click.group(cls=CommandGroup)
def cluster() -> None:
    """Run a cluster on this machine; show leaders, lagging replicas and disk usage; move leaders and replicas."""


@cluster.command()
@bootstrap_server
@click.option(
    "--all", "everything", is_flag=True, help=f"Show all unhealthy partitions, not only the first {MOST_ROWS}."
)
@json_option
@settings_option("client")
def describe(bootstrap_server: str, everything: bool, in_json: bool, settings: tuple[str, ...]) -> None:
    """Show brokers, offline nodes, unhealthy partitions and the effects of one more failure."""
    from ottla.cli.clusters.health import describe_health, describe_silence, health_object
    from ottla.cli.clusters.rows import BROKERS, PARTITIONS, broker_rows, counted, partition_rows, totals_of
    from ottla.client.admin.health import absence_sentence, next_failure_sentence

    with admin_at(bootstrap_server, settings) as admin:
        topics = admin.describe_topics()
        found, health = describe_health(admin, topics.values())
    partitions = [p for topic in topics.values() for p in topic.partitions]
    brokers, ill = broker_rows(found.nodes, partitions, found.fenced_nodes), partition_rows(partitions)
    if in_json:
        controller = found.controller.node_id if found.controller else None
        whole = {"cluster_id": found.cluster_id, "controller": controller, **totals_of(partitions)._asdict()}
        rows = {
            "brokers": to_objects(BROKERS, brokers),
            "not_well": to_objects(PARTITIONS, ill),
            **health_object(health),
        }
        echo(to_json({**whole, **rows}, indent=2))
        return
    head = f"cluster {found.cluster_id}: {counted(len(found.nodes), 'broker')}, {counted(len(topics), 'topic')}"
    echo(
        f"{head}, {totals_of(partitions).sentence(nodes_away=len(health.absences) + health.is_quorum_silent)}\n\n{format_table(BROKERS, brokers)}"
    )
    now_ms = time.time_ns() // 1_000_000
    lines = describe_silence(found.nodes) if health.is_quorum_silent else []
    lines += [absence_sentence(each, now_ms) for each in health.absences]
    if sentence := next_failure_sentence(health):
        lines.append(f"next failure: {sentence}")
    if lines:
        echo("\n" + "\n".join(lines))
    if ill:
        shown = ill if everything else ill[:MOST_ROWS]
        echo(f"\n{format_table(PARTITIONS, shown)}")
        if len(shown) < len(ill):
            echo(f"… and {len(ill) - len(shown)} more; --all shows them", err=True)


for command in (
    *(start, log_dirs, quorum, features, elect),
    *(reassign, reassignments, add_controller, remove_controller, unregister, unregister_controller),
):
    cluster.add_command(command)
cluster.add_command(describe, "status")
