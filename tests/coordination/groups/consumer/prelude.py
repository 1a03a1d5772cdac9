"""Common first steps of transcripts of consumer groups. The output of each step is compared every time."""

from __future__ import annotations

ONE_STABLE = """
    topics t=2 →

    hello b t
    b: epoch 1 has t-0 t-1
    Stable 1/1: b@1[t-0 t-1]
"""
CLASSIC_AND_THIRD = f"""{ONE_STABLE}
    join a range=t version=3 session=50 rebalance=20
    a: m1 in 2 by range
    Reconciling 2/2: b@1[t-0 t-1] m1~@2[?]

    hello c t
    c: epoch 3 has nothing
    Reconciling 3/3: b@1[t-0 t-1] m1~@2[?] c@3[]
"""
"""A classic member has joined in an epoch that is over."""
GIVEN_BACK = """
    topics t=2 →

    hello a t
    a: epoch 1 has t-0 t-1
    Stable 1/1: a@1[t-0 t-1]

    hello b t
    b: epoch 2 has nothing
    Reconciling 2/2: a@1[t-0 t-1] b@2[?]

    alive a
    a: epoch 1 has t-0
    Reconciling 2/2: a@1[t-0 -t-1] b@2[?]

    alive a owns=t-0
    a: epoch 2
    Reconciling 2/2: a@2[t-0] b@2[?]
"""
"""One member has revoked partitions for another, which has not received them yet."""
