"""`ottla cluster add-controller | remove-controller | unregister | unregister-controller`: change the membership of a cluster."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from ottla.cli.consent import confirm, yes_option
from ottla.cli.options import bootstrap_server, settings_option
from ottla.cli.output import echo
from ottla.cli.topics import admin_at

if TYPE_CHECKING:
    from ottla.client.admin import Admin, QuorumInfo, QuorumReplicaState

directory_option = click.option(
    "--directory-id", metavar="ID", help="The directory.id of its meta.properties. Default: as the quorum reports it."
)


@click.command("add-controller")
@click.argument("controller", type=click.IntRange(min=0), metavar="ID")
@click.option("--address", required=True, metavar="HOST:PORT", help="Address of its controller listener.")
@click.option("--listener", default="CONTROLLER", show_default=True, help="The name of that listener.")
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
    """Make a running controller a voter (KIP-853). It must follow the metadata log as an observer. Print the voters."""
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
    """Remove a voter, running or not, and print the voters. Show the effect and ask for confirmation first."""
    with admin_at(bootstrap_server, settings) as admin:
        found = admin.describe_metadata_quorum()
        chosen = directory_id or directory_of(controller, found.voters, VOTES_NOT)
        echo(remaining_quorum_sentence(controller, found), err=True)
        confirm(f"Remove controller {controller} from the voters?", agreed=agreed)
        admin.remove_raft_voter(controller, chosen)
        click.echo(f"controller {controller} votes no longer; {voters_of(admin.describe_metadata_quorum())}")


@click.command()
@click.argument("broker", type=click.IntRange(min=0), metavar="ID")
@yes_option
@bootstrap_server
@settings_option("client")
def unregister(broker: int, agreed: bool, bootstrap_server: str, settings: tuple[str, ...]) -> None:
    """Unregister a broker that will not return, and print the running ones. Replicas on its disks are lost."""
    with admin_at(bootstrap_server, settings) as admin:
        if any(node.node_id == broker for node in admin.describe_cluster().nodes):
            raise click.ClickException(RUNS.format(broker))
        confirm(f"Unregister broker {broker}? Partitions with their only replica there are lost.", agreed=agreed)
        admin.unregister_broker(broker)
        click.echo(f"broker {broker} is unregistered; {brokers_left(admin)}")


@click.command("unregister-controller")
@click.argument("controller", type=click.IntRange(min=0), metavar="ID")
@bootstrap_server
@settings_option("client")
def unregister_controller(controller: int, bootstrap_server: str, settings: tuple[str, ...]) -> None:
    """Unregister a controller that was removed from the voters and will not return (KIP-1312).

    Otherwise its version counts when feature levels are raised. A controller that still runs registers again.
    """
    with admin_at(bootstrap_server, settings) as admin:
        if any(each.replica_id == controller for each in admin.describe_metadata_quorum().voters):
            raise click.ClickException(VOTES.format(controller))
        admin.unregister_controller(controller)
        click.echo(f"controller {controller} is unregistered")


RUNS = "broker {} is running, and would end: have others copy what only it has (cluster reassign), stop it, then strike it off"
COPIES_NOT = (
    "no controller {} copies the metadata here; start it with controller.quorum.bootstrap.servers at this cluster first"
)
VOTES = "controller {} votes: stop it and remove it first with `ottla cluster remove-controller`"
VOTES_NOT = "no controller {} votes here"


def directory_of(controller: int, replicas: Iterable[QuorumReplicaState], otherwise: str) -> str:
    """Return the directory id of the controller; raise ClickException if the quorum does not list it."""
    known = {each.replica_id: each.replica_directory_id for each in replicas}
    if controller not in known:
        others = ", ".join(map(str, sorted(known))) or "none"
        raise click.ClickException(f"{otherwise.format(controller)} (there: {others})")
    return known[controller]


def remaining_quorum_sentence(controller: int, found: QuorumInfo) -> str:
    """Return a sentence about the failures that the quorum tolerates without this voter."""
    left = sorted(each.replica_id for each in found.voters if each.replica_id != controller)
    bears = (len(left) - 1) // 2
    if not left:
        return f"controller {controller} votes alone: there is no other that could decide"
    voters = f"controller{'s' if len(left) > 1 else ''} {', '.join(map(str, left))} will vote"
    return f"{voters}, and {f'{bears} of them may be lost' if bears else 'none of them may be lost'}"


def voters_of(found: QuorumInfo) -> str:
    """Return the voters, the leader marked, and the number of voters that may fail."""
    ids = sorted(each.replica_id for each in found.voters)
    named = ", ".join(f"{id_} (leader)" if id_ == found.leader_id else str(id_) for id_ in ids)
    bears = (len(ids) - 1) // 2
    return f"voters: {named}; {f'{bears} of them may fail' if bears else 'none of them may fail'}"


def brokers_left(admin: Admin) -> str:
    """Return a sentence that lists the running brokers."""
    ids = sorted(node.node_id for node in admin.describe_cluster().nodes)
    return f"brokers that run: {', '.join(map(str, ids))}"


def place_of(address: str) -> tuple[str, int]:
    """Return host and port, without the brackets of an IPv6 address."""
    host, _, port = address.rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65_536:
        raise click.BadParameter(f"{address!r}: must be HOST:PORT", param_hint="--address")
    return host.removeprefix("[").removesuffix("]"), int(port)
