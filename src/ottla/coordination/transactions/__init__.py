"""The coordinator of transactions: who may write under a transactional id, and how each of its transactions ends.

    ProducerRequested ──► Empty ──► Ongoing ──► PrepareCommit ──► CompleteCommit ──► Ongoing …
                                       └──────► PrepareAbort ───► CompleteAbort

The end is in two phases, since a transaction is in many partitions and no write is in more than one. First the outcome is
settled, by one record here: PrepareCommit or PrepareAbort. From then on nothing changes it, and the producer may be told. Then
the marker is written into every partition, and readers of committed records get past the transaction there, one partition after
the other; and last CompleteCommit or CompleteAbort is written here, after which the id may begin its next transaction. A crash
before the first record is an abort by timeout; after it, `unfinished` shows what is prepared, and the markers are
written again: a second marker of the same epoch ends nothing, since there is nothing open any more.

Who may write is settled by the epoch. A producer that comes with the transactional id gets the next one, and whoever has an older
epoch is fenced, by the coordinator and by every partition that has seen the newer one. Where a transaction is aborted from outside
(a timeout, or a new producer) the markers bear an epoch that nobody was given, so that the producer which slept hears
of it wherever it writes next (`fenced`). With version 2 (KIP-890) every end moves the epoch on, and so a late write of the
last transaction cannot come into the next one.
"""
