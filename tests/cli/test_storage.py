"""`ottla storage`, and brokers that cannot join a cluster."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from ottla.broker.embedding.embedded_broker import Broker
from ottla.broker.metadata.bootstrap_checkpoint import read_bootstrap
from ottla.cli.storage.storage import storage
from ottla.client.admin import Admin, UserScramCredentialDeletion
from ottla.coordination.cluster.features import ELR_VERSION
from ottla.coordination.cluster.records import FeatureLevelRecord, encode_record
from ottla.coordination.quorum.control_records import decode_control
from ottla.digests import stretched
from ottla.free_ports import free_port
from ottla.protocol.sasl.scram_credential import MECHANISMS, ScramCredential, is_password
from ottla.storage.directory import meta_properties
from ottla.storage.directory.meta_properties import MetaProperties
from ottla.storage.state_log.snapshot import EMPTY, parse_state, read_state, write_snapshot
from ottla.storage.state_log.voter import Quorum
from tests.cli.conftest import PATIENCE, ottla, start

CLUSTER = "b3R0bGEtcml2YWwta2Fma2"
NO_ENTITY = "127.0.0.1:1"
"""An address without a controller."""


def properties(folder: Path, **changed: str | None) -> Path:
    """Write the settings of a broker that joins; None omits a setting."""
    settings = {
        "process.roles": "broker",
        "node.id": "7",
        "controller.quorum.bootstrap.servers": NO_ENTITY,
        "controller.listener.names": "CONTROLLER",
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log.dirs": str(folder / "data"),
    } | {name.replace("_", "."): value for name, value in changed.items()}
    file = folder / "server.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items() if value is not None))
    return file


def format_for(file: Path, cluster: str = CLUSTER) -> str:
    """Format with this file and return standard output and error."""
    result = ottla("storage", "format", "-t", cluster, "-c", file, "--no-initial-controllers")
    return result.out + result.err


def test_a_broker_is_formatted_without_voters_and_adds_no_controllers(tmp_path: Path) -> None:
    """Kafka's tool rejects the same options."""
    file = properties(tmp_path)
    for given in (("--standalone",), ("--initial-controllers", "7@localhost:9093:JEXY6aqzQY-32P5TStzaFg")):
        refused = ottla("storage", "format", "-t", CLUSTER, "-c", file, *given)
        assert f"{given[0]}: a broker is not a controller: omit the option" in refused.err
    formatted = ottla("storage", "format", "-t", CLUSTER, "-c", file)
    assert formatted.out == f"formatted {tmp_path}/data for node 7 of cluster {CLUSTER}\n"


def test_a_directory_is_formatted_once_for_one_cluster_and_node(tmp_path: Path) -> None:
    file = properties(tmp_path)
    assert format_for(file) == f"formatted {tmp_path}/data for node 7 of cluster {CLUSTER}\n"
    assert f"cluster.id={CLUSTER}\n" in (tmp_path / "data" / "meta.properties").read_text()
    assert "is formatted already" in format_for(file)


def test_an_invalid_id_is_rejected(tmp_path: Path) -> None:
    for none in ("", "my own", "my\\own", "mine\n", "größe"):
        assert "cannot be: it needs characters of ASCII" in format_for(properties(tmp_path), none), none
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("given", ["mine", "BkHFdqv6TZmgb/hO0m+HBw", "a=b:#!"])
def test_an_id_chosen_by_the_user_is_accepted_unchanged(tmp_path: Path, given: str) -> None:
    assert f"of cluster {given}" in format_for(properties(tmp_path), given)
    assert MetaProperties.read_formatted(tmp_path / "data", 7, given).cluster_id == given


def test_a_random_id_is_one_that_a_directory_can_be_formatted_with(tmp_path: Path) -> None:
    drawn = ottla("storage", "random-uuid").out.strip()
    assert f"of cluster {drawn}" in format_for(properties(tmp_path), drawn)


