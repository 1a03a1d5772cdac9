# C types for request_bytes.py.
cimport cython

cimport ottla.broker.network_server.frame_bytes_native as frame_bytes
cimport ottla.records.native as raw
from ottla.records.native cimport Source

cdef class RequestBytes:
    cdef readonly object view
    cdef Source octets
    cdef readonly Py_ssize_t end
    cdef Py_ssize_t position, body
    cdef readonly int version, correlation_id
    cdef bint is_flexible

    @cython.locals(value=Py_ssize_t, shift=int, octet=Py_ssize_t)
    cdef Py_ssize_t uvarint(self) noexcept
    cdef Py_ssize_t size(self) noexcept
    @cython.locals(at=Py_ssize_t)
    cdef bint passes_tags(self) noexcept
    @cython.locals(size=Py_ssize_t, start=Py_ssize_t)
    cdef object text(self)
