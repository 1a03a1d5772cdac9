"""The broker: one loop around the machines that decide and the logs that keep.

embedded, serve ──► Server ──► handlers/<api> ──► Node ──► topics, offsets ──► Runtime ──► coordination
                      │                            ├──► partitions ──► storage
                   Selector                        └──► waiting, timers, flusher
"""