LONE = {"process_roles": "broker,controller", "controller_quorum_bootstrap_servers": ""}
"""The settings of a single-node cluster."""


@pytest.mark.parametrize("is_as_of_4_4", [False, True])
@pytest.mark.parametrize("changed", [{}, {"controller_quorum_voters": "7@localhost:9093"}])
def test_a_single_node_cluster_starts_as_its_directory_was_formatted(
    tmp_path: Path, changed: dict[str, str], is_as_of_4_4: bool
) -> None:
    file = properties(tmp_path, **LONE | changed)
    way = () if changed else ("--standalone",)
    said = formatted(file, *way, "--add-scram", ALICE, "--release-version", "4.1")
    assert said == f"formatted {tmp_path}/data for node 7 of cluster {CLUSTER}\n"
    if is_as_of_4_4:
        move_first_records(tmp_path / "data")
    with Broker(tmp_path / "data", node_id=7) as broker, Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
        assert admin.describe_cluster().cluster_id == CLUSTER
        levels = admin.describe_features().finalized_features
        assert levels["metadata.version"].max_version_level == 27
        assert levels["eligible.leader.replicas.version"].max_version_level == 1
        assert admin.describe_user_scram_credentials() == {"alice": {"SCRAM-SHA-256": 4096}}
        admin.alter_user_scram_credentials([UserScramCredentialDeletion("alice", "SCRAM-SHA-256")])
    with Broker(tmp_path / "data", node_id=7) as broker, Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
        assert admin.describe_user_scram_credentials() == {}


def move_first_records(directory: Path) -> None:
    """Move the first records of a cluster to the file in which Kafka's tool has them since 4.4 (KIP-1170)."""
    first = [encode_record(each) for each in read_bootstrap(directory)]
    (directory / "bootstrap.checkpoint").unlink()
    folder = directory / "__cluster_metadata-0"
    folder.mkdir(exist_ok=True)
    path = folder / EMPTY.file_name
    quorum = parse_state(path.read_bytes(), str(path)).quorum if path.exists() else Quorum()
    write_snapshot(path, 0, first, 0, quorum, sync=True)


@pytest.mark.parametrize(
    ("changed", "how", "sentence"),
    [
        ({}, ("-N",), "configures a broker that is a cluster by itself, with one voter: use --standalone"),
        ({}, ("-I", "7@h:1:AAAAAAAAAAAAAAAAAAAAgA"), "with one voter: use --standalone"),
        ({"log_dirs": None}, ("-s",), "log.dirs is not set"),
    ],
)
def test_a_single_node_cluster_rejects_contradicting_settings(
    tmp_path: Path, changed: dict[str, str], how: tuple[str, ...], sentence: str
) -> None:
    assert sentence in formatted(properties(tmp_path, **LONE | changed), *how)
    assert not (tmp_path / "data").exists()


def test_a_directory_of_no_cluster_is_not_joined_with(tmp_path: Path) -> None:
    result = ottla("broker", "--config", properties(tmp_path))
    assert result.status == 1
    assert "has no meta.properties" in result.err
    assert "ottla storage format" in result.err


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"controller_quorum_bootstrap_servers": "here"}, "'here' must be HOST:PORT"),
        ({"listeners": "PLAINTEXT://0.0.0.0:0"}, "set advertised.listeners = PLAINTEXT://HOST:PORT"),
        (
            {"listener_security_protocol_map": "CONTROLLER:SASL_SSL,PLAINTEXT:PLAINTEXT"},
            "sasl.mechanism.controller.protocol = GSSAPI is Kerberos, by Kafka's default, and needs keys",
        ),
    ],
)
def test_settings_that_cannot_be_joined_with_are_refused(tmp_path: Path, changed: dict[str, str], says: str) -> None:
    result = ottla("broker", "--config", properties(tmp_path, **changed))
    assert result.status == 2
    assert says in result.err


