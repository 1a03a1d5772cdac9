"""A cluster whose network is split for real: each node in a network namespace of its own, on a switch of this run's.

    faults.py ──► what befalls whom, drawn from a seed     crowd.py ──► who writes and reads meanwhile
        │                                                      │
    network.py, nodes.py ──► where it happens              ledger.py ──► what each was told, against what is there

`python -m interop.splits kkk|ooo|ook|kc3 --seed 7` as root, where there is iproute2's `ip`. The run has its own network, mounts and
process numbers: when it ends, however it ends, nothing of it is left.
"""
