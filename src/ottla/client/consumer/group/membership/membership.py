"""A membership of either protocol."""

from ottla.client.consumer.group.membership.classic_membership import ClassicMembership
from ottla.client.consumer.group.membership.consumer_membership import ConsumerMembership

Membership = ClassicMembership | ConsumerMembership
