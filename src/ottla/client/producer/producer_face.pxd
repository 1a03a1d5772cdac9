# C types for producer_face.py.
from ottla.client.producer.record_intake cimport RecordIntake

cdef class ProducerFace:
    cdef public object config, client_id
    cdef readonly object _core
    cdef readonly RecordIntake _intake
    cdef object _forgotten

cpdef call_offer(ProducerFace face, topic, value, key, partition, timestamp, headers, on_delivery)
