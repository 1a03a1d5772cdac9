"""Managing topics.

Admin ─► ConsumerNetworkClient ─► NetworkClient ─► any broker, the controller, or the leaders
"""

from ottla.client.admin.admin import Admin as Admin
from ottla.client.admin.config import AdminConfig as AdminConfig
from ottla.client.admin.topic import NewTopic as NewTopic
from ottla.client.admin.topic import TopicDescription as TopicDescription
from ottla.client.admin.topic import TopicListing as TopicListing
