"""The command `ottla`: runs a subcommand, and reports errors as one line and an exit status.

Exit status 0 is success, 1 a failure, 2 a usage error, 130 Ctrl-C. A closed output pipe is not a failure, since its
reader decided to stop.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from contextlib import suppress

import click

from ottla._version import __version__
from ottla.cli.command_groups import LazyCommandGroup
from ottla.errors import OttlaError
from ottla.escaping import escape_controls

FAILED = 1
SENSELESS = 2
INTERRUPTED = 130
OF_OTHER_TOOLS = {
    "--log-dirs": ["--data-dir"],
    "--log-dir": ["--data-dir"],
    "--port": ["--listen HOST:PORT"],
    "--host": ["--listen HOST:PORT"],
    "--brokers": ["--bootstrap-server"],
    "--broker-list": ["--bootstrap-server"],
    "-c": ["--max-messages"],
    "-K": ["--key-separator", "--keys"],
    "-X": ["--set"],
    "--acks": ["--set acks=…"],
    "--request-required-acks": ["--set acks=…"],
    "--property": ["--key-separator", "--keys"],
    "--formatter-property": ["--keys"],
    "--reader-property": ["--key-separator"],
    "--timeout-ms": ["--timeout"],
    "--consumer-property": ["--set"],
    "--producer-property": ["--set"],
    "--command-property": ["--set"],
    "--consumer.config": ["--command-config"],
    "--producer.config": ["--command-config"],
    "--consumer-config": ["--command-config"],
    "--producer-config": ["--command-config"],
}
"""Options of Kafka's tools, kcat and rpk, with the options here that replace them; a command has one of these or none."""
KAFKA_VERBS = {"add": "create", "remove": "delete"}
"""Options of kafka-acls for which the command here has another name."""
NO_NUMBER = re.compile(r"is not a valid integer(?: range)?")
"""The text of click for an argument that must be a number."""
SHORT_FORM = re.compile(r"'-\w' / (?='--)")
"""click's text for the short form of an option, before its long form."""
USUAL_WIDTH, LEAST_WIDTH = 80, 50
"""click's limits for the width of help texts, in columns."""
FROM_STDIN = "unexpected extra argument"
"""The text of click when records are given to `ottla produce` as arguments."""


def format_last_resort() -> None:
    """Set the log format of commands that do not configure logging."""
    import logging  # loaded with a command only: `--help` does without it

    from ottla.log_format import EscapingFormatter

    if logging.lastResort is not None:
        logging.lastResort.setFormatter(EscapingFormatter())


root = LazyCommandGroup(
    "ottla",
    format_last_resort,
    {
        "Run": {
            "broker": ("ottla.cli.broker", "Run a broker until Ctrl-C."),
            "console": ("ottla.cli.console", "Serve the web console of a cluster."),
            "registry": ("ottla.cli.registry", "Run a schema registry."),
            "mcp": ("ottla.cli.mcp", "Serve the tools of a cluster to programs with language models."),
            "pipeline": ("ottla.cli.pipelines.pipeline", "Run and check pipelines that are defined in files."),
            "mirror": (
                "ottla.cli.mirroring.mirror",
                "Copy topics, configs and groups' offsets from one cluster to another.",
            ),
            "backup": ("ottla.cli.backups.backup", "Back up a cluster or topics into a folder, and check a backup."),
            "restore": ("ottla.cli.backups.restore", "Restore a backup into a cluster."),
        },
        "Records": {
            "produce": ("ottla.cli.records.produce", "Send the lines of standard input to a topic."),
            "consume": ("ottla.cli.records.consume", "Print the records of a topic."),
            "records": ("ottla.cli.records.records", "Count, show and delete the records of topics."),
            "sql": ("ottla.cli.records.sql", "Query topics with DuckDB."),
            "schemas": ("ottla.cli.schemas", "List, show, register, check and delete the schemas of a registry."),
            "dead-letters": (
                "ottla.cli.records.dead_letters",
                "Show the records that workers could not process, and send them back.",
            ),
        },
        "Cluster": {
            "topics": ("ottla.cli.topics", "Create, list, describe and delete topics."),
            "groups": (
                "ottla.cli.groups.groups",
                "List, describe and watch consumer groups, and change their offsets.",
            ),
            "configs": ("ottla.cli.configs", "Show and change the configs of topics, brokers and groups."),
            "transactions": ("ottla.cli.transactions", "List and describe transactions, and abort hanging ones."),
            "cluster": (
                "ottla.cli.clusters.cluster",
                "Show leaders, lagging replicas and disk usage; move leaders and replicas.",
            ),
            "bench": ("ottla.cli.benching.bench", "Measure the throughput and the latency of a cluster."),
        },
        "Access": {
            "acls": ("ottla.cli.security.acls", "List, create and delete access rules."),
            "users": ("ottla.cli.security.users", "Set, list and delete the SCRAM passwords of users."),
            "quotas": ("ottla.cli.security.quotas", "Show and change the quotas of users, client ids and addresses."),
            "certificates": ("ottla.cli.security.certificates", "Create certificates for tests of TLS."),
        },
        "Look inside": {
            "doctor": ("ottla.cli.doctor.doctor", "Check for common problems, and print remedies."),
            "trace": ("ottla.cli.tracing.trace", "Watch the internal events of consumers, producers and brokers."),
            "log": ("ottla.cli.storage.log", "Print, check and repair the files of a data directory."),
        },
        "Set up": {
            "context": ("ottla.cli.contexts.context", "Name clusters, and select the one that commands use."),
            "storage": ("ottla.cli.storage.storage", "Format the data directory of a broker that joins a cluster."),
            "completion": ("ottla.cli.completion", "Print a script that completes commands in bash, zsh or fish."),
            "version": ("ottla.cli.version", "Print the versions of Ottla, Python and the libraries that it uses."),
        },
    },
    help="Ottla: Kafka for people who work in Python.",
    context_settings={"help_option_names": ["-h", "--help"]},
)
click.version_option(__version__, prog_name="ottla", message="%(prog)s %(version)s")(root)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    replace_closed_streams()
    try:
        # In this mode click returns the status of `ctx.exit`, and raises what it would print.
        status = root.main(
            given, prog_name="ottla", standalone_mode=False, color=wants_colour(), terminal_width=help_width()
        )
        sys.stdout.flush()
        return int(status or 0)
    except BrokenPipeError:
        return discard_output(0)
    except click.UsageError as error:
        return print_error(sentence_of(error, given), SENSELESS)
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


