"""The transaction coordinator's state machine: producers of transactional ids, and the ends of their transactions (KIP-98, KIP-890).

    ProducerRequested ──► Empty ──► Ongoing ──► PrepareCommit ──► CompleteCommit ──► Ongoing …
                                       └──────► PrepareAbort ───► CompleteAbort

**Two phases.** A transaction spans several partitions, and no append is atomic over more than one. First the outcome is decided by one record
in this log: PrepareCommit or PrepareAbort. It never changes after that, and the producer receives the response. Then a marker is written
to every partition, and consumers with `read_committed` pass the transaction there, one partition after the other. Last, CompleteCommit or
CompleteAbort is written here, and the id may start its next transaction. After a crash before the first record the transaction is
aborted by its timeout. After a crash later, `unfinished` returns the prepared transactions and their markers are written again; a second
marker of the same epoch has no effect, because no transaction is open.

**Epochs.** The epoch decides which producer may write. InitProducerId increases it; a producer with an older epoch is fenced by the
coordinator, and by every partition that has seen the newer one. If a transaction is aborted by its timeout or by a new producer, the markers
have an epoch that no producer was given, so a paused producer is fenced at its next write (`fenced`). With version 2
(KIP-890) every end increases the epoch, so a delayed write of the last transaction cannot become part of the next one.
"""
