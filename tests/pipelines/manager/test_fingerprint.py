"""What a checkpoint belongs to."""

from __future__ import annotations

from ottla.pipelines.manager.fingerprint import Fingerprint, change, state_of

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


def test_another_source_and_other_state_are_told_and_nothing_else_is() -> None:
    before = Fingerprint("topic a", ("Aggregate [x]",))
    assert change(before, before) is None
    assert change(before, Fingerprint("topic b", before.state)) == "its source was topic a and is topic b"
    told = "its state was kept by Aggregate [x] and would be by nothing"
    assert change(before, Fingerprint("topic a")) == told
    assert Fingerprint.from_json(before.to_json()) == before
