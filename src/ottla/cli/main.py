"""The command `ottla`: runs a subcommand, and reports errors as one line and an exit status.

Exit status 0 is success, 1 a failure, 2 a usage error, 130 Ctrl-C. A closed output pipe is not a failure, since its
reader decided to stop.
"""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Sequence

import click

from ottla._version import __version__
from ottla.cli.command_groups import LazyCommandGroup
from ottla.config import unknown
from ottla.errors import OttlaError
from ottla.escaping import escape_controls
from ottla.log_format import EscapingFormatter

FAILED = 1
SENSELESS = 2
INTERRUPTED = 130
KAFKAS = {"--log-dirs": "--data-dir", "--log-dir": "--data-dir", "-c": "--max-messages"}
"""Options of Kafka and other tools for which the option here has a less similar name."""
NO_NUMBER = re.compile(r"is not a valid integer(?: range)?")
"""The text of click for an argument that must be a number."""
FROM_STDIN = "unexpected extra argument"
"""The text of click when records are given to `ottla produce` as arguments."""

root = LazyCommandGroup(
    "ottla",
    {
        "broker": ("ottla.cli.broker", "Run a broker until Ctrl-C."),
        "topics": ("ottla.cli.topics", "Create, list, describe and delete topics."),
        "configs": ("ottla.cli.configs", "Show and change the configs of topics, brokers and groups."),
        "produce": ("ottla.cli.records.produce", "Send the lines of standard input to a topic."),
        "consume": ("ottla.cli.records.consume", "Print the records of a topic."),
        "records": ("ottla.cli.records.records", "Count, show and delete the records of topics."),
        "dead-letters": (
            "ottla.cli.records.dead_letters",
            "Show the records that workers could not process, and send them back.",
        ),
        "sql": ("ottla.cli.records.sql", "Query topics with DuckDB."),
        "groups": ("ottla.cli.groups.groups", "List, describe and watch consumer groups, and change their offsets."),
        "cluster": (
            "ottla.cli.clusters.cluster",
            "Show leaders, lagging replicas and disk usage; move leaders and replicas.",
        ),
        "doctor": ("ottla.cli.doctor.doctor", "Check for common problems, and print remedies."),
        "bench": ("ottla.cli.benching.bench", "Measure the throughput and the latency of a cluster."),
        "transactions": ("ottla.cli.transactions", "List and describe transactions, and abort hanging ones."),
        "acls": ("ottla.cli.security.acls", "List, create and delete access rules."),
        "users": ("ottla.cli.security.users", "Set, list and delete the SCRAM passwords of users."),
        "quotas": ("ottla.cli.security.quotas", "Show and change the quotas of users, client ids and addresses."),
        "mirror": (
            "ottla.cli.mirroring.mirror",
            "Copy topics, configs and groups' offsets from one cluster to another.",
        ),
        "trace": ("ottla.cli.tracing.trace", "Watch the internal events of consumers, producers and brokers."),
        "console": ("ottla.cli.console", "Serve the web console of a cluster."),
        "pipeline": ("ottla.cli.pipelines.pipeline", "Run and check pipelines that are defined in files."),
        "context": ("ottla.cli.contexts.context", "Name clusters, and select the one that commands use."),
        "certificates": ("ottla.cli.security.certificates", "Create certificates for tests of TLS."),
        "storage": ("ottla.cli.storage.storage", "Format the data directory of a broker that joins a cluster."),
        "completion": ("ottla.cli.completion", "Print a script that completes commands in bash, zsh or fish."),
        "log": ("ottla.cli.storage.log", "Print, check and repair the files of a data directory."),
    },
    help="Ottla: Kafka for people who work in Python.",
)
click.version_option(__version__, prog_name="ottla", message="%(prog)s %(version)s")(root)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    replace_closed_streams()
    if logging.lastResort is not None:  # log format of commands that do not configure logging
        logging.lastResort.setFormatter(EscapingFormatter())
    try:
        # In this mode click returns the status of `ctx.exit`, and raises what it would print.
        status = root.main(given, prog_name="ottla", standalone_mode=False, color=wants_colour())
        sys.stdout.flush()
        return int(status or 0)
    except BrokenPipeError:
        return discard_output(0)
    except click.UsageError as error:
        return print_error(sentence_of(error), SENSELESS)
    except click.ClickException as error:
        return print_error(error.format_message(), error.exit_code)
    except click.Abort:
        return discard_output(INTERRUPTED)
    except OttlaError as error:
        return print_error(str(error), FAILED)
    except OSError as error:
        return print_error(os_error_text(error), FAILED)


def wants_colour() -> bool | None:
    """Return False if `NO_COLOR` is set (no-color.org), else None, which leaves the choice to click."""
    return False if os.environ.get("NO_COLOR") else None


def replace_closed_streams() -> None:
    """Replace standard streams that the caller closed (`>&-`) by /dev/null; Python sets them to None."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)  # must stay open until the process ends
            setattr(sys, name, open(nowhere, mode, encoding="utf-8", closefd=False))  # noqa: SIM115


def print_error(sentence: str, status: int) -> int:
    """Print an error in one line and return the exit status."""
    print(f"ottla: {escape_controls(' '.join(sentence.split()))}", file=sys.stderr)
    return status


def discard_output(status: int) -> int:
    """Discard pending output, so that Python's final flush does not fail on a closed pipe."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return status


def sentence_of(error: click.UsageError) -> str:
    """Return click's error in plain words, with the command that prints help."""
    path = error.ctx.command_path if error.ctx is not None else "ottla"
    if isinstance(error, click.NoSuchOption):
        known = [name for p in error.ctx.command.get_params(error.ctx) for name in p.opts] if error.ctx else []
        longer = [name for name in known if name.endswith(f"-{error.option_name.lstrip('-')}")]
        meant = longer[0] if len(longer) == 1 else KAFKAS.get(error.option_name)
        if meant in known:
            return f"unknown option {error.option_name!r}; did you mean {meant!r}? (see {path} --help)"
        return f"{unknown('option', error.option_name, known)} (see {path} --help)"
    message = NO_NUMBER.sub("is not a whole number", error.format_message()).rstrip(".")
    if path == "ottla produce" and FROM_STDIN in message:
        message += ": records are lines of standard input, as in echo hello | ottla produce TOPIC"
    return f"{message[:1].lower()}{message[1:]} (see {path} --help)"


def os_error_text(error: OSError) -> str:
    """Return the error of a system call with its file."""
    return f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror or error)


if __name__ == "__main__":
    sys.exit(main())
