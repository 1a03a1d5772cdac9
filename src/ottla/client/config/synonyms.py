"""Ottla's names for the settings of other libraries: librdkafka, kafka-python and aiokafka.

Dotted names only, of all kinds of clients.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ottla.errors import ConfigError

UNDERSTOOD: Mapping[str, str] = {
    "ssl.ca.location": "ssl.truststore.location",
    "ssl.ca.pem": "ssl.truststore.certificates",
    "ssl.certificate.pem": "ssl.keystore.certificate.chain",
    "ssl.key.pem": "ssl.keystore.key",
    "sasl.mechanisms": "sasl.mechanism",
    "sasl.oauthbearer.client.id": "sasl.oauthbearer.client.credentials.client.id",
    "sasl.oauthbearer.client.secret": "sasl.oauthbearer.client.credentials.client.secret",
}
"""librdkafka's names of settings of security, which are taken as they are."""

RENAMED: Mapping[str, str] = {
    "metadata.broker.list": "bootstrap.servers",
    "topic.metadata.refresh.interval.ms": "metadata.max.age.ms",
    "metadata.request.timeout.ms": "request.timeout.ms",
    "socket.timeout.ms": "request.timeout.ms",
    "socket.send.buffer.bytes": "send.buffer.bytes",
    "socket.receive.buffer.bytes": "receive.buffer.bytes",
    "api.version.request.timeout.ms": "request.timeout.ms",
    "api.version.auto.timeout.ms": "request.timeout.ms",
    "message.timeout.ms": "delivery.timeout.ms",
    "queue.buffering.max.ms": "linger.ms",
    "queue.buffering.max.kbytes": "buffer.memory",
    "queue.buffering.max.messages": "buffer.memory",
    "batch.num.messages": "batch.size",
    "max.batch.size": "batch.size",
    "message.send.max.retries": "retries",
    "compression.codec": "compression.type",
    "request.required.acks": "acks",
    "message.max.bytes": "max.request.size",
    "max.in.flight": "max.in.flight.requests.per.connection",
    "partitioner": "partitioner.class",
    "partitioner.cb": "partitioner.class",
    "interceptors": "interceptor.classes",
    "consume.callback.max.messages": "max.poll.records",
    "fetch.wait.max.ms": "fetch.max.wait.ms",
    "fetch.message.max.bytes": "max.partition.fetch.bytes",
    "fetch.error.backoff.ms": "retry.backoff.ms",
    "auto.commit.enable": "enable.auto.commit",
    "rebalance.timeout.ms": "max.poll.interval.ms",
    "key.serializer.class": "key.serializer",
    "value.serializer.class": "value.serializer",
    "ssl.ca": "ssl.truststore.certificates",
    "ssl.certificate": "ssl.keystore.certificate.chain",
    "ssl.key": "ssl.keystore.key",
    "ssl.cafile": "ssl.truststore.location",
    "ssl.certfile": "ssl.certificate.location",
    "ssl.keyfile": "ssl.key.location",
    "ssl.password": "ssl.key.password",
    "ssl.ciphers": "ssl.cipher.suites",
    "sasl.plain.username": "sasl.username",
    "sasl.plain.password": "sasl.password",
}
"""The same thing under another name."""

