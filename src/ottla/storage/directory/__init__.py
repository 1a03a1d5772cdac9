"""The directory of a broker with all its logs: Kafka's LogManager.

data_directory ──► directory_lock, meta_properties: the owner
     ├───────────► offset_checkpoints: recovery points and log starts
     └───────────► deletions: removal of deleted logs in another thread

similar_directories finds the directory that was meant, when a misspelt one is about to be created.
"""
