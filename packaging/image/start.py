#!/usr/bin/env python3
"""Start the broker of the image from variables as the image apache/kafka takes them.

    start.py run          configure, then launch: the default command of the image
    start.py configure    write the settings file
    start.py launch       format the directories, and replace this process by `ottla broker`

Sources of settings, the later one first: KAFKA_… variables, /mnt/shared/config/server.properties, the defaults below.
KAFKA_LOG_DIRS is log.dirs: `_` is a dot, `__` an underscore, `___` a hyphen. CLUSTER_ID is the id of a new cluster.
Arguments of `run` and `launch` are passed to `ottla broker`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from ottla.broker.settings.sources import is_known_setting
from ottla.errors import ConfigError
from ottla.properties import read_properties

PREFIX = "KAFKA_"
DATA = "/var/lib/ottla"
METRICS = "0.0.0.0:9404"
DEFAULTS = {
    "node.id": "1",
    "process.roles": "broker,controller",
    "controller.listener.names": "CONTROLLER",
    "listeners": "PLAINTEXT://0.0.0.0:9092",
    "advertised.listeners": "PLAINTEXT://localhost:9092",
}
"""Settings of a container to which no settings are given. With any given setting only DATA and METRICS are defaults."""
READY_LINES = "[KafkaServer id={id}] started. Kafka Server started. Transitioning from RECOVERY to RUNNING."
"""The texts for which the Kafka modules of testcontainers for Java, Go, Node and Python wait."""
NOT_SETTINGS = (
    *("KAFKA_HEAP_OPTS", "KAFKA_OPTS", "KAFKA_GC_LOG_OPTS", "KAFKA_JVM_PERFORMANCE_OPTS", "KAFKA_VERSION"),
    *("KAFKA_LOG4J_OPTS", "KAFKA_LOG4J_LOGGERS", "KAFKA_LOG4J_ROOT_LOGLEVEL", "KAFKA_TOOLS_LOG4J_LOGLEVEL"),
    *("KAFKA_ZOOKEEPER_CONNECT", "KAFKA_REST_BOOTSTRAP_SERVERS", "KAFKA_INITIAL_CONTROLLERS"),
    *("KAFKA_SSL_KEYSTORE_FILENAME", "KAFKA_SSL_KEYSTORE_CREDENTIALS", "KAFKA_SSL_KEY_CREDENTIALS"),
    *("KAFKA_SSL_TRUSTSTORE_FILENAME", "KAFKA_SSL_TRUSTSTORE_CREDENTIALS"),
)
JMX = "KAFKA_JMX_"
SECRETS = "/etc/kafka/secrets"
FILES = (("KEYSTORE_FILENAME", "ssl.keystore.location"), ("TRUSTSTORE_FILENAME", "ssl.truststore.location"))
CREDENTIALS = (
    ("KEYSTORE_CREDENTIALS", "ssl.keystore.password"),
    ("KEY_CREDENTIALS", "ssl.key.password"),
    ("TRUSTSTORE_CREDENTIALS", "ssl.truststore.password"),
)
VERBOSITY = {"INFO": "-v", "DEBUG": "-vv", "TRACE": "-vv"}


class Image:
    """The folders of the image below `root`, and the variables of the container."""

    def __init__(self, root: Path, environment: Mapping[str, str]) -> None:
        self._root = root
        self._environment = environment
        self.settings_file = self.place("/etc/kafka/kafka.properties")

    def place(self, path: str) -> Path:
        """Return the path of a file in the image."""
        return self._root / path.lstrip("/")

    def configure(self) -> list[str]:
        """Write the settings file, and return warnings. ConfigError if the settings contradict each other."""
        settings, warnings = self._given_settings()
        if not settings:
            settings = dict(DEFAULTS)
        settings.setdefault("log.dirs", str(self.place(DATA)))
        if not settings.get("advertised.listeners"):
            settings.pop("advertised.listeners", None)
        elif settings.get("process.roles") == "controller":
            raise ConfigError("KAFKA_ADVERTISED_LISTENERS is not supported on a controller: remove the variable")
        elif not settings.get("listeners"):
            settings["listeners"] = listen_everywhere(settings["advertised.listeners"])
        self.settings_file.parent.mkdir(parents=True, exist_ok=True)
        self.settings_file.write_text(format_properties(settings), encoding="utf-8")
        return warnings

    def format_command(self) -> list[str]:
        """Return the command that formats the directories of a new node, or [] if it needs no formatting."""
        cluster_id = self._environment.get("CLUSTER_ID", "")
        if not cluster_id:
            return []
        command = ["ottla", "storage", "format", "--ignore-formatted", "-t", cluster_id, "-c", str(self.settings_file)]
        settings = self._written_settings()
        if settings.get("controller.quorum.voters") or not settings.get("process.roles"):
            return command
        first_voters = self._environment.get("KAFKA_INITIAL_CONTROLLERS", "")
        if first_voters:
            return [*command, "--initial-controllers", first_voters]
        is_broker_only = settings["process.roles"] == "broker"
        return [*command, "--no-initial-controllers" if is_broker_only else "--standalone"]

    def broker_command(self, arguments: list[str]) -> list[str]:
        """Return the command of the broker."""
        settings = self._written_settings()
        node_id = settings.get("node.id") or settings.get("broker.id") or "1"
        command = ["ottla", "broker", "--config", str(self.settings_file)]
        if "metrics.listen" not in settings and "OTTLA_METRICS_LISTEN" not in self._environment:
            command += ["--metrics", METRICS]
        verbosity = VERBOSITY.get(self._environment.get("KAFKA_LOG4J_ROOT_LOGLEVEL", "").upper())
        command += [verbosity] if verbosity else []
        return [*command, "--ready-line", READY_LINES.format(id=node_id), *arguments]

    def _given_settings(self) -> tuple[dict[str, str], list[str]]:
        """Return the settings of the mounted file and of the variables, and warnings about ignored variables."""
        mounted = self.place("/mnt/shared/config/server.properties")
        text = mounted.read_text(encoding="utf-8") if mounted.exists() else ""
        settings = {key: value for _, key, value in read_properties(text)}
        warnings = []
        for variable, value in sorted(self._environment.items()):
            if not variable.startswith(PREFIX) or variable in NOT_SETTINGS or variable.startswith(JMX):
                continue
            name = setting_name(variable)
            if is_known_setting(name):
                settings[name] = value
            else:
                warnings.append(f"variable {variable} is ignored: this broker has no setting {name}")
        return settings | self._mounted_secrets(), warnings

    def _mounted_secrets(self) -> dict[str, str]:
        """Return the settings of key stores in /etc/kafka/secrets, whose passwords are in files."""
        found = {}
        for part, name in FILES:
            if file := self._environment.get(f"KAFKA_SSL_{part}"):
                found[name] = str(self._secret(part, file))
        for part, name in CREDENTIALS:
            if file := self._environment.get(f"KAFKA_SSL_{part}"):
                found[name] = self._secret(part, file).read_text(encoding="utf-8").rstrip("\n")
        return found

    def _secret(self, part: str, file: str) -> Path:
        path = self.place(SECRETS) / file
        if not path.exists():
            raise ConfigError(f"KAFKA_SSL_{part}: there is no file {path}: mount a volume at {SECRETS}")
        return path

    def _written_settings(self) -> dict[str, str]:
        return {key: value for _, key, value in read_properties(self.settings_file.read_text(encoding="utf-8"))}


def setting_name(variable: str) -> str:
    """Return the name of the setting of a KAFKA_… variable."""
    name = variable.removeprefix(PREFIX).lower()
    return name.replace("___", "-").replace("__", "\0").replace("_", ".").replace("\0", "_")


def listen_everywhere(advertised: str) -> str:
    """Return listeners with the names and ports of the advertised ones, on all addresses."""
    listeners = []
    for listener in advertised.split(","):
        name, _, address = listener.strip().partition("://")
        listeners.append(f"{name}://0.0.0.0:{address.rpartition(':')[2]}")
    return ",".join(listeners)


def format_properties(settings: Mapping[str, str]) -> str:
    """Return the text of a properties file."""
    return "".join(f"{escape(name, ' :=')}={escape(value)}\n" for name, value in settings.items())


def escape(text: str, special: str = "") -> str:
    """Escape the characters that have a meaning in a properties file."""
    text = text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    for character in special:
        text = text.replace(character, f"\\{character}")
    return f"\\{text}" if text.startswith((" ", "#", "!")) else text


def main() -> None:
    words = sys.argv[1:]
    step = words.pop(0) if words and words[0] in ("run", "configure", "launch") else "run"
    if words and not words[0].startswith("-"):
        os.execvp(words[0], words)  # another command in the image
    image = Image(Path("/"), os.environ)
    try:
        if step != "launch":
            for warning in image.configure():
                print(f"start: {warning}", file=sys.stderr, flush=True)
        if step != "configure":
            launch(image, words)
    except (ConfigError, OSError) as error:
        sys.exit(f"start: {error}")


def launch(image: Image, arguments: list[str]) -> None:
    """Format the directories if necessary, and replace this process by the broker, which then receives the signals."""
    formatting = image.format_command()
    if formatting and subprocess.run(formatting, check=False, stdout=subprocess.DEVNULL).returncode:
        sys.exit("start: the directories could not be formatted; the reason is above")
    command = image.broker_command(arguments)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
