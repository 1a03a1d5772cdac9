"""The HTTP interface of a running manager: a part of Kafka Connect's REST interface, and tables.

    server ──► Api ──► connectors | plugins | own ──► the manager's requests and status

Changes are made by the manager's thread; reads are answered at once from the current status. Pipelines cannot be
defined here: the pipeline file defines them.
"""
