"""A web console for one cluster of any Kafka.

browser ── guard ── app ── cluster ── Admin, Consumer, Producer
                     └─ views, record_view: build the JSON of the responses

`guard` and the views are pure, `cluster` sends the requests; only `app` and `server` use HTTP. Needs the extra
`console`.
"""
