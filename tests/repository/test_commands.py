"""Every `ottla` command in the documentation exists, with its options and the settings of `--set`."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from ottla.broker.settings.sources import is_known_setting
from ottla.cli.main import root
from ottla.client.admin.config import AdminConfig
from ottla.client.consumer.config import ConsumerConfig
from ottla.client.producer.config import ProducerConfig
from ottla.config import options_of
from tests.repository.readme import ROOT

COMMAND = re.compile(r"(?<![\w./-])ottla (?=[a-z])")
FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"^    +(?:\S*/)?(ottla .+)$", re.MULTILINE)
INLINE = re.compile(r"(?<!`)`(ottla [^`]+)`(?!`)")
OF_CLIENTS = {each.name for config in (AdminConfig, ConsumerConfig, ProducerConfig) for each in options_of(config)}
ENDS = {"|", ">", "<", "&", ";", "&&", "||", "2>"}
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
FILES = [*PAGES, ROOT / "docs" / "grafana" / "alerts.yml", *sorted((ROOT / "packaging").rglob("*.*ml"))]


def written_commands(text: str) -> Iterator[str]:
    """Yield the texts after `ottla` in blocks of a shell, indented blocks and inline code."""
    for _, language, block in FENCE.findall(text):
        if language in ("", "sh", "bash", "shell", "console"):
            lines = re.sub(r" *\\\n *", " ", block).splitlines()
            yield from (line[found.end() :] for line in lines for found in COMMAND.finditer(line.partition(" # ")[0]))
    rest = FENCE.sub("", text)
    yield from (found.removeprefix("ottla ") for found in [*INDENTED.findall(rest), *INLINE.findall(rest)])


def words_of(command: str) -> list[str]:
    """Return the words of one command, without comments, pipes and what follows."""
    try:
        words = shlex.split(command, comments=True)
    except ValueError:  # an apostrophe of the sentence around it
        words = command.split()
    for index, word in enumerate(words):
        if word in ENDS or word[-1:] in ";)":
            return words[: index + (word not in ENDS)]
    return words


def faults(command: str) -> Iterator[str]:
    """Yield what the command line would reject."""
    words = words_of(command)
    found: click.Command = root
    context = click.Context(root, info_name="ottla")
    while isinstance(found, click.Group) and words and re.fullmatch(r"[a-z][a-z-]*", words[0]):
        child = found.get_command(context, words[0])
        if child is None:
            yield f"no command {words[0]!r}"
            return
        found, context, words = child, click.Context(child, parent=context, info_name=words[0]), words[1:]
    options = {name: each for each in found.get_params(context) for name in (*each.opts, *each.secondary_opts)}
    names = iter(words)
    for word in names:
        name, equals, value = word.partition("=")
        if not re.fullmatch(r"--?[a-zA-Z][\w-]*", name):
            continue
        option = options.get(name) or (options.get(name[:2]) if not name.startswith("--") else None)
        if option is None:
            yield f"no option {name}"
        elif isinstance(option, click.Option) and not (option.is_flag or option.count or equals):
            value = next(names, "")
        if name == "--set" and "=" in value:
            setting = value.partition("=")[0]
            if not (is_known_setting(setting) if found.name in ("broker", "start") else setting in OF_CLIENTS):
                yield f"no setting {setting}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_command_in_the_documentation_exists_with_its_options(path: Path) -> None:
    wrong = [
        f"ottla {command}: {fault}"
        for command in written_commands(path.read_text(encoding="utf-8"))
        for fault in faults(command)
    ]
    assert wrong == []
