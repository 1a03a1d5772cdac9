"""Common first steps of transcripts of classic groups. The output of each step is compared every time.

`options` are those of every join, such as `session=60`.
"""

from __future__ import annotations


def one_joined(options: str = "") -> str:
    """A client of before KIP-394, which is a member at once, leads generation 1."""
    return f"""
        join a version=3 range=t {options}
        because m1 joins
        a: m1 in 1 by range led by m1 of m1
        CompletingRebalance 1: m1*
    """


def one_stable(options: str = "", part: str = "A") -> str:
    """It has given itself everything."""
    return f"""{one_joined(options)}
        sync m1 gen=1 m1={part}
        keep generation 1 m1={part}
        m1: has {part}
        Stable 1: m1*
    """


def two_joining(options: str = "") -> str:
    """A second one waits for the first to join again."""
    return f"""{one_joined(options)}
        join b version=3 range=t {options}
        because m2 joins
        PreparingRebalance 1: m1* m2+
    """


def two_joined(options: str = "") -> str:
    """Generation 2 has both."""
    return f"""{two_joining(options)}
        join m1 range=t {options}
        m1: m1 in 2 by range led by m1 of m1,m2
        b: m2 in 2 by range led by m1
        CompletingRebalance 2: m1* m2
    """


def two_assigned(options: str = "") -> str:
    """The leader has sent the assignment, and the other member has not requested it yet."""
    return f"""{two_joined(options)}
        sync m1 gen=2 m1=A m2=B
        keep generation 2 m1=A m2=B
        m1: has A
        Stable 2: m1* m2
    """


def two_stable(options: str = "") -> str:
    """Both have their part."""
    return f"""{two_assigned(options)}
        sync m2 gen=2 → m2: has B
    """


def one_left_alone(options: str = "") -> str:
    """The only member has left, and the group keeps what it committed."""
    return f"""{one_stable(options)}
        leave m1
        keep generation 2
        because m1 left by LeaveGroup
        m1: NONE
        Empty 2
    """


def one_awaited(options: str = "") -> str:
    """The first rebalance of a group waits for others."""
    return f"""
        join a version=3 range=t {options}
        because m1 joins
        PreparingRebalance 0: m1*+
    """


def static_joined(options: str = "") -> str:
    """Instance i leads generation 1."""
    return f"""
        join a static=i range=t {options}
        because m1, which is instance i, joins
        a: m1 in 1 by range led by m1 of m1
        CompletingRebalance 1: m1*
    """


def static_stable(options: str = "") -> str:
    """It has given itself everything."""
    return f"""{static_joined(options)}
        sync m1 gen=1 static=i m1=A
        keep generation 1 m1=A
        m1: has A
        Stable 1: m1*
    """


def two_static_joining(options: str = "") -> str:
    """Instance j waits for it to join again."""
    return f"""{static_stable(options)}
        join b static=j range=t {options}
        because m2, which is instance j, joins
        PreparingRebalance 1: m1* m2+
    """
