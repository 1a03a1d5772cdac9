"""The command `ottla`: finds the verb, and turns mistakes into one sentence and an exit status.

0 is success, 1 a failure, 2 a command that makes no sense, 130 Ctrl-C. A pipe that is closed at the other end is not a
failure: its reader has what it wanted.
"""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Sequence

import click

from ottla._version import __version__
from ottla.cli.verbs import LazyVerbs
from ottla.config import unknown
from ottla.errors import OttlaError
from ottla.escaping import escape_controls
from ottla.log_format import EscapingFormatter

FAILED = 1
SENSELESS = 2
INTERRUPTED = 130
KAFKAS = {"--log-dirs": "--data-dir", "--log-dir": "--data-dir", "-c": "--max-messages"}
"""Options by the names of Kafka's settings and of other tools, where another of ours is written more like them."""
NO_NUMBER = re.compile(r"is not a valid integer(?: range)?")
"""What click says of a text where a number belongs."""
FROM_STDIN = "unexpected extra argument"
"""What click says where somebody gives `ottla produce` the records themselves."""

root = LazyVerbs(
    "ottla",
    {
        "broker": ("ottla.cli.broker", "Run a broker until Ctrl-C."),
        "topics": ("ottla.cli.topics", "Create, list, describe and delete topics."),
        "configs": ("ottla.cli.configs", "Show and change the configs of topics, brokers and groups."),
        "produce": ("ottla.cli.records.produce", "Send the lines of standard input to a topic."),
        "consume": ("ottla.cli.records.consume", "Print the records of a topic."),
        "records": ("ottla.cli.records.records", "Count, show the first of, and delete the records of topics."),
        "sql": ("ottla.cli.records.sql", "Answer a query about topics, by DuckDB."),
        "groups": ("ottla.cli.groups.groups", "List, describe and watch consumer groups, and move their offsets."),
        "cluster": (
            "ottla.cli.clusters.cluster",
            "Show who leads, who is behind, what is on disks; move leaders and copies.",
        ),
        "doctor": ("ottla.cli.doctor.doctor", "Look at what commonly goes wrong, and say what helps."),
        "bench": ("ottla.cli.benching.bench", "Measure how quickly a cluster takes records and hands them out."),
        "transactions": ("ottla.cli.transactions", "List and describe transactions, and abort those that hang."),
        "acls": ("ottla.cli.security.acls", "List, create and delete the rules of who may do what."),
        "users": ("ottla.cli.security.users", "Give users of SCRAM passwords, show who has one, and take them away."),
        "quotas": ("ottla.cli.security.quotas", "Show and change what users, client ids and addresses are limited to."),
        "mirror": (
            "ottla.cli.mirroring.mirror",
            "Carry topics, configs and groups' offsets from one cluster to another.",
        ),
        "trace": ("ottla.cli.tracing.trace", "Watch a consumer from inside."),
        "console": ("ottla.cli.console", "Show a cluster on a page for the browser."),
        "pipeline": ("ottla.cli.pipelines.pipeline", "Run and check pipelines that are written in files."),
        "context": ("ottla.cli.contexts.context", "Name clusters, and choose the one that commands speak to."),
        "certificates": ("ottla.cli.security.certificates", "Make certificates to try TLS with."),
        "storage": ("ottla.cli.storage.storage", "Format the data directory of a broker that joins a cluster."),
        "completion": ("ottla.cli.completion", "Print a script that completes commands in bash, zsh or fish."),
        "log": ("ottla.cli.storage.log", "Look into the files of a data directory and check them."),
    },
    help="Ottla: Kafka for people who work in Python.",
)
click.version_option(__version__, prog_name="ottla", message="%(prog)s %(version)s")(root)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    replace_closed_streams()
    if logging.lastResort is not None:  # where a command does not say how its log is written
        logging.lastResort.setFormatter(EscapingFormatter())
    try:
        # In this mode click returns the status of `ctx.exit`, and raises what it would print.
        status = root.main(given, prog_name="ottla", standalone_mode=False, color=wants_colour())
        sys.stdout.flush()
        return int(status or 0)
    except BrokenPipeError:
        return silenced(0)
    except click.UsageError as error:
        return complain(sentence_of(error), SENSELESS)
    except click.ClickException as error:
        return complain(error.format_message(), error.exit_code)
    except click.Abort:
        return silenced(INTERRUPTED)
    except OttlaError as error:
        return complain(str(error), FAILED)
    except OSError as error:
        return complain(os_error_text(error), FAILED)


def wants_colour() -> bool | None:
    """No where `NO_COLOR` is set (no-color.org), else as it is a terminal or not."""
    return False if os.environ.get("NO_COLOR") else None


def replace_closed_streams() -> None:
    """Have streams that the caller has closed (`>&-`) lead nowhere; Python's own would be None."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)  # which is not to be closed before the process ends
            setattr(sys, name, open(nowhere, mode, encoding="utf-8", closefd=False))  # noqa: SIM115


def complain(sentence: str, status: int) -> int:
    """Say what is wrong, in one line."""
    print(f"ottla: {escape_controls(' '.join(sentence.split()))}", file=sys.stderr)
    return status


def silenced(status: int) -> int:
    """Nobody reads standard output any more: let Python's last flush go nowhere."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return status


def sentence_of(error: click.UsageError) -> str:
    """What click complains of in our words, with the command that explains more."""
    path = error.ctx.command_path if error.ctx is not None else "ottla"
    if isinstance(error, click.NoSuchOption):
        known = [name for p in error.ctx.command.get_params(error.ctx) for name in p.opts] if error.ctx else []
        longer = [name for name in known if name.endswith(f"-{error.option_name.lstrip('-')}")]
        meant = longer[0] if len(longer) == 1 else KAFKAS.get(error.option_name)
        if meant in known:
            return f"unknown option {error.option_name!r}; did you mean {meant!r}? (see {path} --help)"
        return f"{unknown('option', error.option_name, known)} (see {path} --help)"
    message = NO_NUMBER.sub("is no whole number", error.format_message()).rstrip(".")
    if path == "ottla produce" and FROM_STDIN in message:
        message += ": records are lines of standard input, as in echo hello | ottla produce TOPIC"
    return f"{message[:1].lower()}{message[1:]} (see {path} --help)"


def os_error_text(error: OSError) -> str:
    """An error of the system with the file it is about."""
    return f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror or error)


if __name__ == "__main__":
    sys.exit(main())
