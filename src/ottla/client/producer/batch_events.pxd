# C types for batch_events.py.
cimport cython

from ottla.client.producer.producer_batch cimport ProducerBatch
from ottla.trace cimport EventStream

cpdef tell_drained(EventStream events, ProducerBatch batch, double now)

@cython.locals(batch=ProducerBatch, places=list, size_bytes=Py_ssize_t)
cpdef tell_sent(EventStream events, node_id, list batches)
cpdef tell_completed(EventStream events, response, double asked)
cpdef tell_finished(EventStream events, ProducerBatch batch, error, base_offset, double now)
cpdef double since(double moment, double now)
