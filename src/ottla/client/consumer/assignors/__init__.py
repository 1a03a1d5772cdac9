"""Assign the partitions of subscribed topics to the members of a group.

members' Subscriptions ─► Assignor.assign(cluster, …) on the leader ─► an Assignment for each member
   range · round_robin · sticky · cooperative_sticky · function: the user's own
   sticky ─► claims: ownership ─► sticky_uniform, if all members subscribe to the same topics, or sticky_general
"""

from ottla.client.consumer.assignors.assignor import Assignment as Assignment
from ottla.client.consumer.assignors.assignor import Assignor as Assignor
from ottla.client.consumer.assignors.assignor import RebalanceProtocol as RebalanceProtocol
from ottla.client.consumer.assignors.assignor import Subscription as Subscription
