# C types for murmur2.py. The products wrap around by themselves at 32 bits.
cimport cython

cimport ottla.records.native as raw
from ottla.records.binary_column cimport BinaryColumn
from ottla.records.native cimport Source

cdef unsigned int SEED, FACTOR, MASK, POSITIVE

cpdef int partition_for(bytes key, int partitions) except -1

@cython.locals(octets=Source, row=Py_ssize_t, start=Py_ssize_t)
cdef int fill(BinaryColumn keys, int partitions, int[::1] chosen) except -1

@cython.locals(value=cython.uint, word=cython.uint, position=Py_ssize_t, stop=Py_ssize_t, rest=Py_ssize_t)
cdef unsigned int hash_of(Source data, Py_ssize_t start, Py_ssize_t size) noexcept
