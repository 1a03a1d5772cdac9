"""Commits each row of a stream once, even if processes are killed or tasks run again.

    driver   announce the batch ──────────────────────────────────────► commit the held transactions
    task          init transactional id ► enter ► read marks ► write rows and mark ► commit, or hold

Spark may run a task several times: again after a failure, concurrently (speculation), or again with the whole batch
after a crash of the driver. The checkpoint only says which batch was started (`offsets/N` without `commits/N`). Kafka's
transactions (KIP-98) make the rows of one attempt atomic, but do not show whether an earlier attempt has committed.
Therefore each task adds a mark to the transaction of its rows: task 3 has written batch 17 with this number of rows and
this sum. A mark is an offset committed to a consumer group, which a transaction may include
(`sendOffsetsToTransaction`). It is committed with the rows or not at all, and every Kafka broker stores it.

A task makes these steps in this order. It initializes its transactional id (`InitProducerId`), which fences all older
attempts and aborts their open transactions. It enters with an empty mark, so that drivers can find it. It reads the
marks. Only then it decides whether to write. The order is essential: a task that read the marks before it fenced the
others could read "not written", and a slow concurrent attempt could commit afterwards.

The transactions are committed by the tasks or by the driver. If no task of this batch can have run before (COMMIT),
each task commits its own transaction at once. If some may have run (HOLD: the batch was announced before, or this is
not known), the rows may be distributed to tasks differently now. Then nothing is committed before all tasks have
reported to the driver. Existing marks of the batch are compared with the rows that the task would write now (COMPARE);
a difference is an error that describes the change. The open transactions are passed to the driver, which commits them.
If the driver fails before that, the transactions remain open, and `init` of the next run aborts them.

`rules` has the decisions without Kafka or Spark; `driver` and `task` execute them. tests/spark/exactly_once checks
these rules for every order of steps of two runs.
"""
