# C types for producer.py.
from ottla.client.producer.future cimport RecordFuture
from ottla.client.producer.producer_face cimport ProducerFace, call_offer
