"""Send records.

Producer.send ─► RecordIntake ─► RecordAccumulator ─► Sender (a thread) ─► NetworkClient
   │               └ Partitioner   └ BufferPool          ├ TransactionManager, TransactionSender
   └─► ProducerCore: calls that wait                     └ ProduceRequestResult ─► RecordFuture, callbacks
"""

from ottla.client.producer.config import ProducerConfig as ProducerConfig
from ottla.client.producer.future import RecordFuture as RecordFuture
from ottla.client.producer.interceptors import ProducerRecord as ProducerRecord
from ottla.client.producer.producer import Producer as Producer
from ottla.client.producer.table_receipt import TableReceipt as TableReceipt
