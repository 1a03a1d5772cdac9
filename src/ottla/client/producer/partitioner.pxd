# C types for partitioner.py.
cimport cython

@cython.final
cdef class StickyPartitioner:
    cdef Py_ssize_t _batch_bytes, _bytes
    cdef int _partition
    cdef object _random, _choices
    cdef list _shares

    cpdef int current(self, int partitions) except -2
    cpdef appended(self, Py_ssize_t size, int partitions)
    cpdef int new_batch(self, int partitions, bint full) except -2
    cpdef _switch(self, int partitions)
