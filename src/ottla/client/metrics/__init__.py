"""Client metrics: counters that the components update, and the values computed from them on request.

components ──record──► Sensor ◄──tick── Registry      once per batch or request, never per record
                             │
    metrics() ──read──► Reading ──► MetricsBuilder ──► ClientMetrics, with the names of the Java clients

Pure: time is an argument. A registry belongs to the one thread that records and ticks; any thread may read.
"""
