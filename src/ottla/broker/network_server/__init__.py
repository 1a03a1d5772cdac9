"""Accept connections, authenticate them, read requests from frames, and send responses in order.

    socket_server ──► connections ──► request_handler ──► a RequestTable (broker_requests, controller_requests)

admission limits connections; throttle and quota_manager delay clients above their quotas; request_log, request_counts and
request_latencies observe requests. What a request means is not known here.
"""
