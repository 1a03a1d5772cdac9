# C types for deliveries.py.
cimport cython

cimport ottla.records.native as raw

cdef object RecordMetadata
cdef Py_ssize_t FACTS

@cython.final
cdef class DeliveryCallbacks:
    cdef readonly list callbacks
    cdef readonly Py_ssize_t count
    cdef long long[::1] facts

    @cython.locals(at=Py_ssize_t)
    cpdef add(self, callback, long long index, long long timestamp, Py_ssize_t key_size, Py_ssize_t value_size)
    @cython.locals(
        number=Py_ssize_t, at=Py_ssize_t, offset=cython.longlong, timestamp=cython.longlong,
    )
    cpdef call_with_metadata(self, topic, partition, long long base_offset, long long log_append_time)

cpdef new_metadata(
    topic, partition, long long offset, long long timestamp, Py_ssize_t key_size, Py_ssize_t value_size
)
