"""What lets a fetch wait and remember: waiting fetches, and the sessions of KIP-227.

Knows no partition, only that something may be waited for and watched (`Source`).
"""
