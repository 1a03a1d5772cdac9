# C types for record_sizes.py.
cimport cython

cimport ottla.records.native as raw
from ottla.records.native cimport Source

@cython.locals(octets=Source, end=Py_ssize_t, position=Py_ssize_t, number=Py_ssize_t, size=cython.longlong)
cpdef check_record_sizes(object records, long long limit)
