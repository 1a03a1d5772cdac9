"""The fingerprint of a checkpoint."""

from __future__ import annotations

from ottla.pipelines.manager.fingerprint import Fingerprint, find_change, fingerprint_of, state_of

PLAN = """\
Project [minute#12, revenue#13]
+- ~Aggregate [window#20-T10000ms, shop#4L], [window#20.start AS minute#12, sum(amount#7) AS revenue#13]
   +- EventTimeWatermark at#6: timestamp, 10 seconds
      :- Join Inner, (a#1 = b#2)
         +- StreamingRelationV2 ottla
"""


def test_state_is_what_aggregates_and_joins_without_the_numbers_of_a_session() -> None:
    found = state_of(PLAN)
    assert found == (
        "Aggregate [window-T10000ms, shop], [window.start AS minute, sum(amount) AS revenue]",
        "Join Inner, (a = b)",
    )
    assert state_of(PLAN.replace("#12", "#99").replace("#4L", "#8L")) == found


def test_a_plan_without_state_has_none() -> None:
    assert state_of("Project [aggregate#1]\n+- Filter (Join#2 > 1)\n   +- StreamingRelationV2 ottla") == ()


def test_another_source_and_other_state_are_reported_and_nothing_else_is() -> None:
    before = Fingerprint("topic a", ("Aggregate [x]",))
    assert find_change(before, before) is None
    assert find_change(before, Fingerprint("topic b", before.state)) == "its source was topic a and is topic b"
    message = "its state was kept by Aggregate [x] and would be by nothing"
    assert find_change(before, Fingerprint("topic a")) == message
    assert Fingerprint.from_json(before.to_json()) == before


def windowed(line: str) -> str:
    return f"~Aggregate [window#6-T10000ms], [count(1) AS c#4L]\n+- ~{line}\n   +- ~Filter (amount#7 > 60000000)"


CUT = "precisetimestampconversion(at#2-T10000ms, TimestampType, LongType) - 0) % {0}) + {0}"
MINUTE = windowed(f"Project [named_struct(start, {CUT.format(60000000)}) AS window#6-T10000ms, at#2]")
FIVE_MINUTES = windowed(f"Project [named_struct(start, {CUT.format(300000000)}) AS window#6-T10000ms, at#2]")
HOPPING = windowed(f"Expand [[named_struct(start, {CUT.format(60000000)} + 300000000)], at#12345678]")
SESSION = windowed(
    "Project [named_struct(start, precisetimestampconversion(cast(at#2 + cast(5 minutes as interval) as timestamp)))]"
)


def test_windows_are_distinguished_by_their_length_which_the_aggregation_does_not_name() -> None:
    found = [fingerprint_of("topic a", plan) for plan in (MINUTE, FIVE_MINUTES, HOPPING, SESSION)]
    assert [one.windows for one in found] == [("60 s",), ("300 s",), ("300 s every 60 s",), ("5 minutes",)]
    message = "its state was kept by windows of 60 s and would be by windows of 300 s every 60 s"
    assert find_change(found[0], found[2]) == message
    assert find_change(Fingerprint.from_json(found[0].to_json()), found[0]) is None


def test_a_checkpoint_from_before_windows_were_written_down_continues() -> None:
    now = fingerprint_of("topic a", MINUTE)
    known = now.to_json()
    del known["windows"]
    assert find_change(Fingerprint.from_json(known), now) is None
