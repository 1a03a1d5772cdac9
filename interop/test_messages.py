"""Messages of Kafka 4.4 that no other encoder in Python has: our bytes are those of Java's classes, for the same values.

The classes and the definitions come from `kafka-clients` 4.4.0.
"""

from __future__ import annotations

import json
import subprocess
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID
from zipfile import ZipFile

import pytest

from ottla.kafka_id import text_of
from ottla.protocol.apis import APIS, DECLARED, SERVED, api_of
from ottla.protocol.codec import KINDS, Plan, Step, Writer
from ottla.protocol.plan import plan_of
from ottla.protocol.schema import Message, Range
from rivals.apache_kafka import ROOT, bring
from rivals.one_at_a_time import one_at_a_time
from tests.protocol.facts import DIFFERENT, definition, differences
from tests.protocol.values import MESSAGES, chances, messages

JARS = ROOT / ".cache" / "kafka-clients"
POM = ROOT / "rivals" / "kafka-clients.xml"
PROGRAM = Path(__file__).parent / "java" / "Messages.java"
PATIENCE = 120.0
EXAMPLES = 10
NAMES = {kind: name for name, kind in KINDS.items()}
OTHER_VERSIONS = {
    "Produce": (
        Range(0, 13),
        Range(3, 13),
        "Kafka, too, advertises 0 in its responses, for older clients (KAFKA-18659)",
    ),
    "InitProducerId": (Range(0, 5), Range(0, 6), "6 is unstable, and Kafka does not advertise it either"),
}
"""API → the versions that are advertised here, those of Kafka's definition, and the reason."""
NEWER = {"ApiVersions", "DeleteGroups", "TxnOffsetCommit"} | {api.name for api in APIS.values() if api.key >= 76}


@pytest.fixture(scope="module")
def jars() -> Path:
    """The folder with the library, fetched if it is not there."""
    with one_at_a_time(JARS):
        if not any(JARS.glob("kafka-clients-*.jar")):
            bring(POM, JARS)
    return JARS


@pytest.fixture(scope="module")
def definitions(jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the definitions of the library."""
    folder = tmp_path_factory.mktemp("definitions")
    (jar,) = jars.glob("kafka-clients-*.jar")
    with ZipFile(jar) as archive:
        for name in archive.namelist():
            if name.startswith("common/message/") and name.endswith(".json"):
                folder.joinpath(Path(name).name).write_bytes(archive.read(name))
    return folder


def test_java_writes_the_same_bytes(jars: Path) -> None:
    drawn = list(drawn_messages())
    lines = "\n".join(f"{type(each).__name__}\t{version}\t{as_json(each, version)}" for each, version in drawn)
    command = ["java", "-cp", f"{jars}/*", str(PROGRAM)]

    done = subprocess.run(command, input=lines, capture_output=True, text=True, timeout=PATIENCE, check=False)

    assert done.returncode == 0, done.stderr
    encoded = [bytes.fromhex(line) for line in done.stdout.splitlines()]
    for (message, version), theirs in zip(drawn, encoded, strict=True):
        ours = b"".join(map(bytes, Writer().write(plan_of(type(message), version), message)))  # type: ignore[arg-type]
        assert ours == theirs, (message, version)


def test_every_message_has_the_fields_of_its_definition(definitions: Path) -> None:
    for api in APIS.values():
        for cls in (api.request, api.response):
            facts = definition(f"{cls.__name__}.json", definitions)
            assert differences(cls, facts) == DIFFERENT.get(cls.__name__, []), cls


def test_the_advertised_apis_and_versions_are_those_of_kafka(definitions: Path) -> None:
    theirs = {}
    for path in definitions.glob("*Request.json"):
        facts = definition(path.name, definitions)
        if "broker" in facts.get("listeners", ()) and facts["validVersions"] != "none":
            theirs[facts["apiKey"]] = Range.parse(facts["validVersions"])
    ours = {key: each.advertised for key, each in SERVED.items()}
    assert ours.keys() == theirs.keys()
    found = {DECLARED[key].name: (ours[key], theirs[key]) for key in ours if ours[key] != theirs[key]}
    assert found == {name: (here, there) for name, (here, there, _) in OTHER_VERSIONS.items()}


def drawn_messages() -> Iterator[tuple[Message, int]]:
    """Yield examples of every new message in every version."""
    for cls, version in MESSAGES:
        if api_of(cls).name in NEWER:
            yield from ((made, version) for made in map(messages(plan_of(cls, version)), chances(EXAMPLES, cls)))


def as_json(message: Message, version: int) -> str:
    return json.dumps(struct_value(plan_of(type(message), version), message))


def struct_value(plan: Plan, value: Any) -> dict[str, Any]:
    """Return a struct as Kafka writes it in JSON; a tagged field with its default is left out."""
    found = {camel_case(step.name): json_value(step, getattr(value, step.name)) for step in plan.written}
    for _, step in plan.tags.values():
        given = getattr(value, step.name)
        if (tuple(given) if isinstance(given, list) else given) != step.default:
            found[camel_case(step.name)] = json_value(step, given)
    return found


def json_value(step: Step, value: Any) -> Any:
    kind = NAMES[step.kind]
    if value is None:
        return None
    if kind == "array":
        return [json_value(step.item, each) for each in value]
    if kind == "struct":
        return struct_value(step.item, value)
    if isinstance(value, UUID):
        return text_of(value)
    return b64encode(value).decode() if isinstance(value, bytes) else value


def camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))
