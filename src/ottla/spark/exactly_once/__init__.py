"""Each row of a stream committed once, whoever is killed or tried again.

    driver   announce the batch ──────────────────────────────────────► end what is held
    task          init transactional id ► enter ► read marks ► write rows and mark ► commit, or hold

`rules` decides and knows neither Kafka nor Spark; `driver` and `task` act. A task's mark is an offset of a consumer group, so
it counts together with the rows. The rule of rules: a task looks for marks only when it has taken its transactional id
over, for then nobody older can write any more.
"""
