# wall_ms of clock.py in C, for the loops that read it once a record: `cimport ottla.native_clock as clock`.

cdef extern from "<time.h>" nogil:
    struct timespec:
        long long tv_sec
        long tv_nsec
    int timespec_get(timespec* moment, int base)
    int TIME_UTC

cdef inline long long wall_ms() noexcept:
    cdef timespec moment
    timespec_get(&moment, TIME_UTC)
    return <long long> moment.tv_sec * 1000 + moment.tv_nsec // 1000000
