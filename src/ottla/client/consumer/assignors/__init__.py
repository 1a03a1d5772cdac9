"""How the partitions of subscribed topics are shared out among the members of a group.

members' Subscriptions ─► Assignor.assign(cluster, …) on the leader ─► an Assignment for each member
"""

from ottla.client.consumer.assignors.assignor import Assignment as Assignment
from ottla.client.consumer.assignors.assignor import Assignor as Assignor
from ottla.client.consumer.assignors.assignor import RebalanceProtocol as RebalanceProtocol
from ottla.client.consumer.assignors.assignor import Subscription as Subscription
from ottla.client.consumer.assignors.range import RangeAssignor as RangeAssignor
