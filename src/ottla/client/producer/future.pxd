# C types for future.py.
cimport cython

from ottla.client.producer.produce_request_result cimport ProduceRequestResult

@cython.final
@cython.freelist(64)
@cython.no_gc  # many futures wait, and the collector would visit each; a completed one drops its references
cdef class RecordFuture:
    cdef ProduceRequestResult _result
    cdef long long _index, _timestamp
    cdef Py_ssize_t _key_size, _value_size

    cpdef bint done(self)

@cython.locals(future=RecordFuture)
cpdef RecordFuture new_future(
    ProduceRequestResult result, long long index, long long timestamp, Py_ssize_t key_size, Py_ssize_t value_size
)