def help_width() -> int:
    """Return the width of help texts as click computes it. click would load `shutil` for that, with all it imports."""
    given = os.environ.get("COLUMNS", "")
    columns = int(given) if given.isdecimal() else 0
    if not columns:
        with suppress(OSError):  # not a terminal
            columns = os.get_terminal_size(1).columns
    return max(min(columns or USUAL_WIDTH, USUAL_WIDTH) - 2, LEAST_WIDTH)


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


def sentence_of(error: click.UsageError, given: Sequence[str]) -> str:
    """Return click's error for these arguments in plain words, with the command that prints help."""
    path = error.ctx.command_path if error.ctx is not None else command_path(given)
    if isinstance(error, click.NoSuchOption):
        return f"{unknown_option(error)} (see {path} --help)"
    message = NO_NUMBER.sub("is not a whole number", SHORT_FORM.sub("", error.format_message())).rstrip(".")
    if path == "ottla produce" and FROM_STDIN in message:
        message += ": records are lines of standard input, as in echo hello | ottla produce TOPIC"
    return f"{message[:1].lower()}{message[1:]} (see {path} --help)"


def is_command(context: click.Context, option: str) -> bool:
    """Return True for an option such as `--list` or `--add` of Kafka's tools, if the group has a command for it."""
    name = option.lstrip("-")
    return isinstance(context.command, click.Group) and KAFKA_VERBS.get(name, name) in context.command.list_commands(
        context
    )


def command_path(given: Sequence[str]) -> str:
    """Return the path of the command in these arguments, for the errors that click raises without a context."""
    path = "ottla"
    command: click.Command = root
    with click.Context(root, info_name=path) as context:
        for name in given:
            found = command.get_command(context, name) if isinstance(command, click.Group) else None
            if found is None:
                break
            path, command = f"{path} {name}", found
    return path


def unknown_option(error: click.NoSuchOption) -> str:
    """Return the error for an unknown option, with the option or command that was probably meant."""
    from ottla.config import unknown  # loads msgspec

    name = error.option_name
    known = [each for p in error.ctx.command.get_params(error.ctx) for each in p.opts] if error.ctx else []
    if error.ctx and is_command(error.ctx, name):
        command = KAFKA_VERBS.get(name.lstrip("-"), name.lstrip("-"))
        return f"unknown option {name!r}; did you mean the command '{error.ctx.command_path} {command}'?"
    longer = [each for each in known if each.endswith(f"-{name.lstrip('-')}")]
    replaced = [each for each in OF_OTHER_TOOLS.get(name, ()) if each.split()[0] in known]
    meant = longer if len(longer) == 1 else replaced[:1]
    return f"unknown option {name!r}; did you mean {meant[0]!r}?" if meant else unknown("option", name, known)


def os_error_text(error: OSError) -> str:
    """Return the error of a system call with its file."""
    return f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror or error)


if __name__ == "__main__":
    sys.exit(main())
