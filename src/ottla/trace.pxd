# C types for trace.py.
cimport cython

cimport ottla.native_clock as machine

@cython.final
cdef class Trace:
    cdef object _stream, _ring
    cdef readonly long long told
    cdef long long _taken

    cpdef add(self, tuple told)

@cython.final
cdef class EventStream:
    cdef readonly bint active, rare_are_heard
    cdef object _clock, _lock
    cdef tuple _traces, _hearers

    @cython.locals(trace=Trace, told=tuple)
    cpdef tell_facts(self, str kind, tuple facts)