def test_without_a_responding_controller_the_error_names_what_to_check(tmp_path: Path) -> None:
    file = properties(tmp_path, initial_broker_registration_timeout_ms="200")
    format_for(file)
    result = ottla("broker", "--config", file)
    assert result.status == 1
    assert "no controller has registered broker 7" in result.err
    assert "controller.quorum.bootstrap.servers" in result.err


def controller(folder: Path, **changed: str | None) -> Path:
    """The settings of a controller."""
    settings: dict[str, str | None] = {
        "process_roles": "controller",
        "controller_quorum_bootstrap_servers": NO_ENTITY,
        "listeners": "CONTROLLER://127.0.0.1:9093",
        "listener_security_protocol_map": "CONTROLLER:PLAINTEXT",
    }
    return properties(folder, **settings | changed)


def formatted(file: Path, *how: str) -> str:
    """Format with this file in this process and return the output."""
    return CliRunner().invoke(storage, ["format", "-t", CLUSTER, "-c", str(file), *how]).output


def voters_in(folder: Path) -> dict[int, str]:
    """Return the voters of a directory's first checkpoint with their addresses."""
    reported = read_state(folder / "data" / "__cluster_metadata-0", EMPTY).quorum
    assert reported.version == b"\0\0\0\1\0"
    record: Any = decode_control(6, reported.voters or b"")
    return {each.voter_id: f"{each.endpoints[0].host}:{each.endpoints[0].port}" for each in record.voters}


def test_a_controller_starts_as_the_only_voter_or_as_one_of_several(tmp_path: Path) -> None:
    assert (
        formatted(controller(tmp_path), "--standalone")
        == f"formatted {tmp_path}/data for node 7 of cluster {CLUSTER}\n"
    )
    assert voters_in(tmp_path) == {7: "127.0.0.1:9093"}

    several = tmp_path / "several"
    several.mkdir()
    directory = "AAAAAAAAAAAAAAAAAAAAcA"
    listed = f"7@127.0.0.1:9093:{directory},8@[::1]:9094:AAAAAAAAAAAAAAAAAAAAgA"
    assert "formatted" in formatted(controller(several), "--initial-controllers", listed)
    assert voters_in(several) == {7: "127.0.0.1:9093", 8: "::1:9094"}
    assert f"directory.id={directory}\n" in (several / "data" / "meta.properties").read_text()


def test_a_controller_that_is_added_later_or_named_by_settings_is_formatted_without_voters(tmp_path: Path) -> None:
    assert "formatted" in formatted(controller(tmp_path), "--no-initial-controllers")
    fixed = tmp_path / "fixed"
    fixed.mkdir()
    assert "formatted" in formatted(controller(fixed, controller_quorum_voters="7@127.0.0.1:9093"))
    for folder in (tmp_path, fixed):
        assert not (folder / "data" / "__cluster_metadata-0").exists()


@pytest.mark.parametrize(
    ("changed", "how", "sentence"),
    [
        ({}, (), "no voters given: use one of --standalone"),
        ({}, ("--standalone", "-N"), "no voters given: use one of --standalone"),
        ({"controller_quorum_voters": "7@h:1"}, ("--standalone",), "controller.quorum.voters defines the voters"),
        ({"controller_quorum_voters": "8@h:1"}, (), "node.id = 7 is not among them"),
        ({"controller_quorum_voters": "h:1"}, (), "'h:1' must be ID@HOST:PORT"),
        ({}, ("-I", "8@h:1:AAAAAAAAAAAAAAAAAAAAgA"), "node.id = 7 is not among them"),
        ({}, ("-I", "7@h:1"), "'7@h:1' must be ID@HOST:PORT:DIRECTORY_ID"),
        ({}, ("-I", "7@h:1:short"), "the directory id 'short' of node 7 cannot be"),
        ({}, ("-I", "7@h:1:AAAAAAAAAAAAAAAAAAAAYw"), "it is one of Kafka's marks, and no broker gets in with it"),
        ({}, ("-I", "7@h:1:A,7@h:2:B"), "each node votes once"),
        (
            {},
            ("-I", "7@h:1:AAAAAAAAAAAAAAAAAAAAgA,8@h:2:AAAAAAAAAAAAAAAAAAAAgA"),
            "AAAAAAAAAAAAAAAAAAAAgA is the directory of two voters",
        ),
        (
            {"listeners": "CONTROLLER://0.0.0.0:9093"},
            ("--standalone",),
            "set advertised.listeners = CONTROLLER://HOST:PORT",
        ),
        (
            {"listeners": "OTHER://127.0.0.1:9093", "listener_security_protocol_map": "OTHER:PLAINTEXT"},
            ("-s",),
            "it must name OTHER",
        ),
        ({"log_dirs": None}, ("-s",), "log.dirs is not set: a controller needs a directory that was formatted"),
    ],
)
def test_a_controller_that_could_not_vote_gets_an_error_with_the_reason(
    tmp_path: Path, changed: dict[str, str], how: tuple[str, ...], sentence: str
) -> None:
    assert sentence in formatted(controller(tmp_path, **changed), *how)
    assert not (tmp_path / "data").exists()


