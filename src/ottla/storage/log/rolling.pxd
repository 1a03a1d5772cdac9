# C types for rolling.py.
cimport cython

@cython.locals(limit=cython.longlong, filled=cython.longlong)
cpdef bint is_full(
    object segment, Py_ssize_t size, long long latest, long long last_offset, object config, object open_ms
) except -1

cpdef object age_ms(object segment, object latest, object open_ms)
