"""Files as a log needs them: whole or not there, forced to the disk, open only as long as they are used.

durable: replaced at once, forced · checkpoint: Kafka's files of one line for each partition
open_file ◄── open_files: as many at once as leave descriptors for connections
"""