def test_a_controller_without_known_voters_does_not_start(tmp_path: Path) -> None:
    formatted(controller(tmp_path), "--no-initial-controllers")
    result = ottla(
        "broker",
        "--config",
        controller(tmp_path, controller_quorum_bootstrap_servers="", listeners="CONTROLLER://127.0.0.1:0"),
    )
    assert "no voters are configured" in result.sentence


ALICE = "SCRAM-SHA-256=[name=alice,password=secret]"


def begins_with(folder: Path) -> list[Any]:
    """Return the bootstrap records of the cluster's log."""
    return read_bootstrap(folder / "data")


def levels_in(folder: Path) -> dict[str, int]:
    return {each.name: each.feature_level for each in begins_with(folder) if isinstance(each, FeatureLevelRecord)}


def test_no_bootstrap_records_are_written_without_options(tmp_path: Path) -> None:
    formatted(controller(tmp_path), "-s")
    assert begins_with(tmp_path) == []


@pytest.mark.parametrize(
    ("how", "levels"),
    [
        (("-r", "3.9"), {"metadata.version": 21}),
        (("-r", "4.0-IV1"), {"metadata.version": 23, "group.version": 1}),
        (("-r", "4.0.1"), {"metadata.version": 25, "group.version": 1, "transaction.version": 2}),
        (
            ("--release-version", "4.1", "--feature", "group.version=0", "--feature", "kraft.version=1"),
            {"metadata.version": 27, "transaction.version": 2, ELR_VERSION: 1},
        ),
        (("-f", "metadata.version=22", "-f", "share.version=0"), {"metadata.version": 22, "group.version": 1}),
        (
            ("-f", "transaction.version=1"),
            {
                "metadata.version": 33,
                "group.version": 1,
                "share.version": 2,
                "streams.version": 1,
                "transaction.version": 1,
                ELR_VERSION: 1,
            },
        ),
        (
            ("-S", ALICE),
            {
                "metadata.version": 33,
                "group.version": 1,
                "share.version": 2,
                "streams.version": 1,
                "transaction.version": 2,
                ELR_VERSION: 1,
            },
        ),
        (
            ("-r", "4.3"),
            {
                "metadata.version": 30,
                "group.version": 1,
                "share.version": 1,
                "streams.version": 1,
                "transaction.version": 2,
                ELR_VERSION: 1,
            },
        ),
        (
            ("-r", "4.4"),
            {
                "metadata.version": 33,
                "group.version": 1,
                "share.version": 2,
                "streams.version": 1,
                "transaction.version": 2,
                ELR_VERSION: 1,
            },
        ),
        (
            ("-r", "4.4-IV0"),
            {
                "metadata.version": 31,
                "group.version": 1,
                "share.version": 2,
                "streams.version": 1,
                "transaction.version": 2,
                ELR_VERSION: 1,
            },
        ),
        (
            ("-r", "4.2", "-f", "share.version=2", "-f", "group.version=0"),
            {
                "metadata.version": 29,
                "share.version": 2,
                "streams.version": 1,
                "transaction.version": 2,
                ELR_VERSION: 1,
            },
        ),
    ],
)
def test_a_cluster_starts_with_the_requested_features(
    tmp_path: Path, how: tuple[str, ...], levels: dict[str, int]
) -> None:
    assert "formatted" in formatted(controller(tmp_path), "-s", *how)
    assert levels_in(tmp_path) == levels


