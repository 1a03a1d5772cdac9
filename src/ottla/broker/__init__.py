"""The broker: one loop around the machines that decide and the logs that keep.

embedded, process ──► serve ──► Server ──► handlers/<api> ──► Node ──► coordinators ──► cluster ──► machines
                                  │                             └──► partitions ──► fetching
                               requests                                   └──► storage
"""
