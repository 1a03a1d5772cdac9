# C types for rolling.py.
cimport cython

from ottla.storage.validation.incoming cimport Incoming

@cython.locals(size=Py_ssize_t, limit=cython.longlong, filled=cython.longlong)
cpdef bint is_full(object segment, Incoming incoming, long long last_offset, object config, object open_ms) except -1

cpdef object age_ms(object segment, object latest, object open_ms)
