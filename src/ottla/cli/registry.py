"""`ottla registry`: a schema registry over a cluster."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import click

from ottla.cli.json_log import configure_logging
from ottla.cli.options import (
    admin_settings,
    bootstrap_server,
    client_settings,
    place_of,
    read_as_usage,
    settings_option,
)
from ottla.cli.output import echo
from ottla.extras import extra
from ottla.uncollected import uncollected

if TYPE_CHECKING:
    from ottla.registry.server import RegistryServer

REGISTRY_ADDRESS = "127.0.0.1:8081"
REFUSED_MS = 5_000


@click.command()
@bootstrap_server
@click.option(
    "--listen",
    metavar="HOST:PORT",
    default=REGISTRY_ADDRESS,
    show_default=True,
    help="Address of the REST interface; port 0 selects a free one.",
)
@click.option("--topic", metavar="NAME", default="_schemas", show_default=True, help="The topic of the schemas.")
@click.option(
    "--group",
    metavar="NAME",
    default="schema-registry",
    show_default=True,
    help="The group in which the servers of one topic elect their leader.",
)
@click.option(
    "--advertised-host",
    metavar="HOST",
    default="",
    help="Host at which other servers of the group forward writes. Default: that of --listen.",
)
@click.option("--follower", is_flag=True, help="Never become the leader: forward all writes.")
@click.option("--auth", metavar="FILE", help="JSON file with users, tokens and permissions by subject.")
@click.option("--certificate", metavar="FILE", help="Certificate chain in PEM: serve HTTPS.")
@click.option("--key", metavar="FILE", help="Private key in PEM, if it is not in the certificate's file.")
@click.option(
    "--hash-password", is_flag=True, help="Read a password, print it as the file of --auth needs it, and end."
)
@settings_option("client")
@click.option("--verbose", "-v", count=True, help="Log more to standard error.")
def registry(
    bootstrap_server: str,
    listen: str,
    topic: str,
    group: str,
    advertised_host: str,
    follower: bool,
    auth: str | None,
    certificate: str | None,
    key: str | None,
    hash_password: bool,
    settings: tuple[str, ...],
    verbose: int,
) -> None:
    """Run a schema registry with Confluent's REST interface until Ctrl-C or SIGTERM.

    Schemas are stored in the topic _schemas, in the format of other registries. When it accepts requests, it prints
    `ready HOST:PORT` on standard output.
    """
    if hash_password:
        from ottla.registry.access import hash_password as hashed

        echo(hashed(click.prompt("password", hide_input=True, err=True)))
        return
    host, port = place_of("--listen", listen)
    with read_as_usage():
        client = admin_settings(client_settings(bootstrap_server, settings))
        with uncollected():
            from ottla.client.process.stop_signals import stop_on_signals

            with extra("registry"):
                from ottla.registry.server import RegistryServer
            from ottla.registry.settings import RegistrySettings

        configure_logging(logging.INFO if verbose else logging.WARNING, "text")
        client.setdefault("bootstrap.refused.timeout.ms", REFUSED_MS)
        served = RegistryServer(
            RegistrySettings(
                client,
                host,
                port,
                topic,
                group,
                advertised_host=advertised_host,
                may_lead=not follower,
                auth_file=auth,
                certificate_file=certificate,
                key_file=key,
            )
        )
    with stop_on_signals(served.stop):
        served.run(print_ready)


def print_ready(served: RegistryServer) -> None:
    echo(f"ready {served.address}")