def test_users_given_at_format_can_log_in_from_the_start(tmp_path: Path) -> None:
    bob = 'SCRAM-SHA-512=[name=bob,password="a,]b",iterations=8192]'
    formatted(controller(tmp_path), "-s", "--add-scram", ALICE, "--add-scram", bob)
    first, second = begins_with(tmp_path)[-2:]
    for record, name, mechanism, password, iterations in (
        (first, "alice", "SCRAM-SHA-256", "secret", 4096),
        (second, "bob", "SCRAM-SHA-512", "a,]b", 8192),
    ):
        kept = ScramCredential(record.salt, record.stored_key, record.server_key, record.iterations)
        assert (record.name, MECHANISMS[record.mechanism], record.iterations) == (name, mechanism, iterations)
        assert is_password(mechanism, kept, password)


def test_a_salted_password_is_accepted(tmp_path: Path) -> None:
    salt = b"salt that somebody drew"
    salted = stretched("sha256", b"secret", salt, 4096)
    encoded = {name: base64.b64encode(value).decode() for name, value in (("salt", salt), ("salted", salted))}
    with_password = f"SCRAM-SHA-256=[name=alice,password=secret,salt={encoded['salt']}]"
    without = f"SCRAM-SHA-256=[name=bob,saltedpassword={encoded['salted']},salt={encoded['salt']}]"
    formatted(controller(tmp_path), "-s", "-S", with_password, "-S", without)
    alice, bob = begins_with(tmp_path)[-2:]
    assert (alice.salt, alice.stored_key, alice.server_key) == (bob.salt, bob.stored_key, bob.server_key)
    assert is_password("SCRAM-SHA-256", ScramCredential(bob.salt, bob.stored_key, bob.server_key, 4096), "secret")


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        (("-r", "3.6"), "--release-version '3.6' is none of 3.7, 3.8, 3.9, 4.0, 4.1, 4.2, 4.3, 4.4"),
        (
            ("-r", "4.3-IV1"),
            "--release-version '4.3-IV1' is none of 3.7, 3.8, 3.9, 4.0, 4.1, 4.2, 4.3, 4.4, nor of 3.7-IV4 to 4.4-IV2",
        ),
        (("-S", "SCRAM-SHA-256=[name=a,saltedpassword=aGlkZGVu]"), "saltedpassword requires salt"),
        (("-S", "SCRAM-SHA-256=[name=a,password=hidden,saltedpassword=aGlkZGVu,salt=aGk=]"), "and excludes password"),
        (
            ("-S", "SCRAM-SHA-256=[name=a,saltedpassword=aGlkZGVu,salt=aGk=]"),
            "must have 32 bytes for SCRAM-SHA-256, and has 6",
        ),
        (("-S", "SCRAM-SHA-256=[name=a,password=hidden,salt=h!]"), "salt must be bytes in base64"),
        (("-r", "4.3", "-f", "metadata.version=30"), "sets the level of metadata.version already"),
        (("-f", "metadata.version=18"), "--feature metadata.version=18: its level can be 19 to 33 here"),
        (("-f", "metadata.version=34"), "its level can be 19 to 33 here"),
        (("-f", "share.version=3"), "--feature share.version=3: its level can be 0 to 2 here"),
        (("-f", "streams.version=2"), "--feature streams.version=2: its level can be 0 to 1 here"),
        (("-f", "group.vrsion=1"), "there is no such feature; there are eligible.leader.replicas.version, group"),
        (("-f", "group.version"), "invalid value 'group.version' for --feature: expected KEY=VALUE"),
        (("-f", "group.version=one"), "expected a number as level"),
        (("-f", "group.version=1", "-f", "group.version=0"), "group.version is given twice"),
        (("-f", "kraft.version=0"), "it is 1 where the log has the voters; leave it out"),
        (("-r", "3.9", "-f", "eligible.leader.replicas.version=1"), "needs metadata.version 23, and it is 21"),
        (("-S", "alice:hidden"), "--add-scram: must be SCRAM-SHA-256=[name=…"),
        (("-S", "SCRAM-SHA-256=[name=alice,password=hidden,iterations=1]"), "iterations must be 4096 to 16384"),
        (("-S", ALICE, "-S", ALICE), "--add-scram gives 'alice' a password for SCRAM-SHA-256 twice"),
    ],
)
def test_impossible_format_options_are_rejected(tmp_path: Path, how: tuple[str, ...], sentence: str) -> None:
    said = formatted(controller(tmp_path), "-s", *how)
    assert sentence in said
    assert "hidden" not in said
    assert not (tmp_path / "data").exists()


