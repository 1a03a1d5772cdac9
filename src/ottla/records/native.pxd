# raw.py in C; see there. The compiler puts these into the loops that call them.
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_FromStringAndSize
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.ref cimport Py_DECREF, Py_INCREF, PyObject
from libc.string cimport memcpy

cdef extern from "Python.h":
    ctypedef struct PyTypeObject:
        PyObject* tp_alloc(PyTypeObject* kind, Py_ssize_t count)
    void PyTuple_SET_ITEM(PyObject* target, Py_ssize_t at, object item)

ctypedef const unsigned char* Source
ctypedef unsigned char* Target
ctypedef const int* Numbers
ctypedef const long long* Moments

cdef extern from *:
    """
    #include <string.h>
    #if defined(__SSE2__)
    #include <emmintrin.h>
    static void ottla_stream(unsigned char* target, const unsigned char* source, Py_ssize_t size) {
        Py_ssize_t at = -(Py_ssize_t) target & 15;
        if (size < 65536) {
            memcpy(target, source, size);
            return;
        }
        memcpy(target, source, at);
        for (; at + 64 <= size; at += 64) {
            __m128i a = _mm_loadu_si128((const __m128i*) (source + at)), b = _mm_loadu_si128((const __m128i*) (source + at + 16));
            __m128i c = _mm_loadu_si128((const __m128i*) (source + at + 32)), d = _mm_loadu_si128((const __m128i*) (source + at + 48));
            _mm_stream_si128((__m128i*) (target + at), a);
            _mm_stream_si128((__m128i*) (target + at + 16), b);
            _mm_stream_si128((__m128i*) (target + at + 32), c);
            _mm_stream_si128((__m128i*) (target + at + 48), d);
        }
        _mm_sfence();
        memcpy(target + at, source + at, size - at);
    }
    #else
    #define ottla_stream memcpy
    #endif
    """
    void ottla_stream(Target target, Source source, Py_ssize_t size) noexcept

cdef inline Source pointer(const unsigned char[::1] view) noexcept:
    return &view[0] if view.shape[0] else <Source> b""

cdef inline Target room(unsigned char[::1] view) noexcept:
    return &view[0] if view.shape[0] else <Target> b""

cdef inline Numbers numbers(const int[::1] view) noexcept:
    return &view[0]

cdef inline Moments moments(const long long[::1] view) noexcept:
    return &view[0]

cdef inline Target octets(bytearray data) noexcept:
    return <Target> PyByteArray_AS_STRING(data)

cdef inline bytearray allocate(Py_ssize_t size):
    return PyByteArray_FromStringAndSize(NULL, size)

cdef inline void copy(Target target, Py_ssize_t at, Source source, Py_ssize_t start, Py_ssize_t size) noexcept:
    memcpy(target + at, source + start, size)

cdef inline void move(Target target, Source source, Py_ssize_t size) noexcept:
    # Past the caches where there is much of it: a core that writes what another has in its own waits for each line.
    ottla_stream(target, source, size)

cdef inline void put(Target target, Py_ssize_t at, bytes source, Py_ssize_t size) noexcept:
    memcpy(target + at, PyBytes_AS_STRING(source), size)

cdef inline bytes slice_of(const unsigned char[::1] data, Py_ssize_t start, Py_ssize_t stop):
    return PyBytes_FromStringAndSize(<const char*> pointer(data) + start, stop - start)

cdef inline int int16(Source data, Py_ssize_t position) noexcept:
    return <short> (data[position] << 8 | data[position + 1])

cdef inline int int32(Source data, Py_ssize_t position) noexcept:
    cdef unsigned int value = data[position]
    value = value << 8 | data[position + 1]
    value = value << 8 | data[position + 2]
    return <int> (value << 8 | data[position + 3])

cdef inline long long int64(Source data, Py_ssize_t position) noexcept:
    cdef unsigned long long high = <unsigned int> int32(data, position)
    return <long long> (high << 32 | <unsigned int> int32(data, position + 4))

cdef inline unsigned long long uint64(Source data, Py_ssize_t position) noexcept:
    return <unsigned long long> int64(data, position)

cdef inline void put_int32(Target target, Py_ssize_t position, int value) noexcept:
    cdef unsigned int rest = <unsigned int> value
    target[position] = <unsigned char> (rest >> 24)
    target[position + 1] = <unsigned char> (rest >> 16)
    target[position + 2] = <unsigned char> (rest >> 8)
    target[position + 3] = <unsigned char> rest

cdef inline void put_int64(Target target, Py_ssize_t position, long long value) noexcept:
    put_int32(target, position, <int> (value >> 32))
    put_int32(target, position + 4, <int> value)

