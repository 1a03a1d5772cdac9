"""The metadata of the cluster: records of `__cluster_metadata`, their replay, and the validation of requests.

`metadata` is the state that brokers and controllers build from the log. The active controller decides which records are
written; the modules named for a request (`config_change`, `acl_request`, …) validate it and return the records.
"""
