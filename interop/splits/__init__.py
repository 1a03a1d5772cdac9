"""A cluster under real network partitions: each node in its own network namespace, on a switch of this run.

    faults.py ──► faults and their victims, from a seed    crowd.py ──► clients that write and read meanwhile
        │                                                      │
    network.py, nodes.py ──► hosts and nodes               ledger.py ──► acknowledgements against the log

`python -m interop.splits kkk|ooo|ook|kc3 --seed 7` as root; it requires `ip` of iproute2. The run has its own network,
mount and process namespaces: nothing of it remains when it ends, even after a kill.
"""
