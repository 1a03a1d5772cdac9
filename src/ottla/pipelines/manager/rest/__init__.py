"""What a running manager answers over HTTP: Kafka Connect's REST interface, in part, and tables.

    server ──► Api ──► connectors | plugins | own ──► the manager's requests and facts

The rule: a request that changes something is carried out by the manager's thread; what is asked is answered from what is
known, at once. Nothing can be defined here: what runs is what the pipeline file says.
"""
