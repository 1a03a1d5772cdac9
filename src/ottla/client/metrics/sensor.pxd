# C types for sensor.py.
cimport cython

@cython.final
cdef class Sensor:
    cdef readonly long long count
    cdef readonly double total, most
    cdef object _marks

    cpdef record(self, double value)