NEEDLESS: Mapping[str, str] = {
    "compression.level": "there is one for each codec, such as compression.zstd.level",
    "api.version": "brokers are asked which versions they speak; leave it out",
    "api.version.request": "brokers are asked which versions they speak; leave it out",
    "api.version.fallback.ms": "brokers are asked which versions they speak; leave it out",
    "broker.version.fallback": "brokers are asked which versions they speak; leave it out",
    "enable.gapless.guarantee": "an idempotent producer keeps the order as it is; leave it out",
    "delivery.report.only.error": "a callback is called for each record; give on_delivery to the sends that need one",
    "dr.cb": "give each send its on_delivery(metadata, error)",
    "dr.msg.cb": "give each send its on_delivery(metadata, error)",
    "on.delivery": "give each send its on_delivery(metadata, error)",
    "on.commit": "give commit_async its callback(offsets, error)",
    "offset.commit.cb": "give commit_async its callback(offsets, error)",
    "default.offset.commit.callback": "give commit_async its callback(offsets, error)",
    "produce.offset.report": "each future of send() has its record's offset; leave it out",
    "consume.cb": "records come from poll(), or from a loop over the consumer; leave it out",
    "rebalance.cb": "give subscribe() on_assigned and on_revoked",
    "error.cb": "errors are raised by the calls they concern, and logged under the logger 'ottla'; leave it out",
    "background.event.cb": "leave it out",
    "closesocket.cb": "leave it out",
    "connect.cb": "leave it out",
    "open.cb": "leave it out",
    "resolve.cb": "leave it out",
    "socket.cb": "leave it out",
    "msg.order.cmp": "leave it out",
    "throttle.cb": "the client waits by itself; leave it out",
    "logger": "log lines go to Python's logger 'ottla'; leave it out",
    "log.cb": "log lines go to Python's logger 'ottla'; leave it out",
    "log.queue": "log lines go to Python's logger 'ottla'; leave it out",
    "log.thread.name": "give Python's logger 'ottla' a format with %(threadName)s; leave it out",
    "debug": "set the level of Python's logger 'ottla' to DEBUG, or call consumer.trace(); leave it out",
    "log.level": "set the level of Python's logger 'ottla'; leave it out",
    "log.connection.close": "set the level of Python's logger 'ottla'; leave it out",
    "stats.cb": "give on.statistics a function: it is called with what metrics() returns, and not with JSON",
    "enable.auto.offset.store": "set enable.auto.commit=false and call commit() with the offsets",
    "auto.offset.store": "set enable.auto.commit=false and call commit() with the offsets",
    "enable.partition.eof": "compare position() with end_offsets(); leave it out",
    "offset.store.method": "the group's coordinator keeps offsets; leave it out",
    "offset.store.path": "the group's coordinator keeps offsets; leave it out",
    "offset.store.sync.interval.ms": "the group's coordinator keeps offsets; leave it out",
    "coordinator.query.interval.ms": "a coordinator is looked for when it is needed; leave it out",
    "group.protocol.type": "it is always consumer; leave it out",
    "enable.incremental.fetch.sessions": "fetches have a session wherever the broker has them; leave it out",
    "share.acknowledgement.mode": "there are no share groups yet; leave it out",
    "receive.message.max.bytes": "fetch.max.bytes bounds what a fetch brings; leave it out",
    "fetch.queue.backoff.ms": "fetch.max.bytes bounds what is fetched ahead; leave it out",
    "queued.min.messages": "fetch.max.bytes bounds what is fetched ahead; leave it out",
    "queued.max.messages.kbytes": "fetch.max.bytes bounds what is fetched ahead; leave it out",
    "consumer.timeout.ms": "give poll() a timeout; leave it out",
    "bootstrap.timeout.ms": "the first call that needs a broker waits for it; default.api.timeout.ms and max.block.ms bound that",
    "client.software.name": "Ottla always sends its own name and version; omit it",
    "client.software.version": "Ottla always sends its own name and version; omit it",
    "default.topic.conf": "set topic settings directly",
    "builtin.features": "what there is depends on Ottla's extras; leave it out",
    "plugin.library.paths": "no library is loaded from a setting; leave it out",
    "proxy.url": "connections go to the brokers without a proxy; leave it out",
    "socks5.proxy": "connections go to the brokers without a proxy; leave it out",
    "topic.blacklist": "subscribe() to a pattern that leaves such topics out",
    "topic.metadata.propagation.max.ms": "a topic that is not there yet is waited for as long as the call may take; leave it out",
    "topic.metadata.refresh.fast.cnt": "retry.backoff.ms says how soon metadata are asked for again; leave it out",
    "topic.metadata.refresh.fast.interval.ms": "retry.backoff.ms says how soon metadata are asked for again; leave it out",
    "topic.metadata.refresh.sparse": "only topics that are used are asked for; leave it out",
    "message.copy.max.bytes": "leave it out",
    "queue.buffering.backpressure.threshold": "requests are made as connections take them; leave it out",
    "queuing.strategy": "records of a partition leave in their order; leave it out",
    "sticky.partitioning.linger.ms": "records without a key go to one partition for batch.size bytes; leave it out",
    "enable.random.seed": "leave it out",
    "enabled.events": "leave it out",
    "internal.termination.signal": "leave it out",
    "opaque": "leave it out",
    "test.mock.broker.rtt": "ottla.testing has brokers for tests, with faults; leave it out",
    "test.mock.num.brokers": "ottla.testing has brokers for tests, with faults; leave it out",
    "kafka.client": "leave it out",
    "loop": "the running event loop is taken; leave it out",
    "legacy.iterator": "leave it out",
    "ssl.context": "name the files with ssl.truststore.location and ssl.keystore.location",
    "ssl.check.hostname": "set ssl.endpoint.identification.algorithm to https, or to nothing",
    "ssl.crlfile": "lists of revoked certificates are not read; leave it out",
    "ssl.crl.location": "lists of revoked certificates are not read; leave it out",
    "enable.ssl.certificate.verification": "certificates are always checked; name the authority with ssl.truststore.location",
    "ssl.ca.certificate.stores": "those of the operating system are taken where ssl.truststore.location is left out",
    "oauth.cb": "give sasl.oauth.token.provider a function that returns (token, milliseconds since 1970)",
    "oauthbearer.token.refresh.cb": "give sasl.oauth.token.provider a function that returns (token, milliseconds since 1970)",
    "sasl.oauthbearer.config": "give sasl.oauth.token.provider a function, or sasl.oauthbearer.token.endpoint.url",
    "enable.sasl.oauthbearer.unsecure.jwt": "give sasl.oauth.token.provider a function that makes one",
    "sasl.oauthbearer.grant.type": "the token endpoint is asked with a client's id and secret; leave it out",
    "sasl.oauthbearer.metadata.authentication.type": "the token endpoint is asked with a client's id and secret; leave it out",
    "sasl.oauthbearer.sub.claim.name": "the broker reads the claims of tokens, a client does not; leave it out",
    "enable.sasl.queue": "tokens are fetched by the client itself; leave it out",
    "https.ca.pem": "name a file with https.ca.location",
    "ssl.certificate.verify.cb": "certificates are always checked; name the authority with ssl.truststore.location",
    "ssl.curves.list": "Ottla uses the defaults of OpenSSL; omit it",
    "ssl.sigalgs.list": "Ottla uses the defaults of OpenSSL; omit it",
    "ssl.engine.id": "keys are read from files or settings; leave it out",
    "ssl.engine.location": "keys are read from files or settings; leave it out",
    "ssl.engine.callback.data": "keys are read from files or settings; leave it out",
    "ssl.providers": "TLS is OpenSSL's, with the providers of its own configuration; leave it out",
    "sasl.kerberos.domain.name": "it is the host that bootstrap.servers and the brokers name; leave it out",
    "sasl.kerberos.name": "set sasl.kerberos.service.name",
    "selectors": "leave it out",
    "selector": "leave it out",
    "sock.chunk.bytes": "leave it out",
    "socket.options": "send.buffer.bytes and receive.buffer.bytes are there; leave it out",
    "socket.keepalive.enable": "connections that are idle are closed after connections.max.idle.ms; leave it out",
    "socket.blocking.max.ms": "leave it out",
    "reconnect.backoff.jitter.ms": "pauses vary by themselves; leave it out",
    "enable.sparse.connections": "a broker is connected to when it is needed; leave it out",
    "socket.nagle.disable": "it is always so; leave it out",
    "socket.max.fails": "a connection that fails is made again; leave it out",
    "broker.address.family": "all addresses of a host are tried; leave it out",
    "broker.address.ttl": "a host is looked up at each connection; leave it out",
    "metrics.enabled": "metrics() is always there; leave it out",
    "metric.group.prefix": "groups are called as Java's clients call them; leave it out",
}
"""Settings that Ottla replaces with something else, or does not need."""


def translate_names(settings: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the settings by our names. ConfigError if a setting is given by two names."""
    ours: dict[str, Any] = {}
    for name, value in settings.items():
        given = str(name)
        better = UNDERSTOOD.get(given.replace("_", "."), given)
        better = better if "." in given else better.replace(".", "_")
        if better in ours:
            raise ConfigError(f"{given} and {better} are the same setting; give one of them")
        ours[better] = value
    return ours


def find_remedy(name: str, known: Collection[str]) -> str | None:
    """Return the remedy for a setting of another library; None if it is unknown. `known` are Ottla's dotted names."""
    dotted = name.replace("_", ".")
    if (ours := RENAMED.get(dotted)) in known:
        assert ours is not None
        return f"it is called {ours if '.' in name else ours.replace('.', '_')!r} here"
    return NEEDLESS.get(dotted)
