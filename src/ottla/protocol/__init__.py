"""Kafka's wire protocol: messages as typed values, and their encoding.

schema ── declares ──► messages/<api>      one class for all versions of a message
                          │ plan_of(class, version)
                          ▼
conversation ── walks ──► plan ──► codec   Reader, Writer
  encode_request, decode_header, decode_request, encode_response, decode_response

A request frame is a header (API key, API version, correlation id, client id) and a body; a response frame is a
correlation id and a body. Client and broker agree on a version per API by ApiVersions (KIP-35, KIP-511). In flexible
versions lengths are varints and each struct ends with tagged fields (KIP-482). The messages follow the JSON schemas in
Kafka's `clients/src/main/resources/common/message`.

`apis` is the table of supported APIs. Nothing here uses a socket or a clock; importing this package imports no message.
"""
