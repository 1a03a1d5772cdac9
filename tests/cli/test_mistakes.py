"""A mistake is one sentence and an exit status, never a traceback."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from ottla import __version__
from ottla.cli.main import main
from ottla.model import Part
from ottla.network import Selector
from ottla.protocol.conversation import decode_header, decode_request, encode_response
from ottla.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from ottla.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from tests.cli.conftest import ottla


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("brokr", "unknown command 'brokr'; did you mean 'broker'?"),
        ("topics creat x", "unknown command 'creat'; did you mean 'create'?"),
        ("log-dirs", "unknown command 'log-dirs'; did you mean 'ottla cluster log-dirs'?"),
        ("kafka-consumer-groups.sh --list", "did you mean 'ottla groups'?"),
        ("topics --list", "unknown option '--list'; did you mean the command 'ottla topics list'?"),
        ("acls --add --topic t", "unknown option '--add'; did you mean the command 'ottla acls create'?"),
        ("groups watch -g a b", "the group is given twice: 'b' and -g 'a'"),
        ("--versoin", "unknown option '--versoin'; did you mean '--version'?"),
        ("bench produce --records 5", "unknown option '--records'; did you mean '--num-records'?"),
        ("broker --log-dirs /data", "unknown option '--log-dirs'; did you mean '--data-dir'?"),
        ("consume t -c 1", "unknown option '-c'; did you mean '--max-messages'?"),
        ("broker --port 9092", "unknown option '--port'; did you mean '--listen HOST:PORT'?"),
        ("consume t --property print.key=true", "unknown option '--property'; did you mean '--keys'?"),
        ("produce t --property parse.key=true", "unknown option '--property'; did you mean '--key-separator'?"),
        ("produce t --producer-property acks=1", "unknown option '--producer-property'; did you mean '--set'?"),
        ("log check data", "unknown command 'check'; there are dump, repair, verify (see ottla log --help)"),
        ("certificates create", "unknown command 'create'; there are authority, client, server"),
        ("produce t --key-separator", "option '--key-separator' requires an argument (see ottla produce --help)"),
        ("topics create --partitions", "option '--partitions' requires an argument (see ottla topics create --help)"),
        ("topics create", "missing argument 'NAME...' (see ottla topics create --help)"),
        (
            "consume t -o newest",
            "invalid value 'newest' for --offset: expected an offset of --partition, beginning, end,",
        ),
        ("consume t -o -5 --tail 5", "--from-beginning, --offset, --tail and --from-time exclude each other"),
        ("consume t -n x", "'--max-messages': 'x' is not a whole number"),
        ("groups list --state stabel", "unknown state 'stabel'; did you mean 'Stable'? There are PreparingRebalance, "),
        ("groups list --type consumers", "unknown type 'consumers'; did you mean 'consumer'? There are classic, "),
        ("produce t hello", "records are lines of standard input, as in echo hello | ottla produce TOPIC"),
        ("produce t --bootstrap-sever x:1", "did you mean '--bootstrap-server'?"),
        ("produce", "missing argument 'TOPIC'"),
        ("topics create", "missing argument 'NAME...'"),
        ("topics create t --partitions 0", "invalid value for '--partitions'"),
        ("topics create t --config x", "invalid value 'x' for --config: expected KEY=VALUE"),
        ("produce t --compression-type zip", "invalid value for '--compression-type'"),
        ("produce t --set linger.sm=5", "unknown setting 'linger.sm'; did you mean 'linger.ms'?"),
        ("produce t --set acks=2", "acks = '2': must be one of all, 0, 1"),
        ("produce t --bootstrap-server nowhere:x", "bootstrap.servers = 'nowhere:x'"),
        ("consume t --offset 3", "--offset needs --partition"),
        ("consume t --offset 3 --partition 0 --from-beginning", "exclude each other"),
        ("consume t --set group.protocol=x", "group.protocol = 'x': must be one of classic, consumer"),
        ("broker --data-dir=", "--data-dir is empty: expected a directory"),
        ("broker --listen nowhere", "listeners = 'nowhere': must be host:port"),
        ("broker --set num.partition=3", "unknown setting 'num.partition'; did you mean 'num.partitions'?"),
        ("broker --set num.partitions=many", "num.partitions = 'many': must be a whole number"),
        ("broker --set a", "invalid value 'a' for --set: expected KEY=VALUE"),
        (
            "broker --listen 127.0.0.1:0 --set listeners=127.0.0.1:1",
            "--listen and --set listeners have different values",
        ),
    ],
)
def test_a_usage_error_is_one_line_and_status_2(command: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(command.split()) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("ottla: ")
    assert err.count("\n") == 1
    assert words in err
    assert "--help" in err


@pytest.mark.parametrize("command", ["", "--help", "topics", "topics list --help", "broker --help", "consume --help"])
def test_help_is_printed_on_request(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(command.split()) == 0
    out, err = capsys.readouterr()
    assert out.startswith("Usage: ottla")
    assert err == ""


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"ottla {__version__}\n"


@pytest.mark.parametrize("verb", [["topics", "list"], ["groups", "list"], ["produce", "t"], ["consume", "t"]])
def test_an_unreachable_broker_is_reported_with_address_and_setting(verb: list[str]) -> None:
    setting = "max.block.ms" if verb[0] == "produce" else "default.api.timeout.ms"
    with socket.socket() as held:  # the port stays reserved, and connections to it are refused
        held.bind(("127.0.0.1", 0))
        where = f"127.0.0.1:{held.getsockname()[1]}"
        result = ottla(*verb, "--bootstrap-server", where, "--set", f"{setting}=300", stdin="x\n")
    assert result.status == 1
    assert f"{where} (from bootstrap.servers): connection refused" in result.sentence
    assert setting in result.sentence


@pytest.mark.parametrize("verb", [["topics", "list"], ["groups", "list"], ["produce", "t"], ["consume", "t"]])
def test_an_http_server_is_distinguished_from_a_kafka_broker(verb: list[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        where = f"127.0.0.1:{listener.getsockname()[1]}"
        threading.Thread(target=answer_in_http, args=(listener,), daemon=True).start()
        result = ottla(*verb, "--bootstrap-server", where, stdin="x\n")
        listener.shutdown(socket.SHUT_RDWR)
    assert result.status == 1
    assert result.sentence.startswith(f"not a Kafka broker: {where} ")
    assert "it speaks HTTP" in result.sentence


def answer_in_http(listener: socket.socket) -> None:
    """Answer every connection with an HTTP error."""
    while True:
        try:
            sock, _ = listener.accept()
        except OSError:
            return
        with sock:
            sock.recv(1000)
            sock.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")


@pytest.mark.parametrize("verb", [["topics", "list"], ["groups", "list"], ["produce", "t"], ["consume", "t"]])
def test_a_kafka_that_is_too_old_is_reported(verb: list[str]) -> None:
    with old_kafka() as where:
        result = ottla(*verb, "--bootstrap-server", where, stdin="x\n")
    assert result.status == 1
    assert f"{where} speaks " in result.sentence
    assert "its Kafka is too old" in result.sentence


OLD_VERSIONS = {0: 2, 1: 2, 2: 1, 3: 1, 18: 0}
"""The API keys of Kafka 0.10 and their newest versions."""


@contextmanager
def old_kafka() -> Iterator[str]:
    """A cluster of one broker of an old version, which has every topic."""

    def answer(frame: memoryview, port: int) -> list[Part]:
        header, _ = decode_header(frame)
        if header.api_key == ApiVersionsRequest.KEY:
            spoken = [ApiVersion(api_key=key, min_version=0, max_version=last) for key, last in OLD_VERSIONS.items()]
            response = ApiVersionsResponse(error_code=35 * (header.api_version > 0), api_keys=spoken)
            return encode_response(response, 0, header.correlation_id)
        _, request = decode_request(frame)
        broker = MetadataResponseBroker(node_id=1, host="127.0.0.1", port=port)
        partition = MetadataResponsePartition(leader_id=1, replica_nodes=[1], isr_nodes=[1])
        topics = [MetadataResponseTopic(name=topic.name, partitions=[partition]) for topic in request.topics or ()]
        metadata = MetadataResponse(brokers=[broker], controller_id=1, topics=topics)
        return encode_response(metadata, header.api_version, header.correlation_id)

    selector = Selector()
    port = selector.listen("127.0.0.1", 0).address[1]
    ended = threading.Event()

    def serve() -> None:
        while not ended.is_set():
            selector.poll(None)
            for channel, frame in selector.completed_receives:
                selector.send(channel, answer(frame, port))

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        ended.set()
        selector.wakeup()
        thread.join()
        selector.close_all()


@pytest.mark.parametrize("verb", [["topics", "list"], ["groups", "list"], ["produce", "t"], ["consume", "t"]])
def test_an_address_that_refuses_connections_fails_soon(verb: list[str]) -> None:
    with socket.socket() as held:  # the port stays reserved, and connections to it are refused
        held.bind(("127.0.0.1", 0))
        where = f"127.0.0.1:{held.getsockname()[1]}"
        result = ottla(*verb, "--bootstrap-server", where, stdin="x\n")
    assert result.status == 1
    assert result.sentence == (
        f"no Kafka broker at {where}: connection refused; start one there (ottla broker), or name another address in "
        "bootstrap.servers (--bootstrap-server of commands)"
    )


@pytest.mark.parametrize("verb", [["topics", "list"], ["produce", "t"], ["context", "add", "x"]])
def test_a_password_in_an_address_is_not_repeated(verb: list[str]) -> None:
    result = ottla(*verb, "--bootstrap-server", "alice:s3cret@kafka.example.org:9092", stdin="x\n")
    assert result.status == 2
    assert "s3cret" not in result.err