def test_voters_named_by_settings_are_not_written_to_the_log(tmp_path: Path) -> None:
    file = controller(tmp_path, controller_quorum_voters="7@127.0.0.1:9093")
    assert "it is 0 where controller.quorum.voters lists the voters" in formatted(file, "-f", "kraft.version=1")
    assert "formatted" in formatted(file, "-f", "kraft.version=0", "-S", ALICE)


def test_a_formatted_directory_is_left_unchanged_and_reported(tmp_path: Path) -> None:
    file = controller(tmp_path)
    formatted(file, "-s", "-S", ALICE)
    before = {each: each.read_bytes() for each in tmp_path.rglob("*") if each.is_file()}
    again = ottla("storage", "format", "-t", CLUSTER, "-c", file, "-s", "--ignore-formatted")
    assert (again.status, again.out) == (0, f"skipped {tmp_path}/data: it is formatted already\n")
    assert before == {each: each.read_bytes() for each in tmp_path.rglob("*") if each.is_file()}

    file = controller(tmp_path, log_dirs=f"{tmp_path}/data,{tmp_path}/more")
    assert "skip it with --ignore-formatted" in formatted(file, "-s")
    assert not (tmp_path / "more").exists()
    assert f"formatted {tmp_path}/more for node 7" in formatted(file, "-s", "-g")
    assert "node.id=7" in (tmp_path / "more" / "meta.properties").read_text()


def test_a_directory_formatted_for_another_node_is_not_ignored(tmp_path: Path) -> None:
    formatted(controller(tmp_path), "-s")
    assert "belongs to node 7, this is node 8" in formatted(controller(tmp_path, node_id="8"), "-s", "-g")


