import static java.util.Collections.singleton;
import static java.util.Collections.singletonList;
import static java.util.Collections.singletonMap;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Future;

import org.apache.kafka.clients.admin.AdminClient;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * What a program of the year 2019 does with a topic, from its creation to its end, each step a line; arguments: address topic.
 *
 * Written with what that client has and later ones have not any more: configs altered as a whole, offsets of a transaction by the group's name.
 */
public final class Oldest {
    private static final String[] CODECS = {"none", "gzip", "snappy", "lz4", "zstd"};
    private static final int EACH = 100;
    private static final Duration POLL = Duration.ofMillis(200);

    private final String address;
    private final String topic;
    private final String group;
    private final AdminClient admin;

    private Oldest(String address, String topic) {
        this.address = address;
        this.topic = topic;
        this.group = topic + "-group";
        this.admin = AdminClient.create(settings());
    }

    public static void main(String[] arguments) throws Exception {
        Oldest client = new Oldest(arguments[0], arguments[1]);
        client.create();
        client.write();
        client.copy();
        client.delete();
        client.admin.close();
    }

    private Properties settings(String... more) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", address);
        for (int at = 0; at < more.length; at += 2) {
            settings.put(more[at], more[at + 1]);
        }
        return settings;
    }

    private void create() throws Exception {
        admin.createTopics(singleton(new NewTopic(topic, 3, (short) 1))).all().get();
        admin.createPartitions(singletonMap(topic, NewPartitions.increaseTo(4))).all().get();
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        Config config = new Config(singleton(new ConfigEntry("retention.ms", "12345678")));
        admin.alterConfigs(singletonMap(resource, config)).all().get();
        int partitions = admin.describeTopics(singleton(topic)).all().get().get(topic).partitions().size();
        Config told = admin.describeConfigs(singleton(resource)).all().get().get(resource);
        System.out.println(partitions + " partitions, kept for " + told.get("retention.ms").value() + " ms");
    }

    private void write() throws Exception {
        for (String codec : CODECS) {
            Properties settings = settings("enable.idempotence", "true", "acks", "all", "compression.type", codec);
            try (KafkaProducer<String, String> producer =
                    new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
                List<Future<?>> sent = new ArrayList<>();
                for (int number = 0; number < EACH; number++) {
                    sent.add(producer.send(new ProducerRecord<>(topic, "k" + number, codec)));
                }
                for (Future<?> each : sent) {
                    each.get();
                }
            }
        }
        System.out.println("written with " + String.join(", ", CODECS));
    }

    /** Reads all in a group, commits that within a transaction, and reads on: what is committed there, and not what is aborted. */
    private void copy() throws Exception {
        Properties reading = settings("group.id", group, "auto.offset.reset", "earliest", "isolation.level", "read_committed");
        reading.put("enable.auto.commit", "false");
        Properties writing = settings("transactional.id", group);
        try (KafkaConsumer<String, String> consumer =
                        new KafkaConsumer<>(reading, new StringDeserializer(), new StringDeserializer());
                KafkaProducer<String, String> producer =
                        new KafkaProducer<>(writing, new StringSerializer(), new StringSerializer())) {
            consumer.subscribe(singletonList(topic));
            Map<TopicPartition, OffsetAndMetadata> read = new HashMap<>();
            for (int number = 0; number < EACH * CODECS.length;) {
                for (ConsumerRecord<String, String> record : consumer.poll(POLL)) {
                    read.put(new TopicPartition(topic, record.partition()), new OffsetAndMetadata(record.offset() + 1));
                    number++;
                }
            }
            producer.initTransactions();
            producer.beginTransaction();
            producer.send(new ProducerRecord<>(topic, "k", "aborted")).get();
            producer.abortTransaction();
            producer.beginTransaction();
            producer.send(new ProducerRecord<>(topic, "k", "committed"));
            producer.sendOffsetsToTransaction(read, group);
            producer.commitTransaction();
            List<String> further = new ArrayList<>();
            while (further.isEmpty()) {
                consumer.poll(POLL).forEach(record -> further.add(record.value()));
            }
            long committed = 0;
            for (TopicPartition place : read.keySet()) {
                committed += consumer.committed(place).offset();
            }
            System.out.println("read " + committed + ", then " + further);
        }
    }

    private void delete() throws Exception {
        System.out.println("the group is " + admin.describeConsumerGroups(singleton(group)).all().get().get(group).state());
        admin.deleteConsumerGroups(singleton(group)).all().get();
        TopicPartition first = new TopicPartition(topic, 0);
        Map<TopicPartition, RecordsToDelete> some = singletonMap(first, RecordsToDelete.beforeOffset(7));
        long low = admin.deleteRecords(some).lowWatermarks().get(first).get().lowWatermark();
        admin.deleteTopics(singleton(topic)).all().get();
        boolean there = admin.listTopics().names().get().contains(topic);
        System.out.println("records from " + low + " on, and then " + (there ? "still" : "not any more") + " there");
    }
}
