"""Reading records.

Consumer.poll ─► Fetcher ─► ConsumerNetworkClient ─► NetworkClient
   │               └ completed_fetches ─► collect_fetch ─► ConsumerRecords, Arrow tables
   └─► SubscriptionState: what is assigned, and the position in each partition
"""

from ottla.client.consumer.config import ConsumerConfig as ConsumerConfig
from ottla.client.consumer.consumer import Consumer as Consumer
from ottla.client.consumer.range_reader import RangeReader as RangeReader
from ottla.client.consumer.record import ConsumerRecord as ConsumerRecord
from ottla.client.consumer.records import ConsumerRecords as ConsumerRecords
