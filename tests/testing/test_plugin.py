"""The pytest plugin, in runs of pytest as users have them."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys

import pytest

from ottla.testing import Topic, assert_records
from tests.testing.pages import conftests_of, examples_of

PLUGIN = 'pytest_plugins = ["ottla.testing.plugin"]\n'


def run(pytester: pytest.Pytester, tests: str, conftest: str = "") -> pytest.RunResult:
    pytester.makeconftest(PLUGIN + conftest)
    pytester.makepyfile("import pytest\nfrom ottla.testing import assert_records\n\n\n" + tests)
    return pytester.runpytest_subprocess("-p", "no:xdist", "-W", "error", timeout=120)


def test_each_test_has_a_topic_of_its_own_on_one_broker(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
seen = []

@pytest.mark.parametrize("word", ["a b", "c/d"])
def test_it(word, ottla_broker, ottla_topic, ottla_producer):
    ottla_producer.send(ottla_topic, word.encode())
    assert_records(ottla_topic, [word])
    seen.append((ottla_broker.bootstrap_servers, ottla_topic))

def test_after(ottla_admin):
    (one, first), (other, second) = seen
    assert one == other
    assert not {first, second} & set(ottla_admin.list_topics())
""",
    )
    result.assert_outcomes(passed=3)


def test_a_test_may_delete_its_topic_and_close_the_broker(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
def test_deletes(ottla_admin, ottla_topic):
    ottla_admin.delete_topics([ottla_topic])

def test_closes(ottla_broker, ottla_topic):
    ottla_broker.close()

def test_after(ottla_topic, ottla_producer):
    ottla_producer.send(ottla_topic, b"a").result(20)
""",
    )
    result.assert_outcomes(passed=3)


def test_a_consumer_reads_what_was_sent_and_a_producer_has_sent_all(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
@pytest.mark.parametrize("ottla_topic", [3], indirect=True)
def test_it(ottla_topic, ottla_producer, ottla_consumer):
    assert len(ottla_consumer.partitions_for(ottla_topic)) == 3
    for number in range(9):
        ottla_producer.send(ottla_topic, b"%d" % number, key=b"%d" % number)
    found = []
    while len(found) < 9:
        found += [int(each.value) for each in ottla_consumer.poll(1)]
    assert sorted(found) == list(range(9))
    assert_records(ottla_topic, [(str(each), each) for each in reversed(range(9))])
    mixed = [(b"0", b"0"), ("1", 1), 2, b"3", "4", *range(5, 9)]
    assert_records(ottla_topic, mixed)
    with pytest.raises(AssertionError, match="9 records, 9 expected"):
        assert_records(ottla_topic, [*mixed[:-1], 9])
""",
    )
    result.assert_outcomes(passed=1)


def test_other_clients_use_the_broker_also_with_tls_and_a_login(pytester: pytest.Pytester) -> None:
    example = next(block for block in examples_of("testing.md") if "confluent_kafka" in block)
    in_other_words = """

@pytest.mark.filterwarnings("ignore:.*is deprecated. Use files:DeprecationWarning")
def test_kafka_python(login, ottla_topic):
    from kafka import KafkaProducer

    producer = KafkaProducer(**login)
    producer.send(str(ottla_topic), b"order 1").get(30)
    producer.close()
    assert_records(ottla_topic, ["order 1"])


def test_aiokafka(login, ottla_topic):
    import asyncio

    from aiokafka import AIOKafkaProducer

    async def send():
        async with AIOKafkaProducer(**login) as producer:
            await producer.send_and_wait(ottla_topic, b"order 1")

    asyncio.run(send())
    assert_records(ottla_topic, ["order 1"])
"""
    with_tls, in_words = conftests_of("testing.md")
    result = run(pytester, example + in_other_words, with_tls + in_words)
    result.assert_outcomes(passed=3)


def test_a_topic_may_be_created_while_its_records_are_awaited(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
import threading

def test_it(ottla_broker, ottla_producer):
    with ottla_broker.faults.delay("Produce", ms=300):
        threading.Thread(target=lambda: ottla_producer.send("created-late", b"a")).start()
        assert_records("created-late", ["a"])

def test_missing(ottla_broker, ottla_admin):
    with pytest.raises(AssertionError, match="nowhere does not exist, after 0.1 s"):
        assert_records("nowhere", ["a"], timeout=0.1)
    assert "nowhere" not in ottla_admin.list_topics()
""",
    )
    result.assert_outcomes(passed=2)


def test_differences_from_the_expected_records_are_shown_line_by_line(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
def test_it(ottla_topic, ottla_producer):
    for value in (b"a", b"x", b"c"):
        ottla_producer.send(ottla_topic, value)
    ottla_producer.flush()
    assert_records(ottla_topic, ["a", "b", "c", "d"], timeout=0.3)

def test_more(ottla_topic, ottla_producer):
    ottla_producer.send(ottla_topic, b"a").result()
    ottla_producer.send(ottla_topic, None, key=b"k").result()
    ottla_producer.send(ottla_topic, b"z").result()
    assert_records(ottla_topic, ["a"])
""",
    )
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(
        [
            "*has 3 records, 4 expected, after 0.3 s (- expected, + found):",
            "*  'a'",
            "*- 'b'",
            "*+ 'x'",
            "*  'c'",
            "*- 'd'",
            "*has 3 records, 1 expected (- expected, + found):",
            "*  'a'",
            "*+ None",
            "*+ 'z'",
        ]
    )


