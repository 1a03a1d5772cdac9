"""A checker of the broker's guarantees, in the manner of Jepsen's Kafka workload.

    generator ──► plan ──► workers + faults ──► history ──► verdict
    (seeded)               (real clients,       (JSON       (pure: what was lost, doubled,
                            a real broker)       lines)      seen too early, taken twice …)

`python -m tests.checker --rounds 100 --seed 7` is the long run; `--history FILE` judges a history again.
"""
