"""The directory of a broker with all its logs: Kafka's LogManager.

data_directory ──► directory_lock, meta_properties: whose it is
     ├───────────► offset_checkpoints: how far logs are flushed, where they begin
     └───────────► deletions: what goes, beside the loop
"""