def test_a_partly_formatted_directory_is_formatted_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = controller(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(meta_properties, "replace_file", crash)
        formatted(file, "-s", "-S", ALICE)
    assert not (tmp_path / "data" / "meta.properties").exists()
    assert voters_in(tmp_path) == {7: "127.0.0.1:9093"}
    assert "formatted" in formatted(controller(tmp_path, listeners="CONTROLLER://127.0.0.1:9094"), "-s", "-g")
    assert (voters_in(tmp_path), begins_with(tmp_path)) == ({7: "127.0.0.1:9094"}, [])


def crash(*_: object) -> None:
    raise OSError


def test_a_directory_without_the_named_voters_is_not_ignored(tmp_path: Path) -> None:
    file = controller(tmp_path)
    formatted(file, "--no-initial-controllers")
    assert "was formatted without voters, and now voters are given" in formatted(file, "-s", "-g")


def test_a_log_with_records_is_not_formatted(tmp_path: Path) -> None:
    file = controller(tmp_path)
    formatted(file, "-s")
    log = tmp_path / "data" / "__cluster_metadata-0" / f"{0:020}.log"
    log.write_bytes(b"records")
    (tmp_path / "data" / "meta.properties").unlink()
    assert "holds logs, such as __cluster_metadata-0" in formatted(file, "-s", "-g")
    assert log.exists()


def test_info_prints_the_owners_and_the_faults_of_directories(tmp_path: Path) -> None:
    file = controller(tmp_path, log_dirs=f"{tmp_path}/data,{tmp_path}/more")
    none = ottla("storage", "info", "-c", file)
    assert (none.status, none.out.count("does not exist"), none.err) == (1, 2, "")
    formatted(file, "-s")
    whole = ottla("storage", "info", "-c", file, "--json")
    first, second = json.loads(whole.out)
    assert (whole.status, first["node"], first["cluster"], first["problem"]) == (0, 7, CLUSTER, None)
    assert f"directory.id={second['directory_id']}\n" in (tmp_path / "more" / "meta.properties").read_text()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (None, "is not formatted"),
        ("version=1\nnode.id=8\ncluster.id=c\n", "belongs to node 8, but node.id is 7"),
        ("version=1\nnode.id=7\ncluster.id=c\n", "belongs to another cluster than the first"),
        ("version=1\nnode.id=seven\ncluster.id=c\n", "is damaged"),
        ("version=0\n", "has version 0, expected 1"),
    ],
)
def test_info_names_a_directory_that_does_not_fit(tmp_path: Path, text: str | None, problem: str) -> None:
    file = controller(tmp_path, log_dirs=f"{tmp_path}/data,{tmp_path}/more")
    formatted(file, "-s")
    meta = tmp_path / "more" / "meta.properties"
    meta.unlink()
    if text is not None:
        meta.write_text(text)
    result = CliRunner().invoke(storage, ["info", "-c", str(file)])
    assert (result.exit_code, problem in result.output) == (1, True)


def test_a_broker_without_reachable_controllers_logs_their_addresses_and_reasons(tmp_path: Path) -> None:
    ports = [free_port(), free_port()]
    file = tmp_path / "server.properties"
    file.write_text(
        "process.roles=broker\nnode.id=7\nlisteners=PLAINTEXT://127.0.0.1:0\ncontroller.listener.names=CONTROLLER\n"
        f"controller.quorum.bootstrap.servers=127.0.0.1:{ports[0]},127.0.0.1:{ports[1]}\nlog.dirs={tmp_path / 'data'}\n"
    )
    assert ottla("storage", "format", "-t", "AAAAAAAAAAAAAAAAAAAAAQ", "-c", file).status == 0
    process = start("broker", "--config", file)
    assert process.stderr is not None
    line = next(line for line in process.stderr if "no controller has answered" in line)
    process.terminate()
    process.communicate(timeout=PATIENCE)
    for port in ports:
        assert f"127.0.0.1:{port}: connection refused" in line
    assert "start the controllers, or correct controller.quorum.bootstrap.servers" in line


def test_a_command_that_is_given_the_address_of_a_controller_says_so(tmp_path: Path) -> None:
    port = free_port()
    file = tmp_path / "controller.properties"
    file.write_text(
        f"process.roles=controller\nnode.id=1\nlisteners=CONTROLLER://127.0.0.1:{port}\n"
        f"controller.listener.names=CONTROLLER\nlog.dirs={tmp_path / 'data'}\n"
        f"controller.quorum.bootstrap.servers=127.0.0.1:{port}\n"
    )
    assert ottla("storage", "format", "-t", "AAAAAAAAAAAAAAAAAAAAAQ", "-c", file, "--standalone").status == 0
    process = start("broker", "--config", file)
    assert process.stdout is not None
    assert process.stdout.readline().startswith("ready ")
    refused = ottla("cluster", "quorum", "--bootstrap-server", f"127.0.0.1:{port}")
    process.terminate()
    process.communicate(timeout=PATIENCE)
    assert refused.status == 1
    assert "is a listener of a controller: name one of a broker in bootstrap.servers" in refused.sentence
