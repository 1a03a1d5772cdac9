# C types for trace.py.
cimport cython

cimport ottla.native_clock as machine

@cython.final
cdef class Trace:
    cdef object _stream, _ring
    cdef readonly long long recorded_count
    cdef long long _taken

    cpdef add(self, tuple recorded)

@cython.final
cdef class EventStream:
    cdef readonly bint active, has_rare_listener
    cdef object _clock, _lock
    cdef tuple _traces, _listeners

    @cython.locals(trace=Trace, recorded=tuple)
    cpdef publish_facts(self, str kind, tuple facts)
