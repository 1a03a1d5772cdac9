"""What a client measures of itself: numbers that its parts count as they work, and what is made of them when somebody asks.

    parts ──record──► Sensor ◄──tick── Registry          once for a batch or a request, never for a record
                         │
    metrics() ──read──► Reading ──► Sheet ──► ClientMetrics, by Java's names

Pure: time is an argument. A registry belongs to the one thread that records and ticks; any thread may read.
"""
