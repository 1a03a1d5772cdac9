"""A member of either protocol, for those who need not know which."""

from ottla.client.consumer.group.membership.classic_membership import ClassicMembership
from ottla.client.consumer.group.membership.consumer_membership import ConsumerMembership

Membership = ClassicMembership | ConsumerMembership
