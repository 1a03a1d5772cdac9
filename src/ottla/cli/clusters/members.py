"""`ottla cluster add-controller | remove-controller | unregister`: who belongs to a cluster, changed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from ottla.cli.consent import ask, yes_option
from ottla.cli.options import bootstrap_server, settings_option
from ottla.cli.output import echo
from ottla.cli.topics import admin_at

if TYPE_CHECKING:
    from ottla.client.admin import Admin, QuorumInfo, QuorumReplicaState

directory_option = click.option(
    "--directory-id", metavar="ID", help="As in its meta.properties; told by the quorum if it is left out."
)


@click.command("add-controller")
@click.argument("controller", type=click.IntRange(min=0), metavar="ID")
@click.option("--address", required=True, metavar="HOST:PORT", help="Where the others reach it.")
@click.option("--listener", default="CONTROLLER", show_default=True, help="The name of that listener in its settings.")
@directory_option
@bootstrap_server
@settings_option("client")
def add_controller(
    controller: int,
    address: str,
    listener: str,
    directory_id: str | None,
    bootstrap_server: str,
    settings: tuple[str, ...],
) -> None:
    """Make a running controller that copies the metadata a voter (KIP-853), and print the voters."""
    from ottla.client.admin import RaftVoterEndpoint

    host, port = place_of(address)
    with admin_at(bootstrap_server, settings) as admin:
        chosen = directory_id or directory_of(controller, admin.describe_metadata_quorum().observers, COPIES_NOT)
        admin.add_raft_voter(controller, chosen, [RaftVoterEndpoint(listener, host, port)])
        click.echo(f"controller {controller} votes now; {voters_of(admin.describe_metadata_quorum())}")


@click.command("remove-controller")
@click.argument("controller", type=click.IntRange(min=0), metavar="ID")
@directory_option
@yes_option
@bootstrap_server
@settings_option("client")
def remove_controller(
    controller: int, directory_id: str | None, agreed: bool, bootstrap_server: str, settings: tuple[str, ...]
) -> None:
    """Remove a voter, running or not, and print the voters. The effect is shown before, and a confirmation asked for."""
    with admin_at(bootstrap_server, settings) as admin:
        found = admin.describe_metadata_quorum()
        chosen = directory_id or directory_of(controller, found.voters, VOTES_NOT)
        echo(left_by(controller, found), err=True)
        ask(f"Shall controller {controller} vote no longer?", agreed=agreed)
        admin.remove_raft_voter(controller, chosen)
        click.echo(f"controller {controller} votes no longer; {voters_of(admin.describe_metadata_quorum())}")


@click.command()
@click.argument("broker", type=click.IntRange(min=0), metavar="ID")
@yes_option
@bootstrap_server
@settings_option("client")
def unregister(broker: int, agreed: bool, bootstrap_server: str, settings: tuple[str, ...]) -> None:
    """Unregister a broker that is gone for good, and print those that run. The copies that it had are gone with it."""
    with admin_at(bootstrap_server, settings) as admin:
        if any(node.node_id == broker for node in admin.describe_cluster().nodes):
            raise click.ClickException(RUNS.format(broker))
        ask(f"Shall broker {broker} be struck off? What has its only copy there is lost.", agreed=agreed)
        admin.unregister_broker(broker)
        click.echo(f"broker {broker} is unregistered; {brokers_left(admin)}")


RUNS = "broker {} is running, and would end: have others copy what only it has (cluster reassign), stop it, then strike it off"
COPIES_NOT = (
    "no controller {} copies the metadata here; start it with controller.quorum.bootstrap.servers at this cluster first"
)
VOTES_NOT = "no controller {} votes here"


def directory_of(controller: int, replicas: Iterable[QuorumReplicaState], otherwise: str) -> str:
    """Its directory, where there is one of that number and one only."""
    known = {each.replica_id: each.replica_directory_id for each in replicas}
    if controller not in known:
        others = ", ".join(map(str, sorted(known))) or "none"
        raise click.ClickException(f"{otherwise.format(controller)} (there: {others})")
    return known[controller]


def left_by(controller: int, found: QuorumInfo) -> str:
    """What a quorum without one of its voters can bear, in a sentence."""
    left = sorted(each.replica_id for each in found.voters if each.replica_id != controller)
    bears = (len(left) - 1) // 2
    if not left:
        return f"controller {controller} votes alone: there is no other that could decide"
    voters = f"controller{'s' if len(left) > 1 else ''} {', '.join(map(str, left))} will vote"
    return f"{voters}, and {f'{bears} of them may be lost' if bears else 'none of them may be lost'}"


def voters_of(found: QuorumInfo) -> str:
    """Return the voters, the leader among them, and how many may fail."""
    ids = sorted(each.replica_id for each in found.voters)
    named = ", ".join(f"{id_} (leader)" if id_ == found.leader_id else str(id_) for id_ in ids)
    bears = (len(ids) - 1) // 2
    return f"voters: {named}; {f'{bears} of them may fail' if bears else 'none of them may fail'}"


def brokers_left(admin: Admin) -> str:
    """Return the brokers that run."""
    ids = sorted(node.node_id for node in admin.describe_cluster().nodes)
    return f"brokers that run: {', '.join(map(str, ids))}"


def place_of(address: str) -> tuple[str, int]:
    """Host and port; the brackets of an IPv6 address are no part of it."""
    host, _, port = address.rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65_536:
        raise click.BadParameter(f"{address!r}: must be HOST:PORT", param_hint="--address")
    return host.removeprefix("[").removesuffix("]"), int(port)
