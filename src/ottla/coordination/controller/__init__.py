"""What an active controller decides: brokers' lives, and who leads and copies each partition (KIP-631, KIP-966).

partition_change      what becomes of one partition, of what is wanted of it
reassignment          who copies it while copies move, and once they have
"""
