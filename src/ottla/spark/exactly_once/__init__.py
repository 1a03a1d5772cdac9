"""Each row of a stream committed once, whoever is killed or tried again.

    driver   announce the batch ──────────────────────────────────────► end what is held
    task          init transactional id ► enter ► read marks ► write rows and mark ► commit, or hold

Spark may run a task twice: again after a failure, side by side with itself (speculation), or once more with the whole batch
after a crash of the driver, which asks the checkpoint only what it has begun. Kafka's transactions make one attempt's rows whole or
nothing; what they cannot say is whether the attempt before committed. So each task writes, in the transaction of its rows, a mark
beside them: task 3 has written batch 17, so many rows, of this sum. A mark is an offset committed to a consumer group, which
a transaction may contain; it counts with the rows or not at all, and every broker keeps it.

What a task does, in this order: it takes over its transactional id (`init`), by which every older attempt is fenced and what that had
open is aborted; enters, so that a driver knows that there is such a task; reads the marks; and only then decides whether to
write. The rule of rules is in this order: whoever reads marks before it has fenced the others may read "not written", and
have a slow twin commit behind its back.

Who commits. Where no task of this batch can have run before (COMMIT) each commits its own, at once. Where some may have (HOLD: the
batch was announced before, or nobody can tell), the rows may be shared out differently now, so that task 3 is not the task 3
of then. Nothing is committed before the driver has heard of all tasks: marks of this batch are held against what the task would
write now (COMPARE), what does not fit is an error that says what changed, and what is held is handed over to the
driver, transaction and all. A driver that dies here leaves transactions open, which the next run's `init` aborts.

`rules` decides and knows neither Kafka nor Spark; `driver` and `task` act. tests/spark/exactly_once goes through every order of
steps of two runs with these rules.
"""