cdef inline (long long, Py_ssize_t) read_varint(Source data, Py_ssize_t position, Py_ssize_t end) noexcept:
    cdef unsigned long long octet, value = 0
    cdef int shift = 0
    if position < end:
        octet = data[position]
        if octet < 0x80:
            return <long long> (octet >> 1 ^ (~(octet & 1) + 1)), position + 1
    while position < end and shift < 70:
        octet = data[position]
        value |= (octet & 0x7F) << shift
        position += 1
        shift += 7
        if octet < 0x80:
            return <long long> (value >> 1 ^ (~(value & 1) + 1)), position
    return 0, end + 1

cdef inline Py_ssize_t write_varint(Target target, Py_ssize_t position, long long value) noexcept:
    cdef unsigned long long rest = (<unsigned long long> value << 1) ^ <unsigned long long> (value >> 63)
    while rest >= 0x80:
        target[position] = <unsigned char> (rest & 0x7F | 0x80)
        rest >>= 7
        position += 1
    target[position] = <unsigned char> rest
    return position + 1

cdef inline int varint_size(long long value) noexcept:
    cdef unsigned long long rest = (<unsigned long long> value << 1) ^ <unsigned long long> (value >> 63)
    cdef int size = 1
    while rest >= 0x80:
        rest >>= 7
        size += 1
    return size

cdef inline object five(object kind, object a, object b, object c, object d, object e):
    cdef PyObject* made = (<PyTypeObject*> kind).tp_alloc(<PyTypeObject*> kind, 5)
    if made is NULL:
        raise MemoryError
    set_item(made, 0, a)
    set_item(made, 1, b)
    set_item(made, 2, c)
    set_item(made, 3, d)
    set_item(made, 4, e)
    result = <object> made
    Py_DECREF(result)
    return result

cdef inline object six(object kind, object a, object b, object c, object d, object e, object f):
    # As `tuple.__new__` does it, without the tuples that a call from outside is made of.
    cdef PyObject* made = (<PyTypeObject*> kind).tp_alloc(<PyTypeObject*> kind, 6)
    if made is NULL:
        raise MemoryError
    set_item(made, 0, a)
    set_item(made, 1, b)
    set_item(made, 2, c)
    set_item(made, 3, d)
    set_item(made, 4, e)
    set_item(made, 5, f)
    result = <object> made
    Py_DECREF(result)
    return result

cdef inline void set_item(PyObject* target, Py_ssize_t at, object item) noexcept:
    Py_INCREF(item)
    PyTuple_SET_ITEM(target, at, item)

cdef inline unsigned long long rotated(unsigned long long word, int bits) noexcept:
    return word << bits | word >> (64 - bits)

cdef inline void sip_round(unsigned long long* v) noexcept:
    v[0] += v[1]; v[1] = rotated(v[1], 13) ^ v[0]; v[0] = rotated(v[0], 32)
    v[2] += v[3]; v[3] = rotated(v[3], 16) ^ v[2]
    v[0] += v[3]; v[3] = rotated(v[3], 21) ^ v[0]
    v[2] += v[1]; v[1] = rotated(v[1], 17) ^ v[2]; v[2] = rotated(v[2], 32)

cdef inline (unsigned long long, unsigned long long) hash_of(
    Source data, Py_ssize_t start, Py_ssize_t size, unsigned long long first, unsigned long long second
) noexcept:
    # SipHash-2-4 with 128 bits, by its authors' reference: https://www.aumasson.jp/siphash/siphash.pdf
    cdef unsigned long long[4] v
    cdef unsigned long long word, low
    cdef Py_ssize_t at = start, i
    cdef Py_ssize_t whole = start + (size & ~7)
    v[0] = first ^ 0x736F6D6570736575ULL
    v[1] = second ^ 0x646F72616E646F6DULL ^ 0xEE
    v[2] = first ^ 0x6C7967656E657261ULL
    v[3] = second ^ 0x7465646279746573ULL
    while at < whole:
        memcpy(&word, data + at, 8)
        v[3] ^= word
        sip_round(v)
        sip_round(v)
        v[0] ^= word
        at += 8
    word = <unsigned long long> size << 56
    for i in range(size & 7):
        word |= <unsigned long long> data[at + i] << (8 * i)
    v[3] ^= word
    sip_round(v)
    sip_round(v)
    v[0] ^= word
    v[2] ^= 0xEE
    for i in range(4):
        sip_round(v)
    low = v[0] ^ v[1] ^ v[2] ^ v[3]
    v[1] ^= 0xDD
    for i in range(4):
        sip_round(v)
    return low, v[0] ^ v[1] ^ v[2] ^ v[3]
