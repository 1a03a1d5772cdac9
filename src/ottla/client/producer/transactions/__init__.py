"""The transaction state machine of a producer, and its requests to coordinators.

TransactionManager ─► TxnRequest.message ─► TransactionSender ─► TxnRequest.failures ─► Verdict
"""
