"""`ottla cluster start | describe | log-dirs | quorum | features | elect | reassign | reassignments | add-controller | remove-controller | unregister`."""

from __future__ import annotations

import time

import click

from ottla.cli.clusters.disks import log_dirs
from ottla.cli.clusters.features import features
from ottla.cli.clusters.members import add_controller, remove_controller, unregister
from ottla.cli.clusters.moves import elect, reassign, reassignments
from ottla.cli.clusters.quorum import quorum
from ottla.cli.clusters.start import start
from ottla.cli.options import bootstrap_server, json_option, settings_option
from ottla.cli.output import echo, to_json
from ottla.cli.tables import aligned, objects
from ottla.cli.topics import admin_at
from ottla.cli.verbs import Verbs

MOST_ROWS = 20
"""How many partitions in trouble are shown without --all."""


@click.group(cls=Verbs)
def cluster() -> None:
    """Run a cluster on this machine; show who leads, who is behind and what is on the disks; move leaders and copies."""


@cluster.command()
@bootstrap_server
@click.option("--all", "everything", is_flag=True, help=f"Each partition in trouble, not the first {MOST_ROWS} alone.")
@json_option
@settings_option("client")
def describe(bootstrap_server: str, everything: bool, in_json: bool, settings: tuple[str, ...]) -> None:
    """Print the brokers with what they lead and where they are behind, the nodes that are away, the effects of one more failure, and the
    partitions that are not well.
    """
    from ottla.cli.clusters.health import describe_health, health_object
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
            "brokers": objects(BROKERS, brokers),
            "not_well": objects(PARTITIONS, ill),
            **health_object(health),
        }
        echo(to_json({**whole, **rows}, indent=2))
        return
    head = f"cluster {found.cluster_id}: {counted(len(found.nodes), 'broker')}, {counted(len(topics), 'topic')}"
    echo(f"{head}, {totals_of(partitions).sentence(nodes_away=len(health.absences))}\n\n{aligned(BROKERS, brokers)}")
    now_ms = time.time_ns() // 1_000_000
    lines = [absence_sentence(each, now_ms) for each in health.absences]
    if sentence := next_failure_sentence(health):
        lines.append(f"next failure: {sentence}")
    if lines:
        echo("\n" + "\n".join(lines))
    if ill:
        shown = ill if everything else ill[:MOST_ROWS]
        echo(f"\n{aligned(PARTITIONS, shown)}")
        if len(shown) < len(ill):
            echo(f"… and {len(ill) - len(shown)} more; --all shows them", err=True)


for command in (
    *(start, log_dirs, quorum, features, elect),
    *(reassign, reassignments, add_controller, remove_controller, unregister),
):
    cluster.add_command(command)
cluster.add_command(describe, "status")