def test_a_name_is_refused_with_the_remedy_where_no_broker_runs(pytester: pytest.Pytester) -> None:
    result = run(pytester, "def test_it():\n    assert_records('orders', [])\n")
    result.stdout.fnmatch_lines(["*assert_records needs a topic of ottla_topic or ottla_topics*'orders'*"])


def test_several_topics_are_created_by_name_and_deleted_after_the_test(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
@pytest.mark.parametrize("turn", [1, 2])
def test_it(turn, ottla_topics, ottla_producer, ottla_admin):
    orders = ottla_topics("orders", partitions=3, configs={"retention.ms": "60000"})
    ottla_topics("bills")
    ottla_topics("gone")
    ottla_admin.delete_topics(["gone"])
    ottla_producer.send("orders", b"%d" % turn)
    ottla_producer.send("bills", b"bill")
    assert_records(orders, [str(turn)])
    assert_records("bills", ["bill"])
    with pytest.raises(AssertionError, match="bills has 1 record, 2 expected"):
        assert_records("bills", ["bill", "another"], timeout=0.1)
    assert len(ottla_admin.describe_topics(["orders"])["orders"].partitions) == 3

def test_after(ottla_admin):
    assert not {"orders", "bills", "gone"} & set(ottla_admin.list_topics())
""",
    )
    result.assert_outcomes(passed=3)


def test_the_plugin_is_loaded_by_an_option_in_pyproject_and_by_both_ways_at_once(pytester: pytest.Pytester) -> None:
    pytester.makepyprojecttoml("[tool.pytest.ini_options]\naddopts = '-p ottla.testing'\n")
    pytester.makepyfile("def test_it(ottla_topic):\n    pass\n")
    pytester.runpytest_subprocess("-p", "no:xdist", "-W", "error", timeout=120).assert_outcomes(passed=1)
    pytester.makeconftest(PLUGIN)
    pytester.runpytest_subprocess("-p", "no:xdist", "-W", "error", timeout=120).assert_outcomes(passed=1)


def test_the_option_loads_no_broker_if_no_test_requests_one(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("import sys\n\ndef test_it():\n    assert 'ottla.broker' not in sys.modules\n")
    result = pytester.runpytest_subprocess("-p", "no:xdist", "-p", "ottla.testing", "-W", "error", timeout=120)
    result.assert_outcomes(passed=1)


def test_one_text_is_no_list_of_records() -> None:
    with pytest.raises(TypeError, match=r"expects a list of records: \['tea'\] instead of 'tea'"):
        assert_records(Topic("orders", {}), "tea")


def test_a_topic_is_the_same_in_a_copy_and_in_another_process() -> None:
    topic = Topic("orders", {"bootstrap.servers": "127.0.0.1:9092"})
    for other in (copy.deepcopy(topic), pickle.loads(pickle.dumps(topic))):
        assert (other, other.client_settings) == ("orders", {"bootstrap.servers": "127.0.0.1:9092"})


def test_a_project_that_names_the_plugin_and_uses_no_fixture_loads_no_broker() -> None:
    code = "import sys, ottla.testing.plugin; print(sorted(each for each in sys.modules if each.startswith('ottla.')))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "ottla.broker" not in loaded
    assert "ottla.protocol" not in loaded


def test_a_fault_is_over_when_the_test_is(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
def test_it(ottla_broker, ottla_topic, ottla_producer):
    ottla_broker.faults.hang("Produce")
    ottla_producer.send(ottla_topic, b"goes on when the test is over")

def test_after(ottla_broker, ottla_topic, ottla_producer):
    ottla_producer.send(ottla_topic, b"a").result(60)
    assert_records(ottla_topic, ["a"])
""",
    )
    result.assert_outcomes(passed=2)


def test_asynchronous_clients_live_in_the_loop_of_the_test(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
@pytest.fixture
def anyio_backend():
    return "asyncio"

@pytest.mark.anyio
@pytest.mark.parametrize("word", [b"a", b"b"])
async def test_it(word, ottla_topic, ottla_aio_producer, ottla_aio_consumer):
    async with ottla_aio_producer as producer, ottla_aio_consumer as consumer:
        await producer.send(ottla_topic, word)
        async for record in consumer:
            assert record.value == word
            break

def test_one_that_is_not_used_does_no_harm(ottla_aio_producer, ottla_aio_consumer):
    assert len(ottla_aio_consumer.subscription()) == 1
""",
    )
    result.assert_outcomes(passed=3)
