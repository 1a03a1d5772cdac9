# C types for batch_events.py.
cimport cython

from ottla.client.producer.producer_batch cimport ProducerBatch
from ottla.trace cimport EventStream

cpdef record_drained(EventStream events, ProducerBatch batch, double now)

@cython.locals(batch=ProducerBatch, places=list, size_bytes=Py_ssize_t)
cpdef record_sent(EventStream events, node_id, list batches)
cpdef record_completed(EventStream events, response, double sent_at)
cpdef record_finished(EventStream events, ProducerBatch batch, error, base_offset, double now)
cpdef double elapsed_ms(double moment, double now)
