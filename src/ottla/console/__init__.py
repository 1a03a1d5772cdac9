"""A cluster on one page, of any Kafka, for a browser.

    browser ── guard ── app ── cluster ── Admin, Consumer, Producer
                                  └─ views, record_view: values become what JSON has

`guard` and the views are pure, `cluster` asks, `app` and `server` are all that knows of HTTP. Needs the extra `console`.
"""
