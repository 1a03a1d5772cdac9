/* What a program in C does with librdkafka: fill a partition, and read it again.
 *
 * Compiled by librdkafka.py against the library that confluent-kafka brings, whose header it does not bring: what is
 * used of it is declared here, as rdkafka.h of librdkafka 2 has it.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct rd_kafka_s rd_kafka_t;
typedef struct rd_kafka_topic_s rd_kafka_topic_t;
typedef struct rd_kafka_conf_s rd_kafka_conf_t;
typedef struct rd_kafka_topic_conf_s rd_kafka_topic_conf_t;

typedef struct {
    int err;
    rd_kafka_topic_t *rkt;
    int32_t partition;
    void *payload;
    size_t len;
    void *key;
    size_t key_len;
    int64_t offset;
    void *opaque;
} rd_kafka_message_t;

enum { PRODUCER = 0, CONSUMER = 1, MSG_F_COPY = 2, MSG_F_BLOCK = 4, OFFSET_BEGINNING = -2, CHUNK = 10000 };

rd_kafka_conf_t *rd_kafka_conf_new(void);
int rd_kafka_conf_set(rd_kafka_conf_t *, const char *, const char *, char *, size_t);
void rd_kafka_conf_set_dr_msg_cb(rd_kafka_conf_t *, void (*)(rd_kafka_t *, const rd_kafka_message_t *, void *));
void rd_kafka_conf_set_opaque(rd_kafka_conf_t *, void *);
rd_kafka_t *rd_kafka_new(int, rd_kafka_conf_t *, char *, size_t);
rd_kafka_topic_t *rd_kafka_topic_new(rd_kafka_t *, const char *, rd_kafka_topic_conf_t *);
int rd_kafka_produce_batch(rd_kafka_topic_t *, int32_t, int, rd_kafka_message_t *, int);
int rd_kafka_poll(rd_kafka_t *, int);
int rd_kafka_flush(rd_kafka_t *, int);
int rd_kafka_consume_start(rd_kafka_topic_t *, int32_t, int64_t);
int rd_kafka_consume_stop(rd_kafka_topic_t *, int32_t);
ptrdiff_t rd_kafka_consume_batch(rd_kafka_topic_t *, int32_t, int, rd_kafka_message_t **, size_t);
void rd_kafka_message_destroy(rd_kafka_message_t *);
void rd_kafka_topic_destroy(rd_kafka_topic_t *);
void rd_kafka_destroy(rd_kafka_t *);

static void count_delivery(rd_kafka_t *client, const rd_kafka_message_t *message, void *opaque) {
    (void)client;
    if (!message->err) ++*(int64_t *)opaque;
}

/* A client with the settings `names[i] = values[i]`; NULL with a reason in `error`. */
static rd_kafka_t *client(int kind, const char **names, const char **values, int settings, int64_t *delivered,
                          char *error, size_t room) {
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    for (int i = 0; i < settings; i++)
        if (rd_kafka_conf_set(conf, names[i], values[i], error, room)) return NULL;
    if (delivered) {
        rd_kafka_conf_set_opaque(conf, delivered);
        rd_kafka_conf_set_dr_msg_cb(conf, count_delivery);
    }
    return rd_kafka_new(kind, conf, error, room);
}

/* Send `records` values of `size` bytes to partition 0; how many were acknowledged, or -1. */
int64_t fill(const char **names, const char **values, int settings, const char *topic, int64_t size, int64_t records,
             char *error, int64_t room) {
    int64_t delivered = 0, sent = 0;
    rd_kafka_t *rk = client(PRODUCER, names, values, settings, &delivered, error, (size_t)room);
    if (!rk) return -1;
    rd_kafka_topic_t *rkt = rd_kafka_topic_new(rk, topic, NULL);
    rd_kafka_message_t *chunk = calloc(CHUNK, sizeof *chunk);
    char *value = calloc(1, (size_t)size);
    while (sent < records) {
        int count = records - sent < CHUNK ? (int)(records - sent) : CHUNK;
        for (int i = 0; i < count; i++) chunk[i] = (rd_kafka_message_t){.payload = value, .len = (size_t)size};
        sent += rd_kafka_produce_batch(rkt, 0, MSG_F_COPY | MSG_F_BLOCK, chunk, count);
        rd_kafka_poll(rk, 0);
    }
    rd_kafka_flush(rk, 120000);
    rd_kafka_topic_destroy(rkt);
    rd_kafka_destroy(rk);
    free(chunk);
    free(value);
    return delivered;
}

/* Read `records` records of partition 0 and look at each value; how many bytes they had, or -1. */
int64_t drain(const char **names, const char **values, int settings, const char *topic, int64_t records, char *error,
              int64_t room) {
    int64_t got = 0, bytes = 0, quiet = 0;
    rd_kafka_t *rk = client(CONSUMER, names, values, settings, NULL, error, (size_t)room);
    if (!rk) return -1;
    rd_kafka_topic_t *rkt = rd_kafka_topic_new(rk, topic, NULL);
    rd_kafka_message_t **chunk = malloc(CHUNK * sizeof *chunk);
    rd_kafka_consume_start(rkt, 0, OFFSET_BEGINNING);
    while (got < records && quiet < 300) {
        ptrdiff_t count = rd_kafka_consume_batch(rkt, 0, 100, chunk, CHUNK);
        quiet = count > 0 ? 0 : quiet + 1;
        for (ptrdiff_t i = 0; i < count; i++) {
            if (!chunk[i]->err) {
                got++;
                bytes += (int64_t)chunk[i]->len;
            }
            rd_kafka_message_destroy(chunk[i]);
        }
    }
    rd_kafka_consume_stop(rkt, 0);
    rd_kafka_topic_destroy(rkt);
    rd_kafka_destroy(rk);
    free(chunk);
    return got < records ? -1 : bytes;
}
