"""What a transactional producer asks its coordinators: one request a file, each with a table of what errors mean.

TransactionManager ─► TxnRequest.message ─► TransactionSender ─► TxnRequest.failures ─► Verdict
"""
