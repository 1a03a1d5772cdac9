import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;

import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Consume, process, produce, exactly once; arguments: address source target group.
 *
 * Ends with the first error; the next one under the same transactional id goes on where this one committed.
 */
public final class Processor {
    private static final Duration WAIT = Duration.ofMillis(50);
    /** Each so many transactions one is aborted and done again. */
    private static final int ABORTED = 5;

    public static void main(String[] arguments) {
        String source = arguments[1];
        String target = arguments[2];
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(arguments[0], arguments[3]);
                KafkaProducer<byte[], byte[]> producer = producer(arguments[0], arguments[3])) {
            producer.initTransactions();
            consumer.subscribe(List.of(source));
            for (int number = 1;; ) {
                ConsumerRecords<byte[], byte[]> records = consumer.poll(WAIT);
                if (records.isEmpty()) {
                    continue;
                }
                producer.beginTransaction();
                Map<TopicPartition, OffsetAndMetadata> ends = new HashMap<>();
                for (ConsumerRecord<byte[], byte[]> each : records) {
                    producer.send(new ProducerRecord<>(target, each.partition(), each.key(), each.value()));
                    ends.put(new TopicPartition(source, each.partition()), new OffsetAndMetadata(each.offset() + 1));
                }
                if (number++ % ABORTED == 0) {
                    producer.abortTransaction();
                    back(consumer);
                    continue;
                }
                producer.sendOffsetsToTransaction(ends, consumer.groupMetadata());
                producer.commitTransaction();
            }
        } catch (RuntimeException error) {
            System.err.println(error);
            Runtime.getRuntime().halt(1);
        }
    }

    private static void back(KafkaConsumer<byte[], byte[]> consumer) {
        Map<TopicPartition, OffsetAndMetadata> committed = consumer.committed(consumer.assignment());
        for (TopicPartition partition : consumer.assignment()) {
            OffsetAndMetadata known = committed.get(partition);
            consumer.seek(partition, known == null ? 0 : known.offset());
        }
    }

    private static KafkaConsumer<byte[], byte[]> consumer(String address, String group) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", address);
        settings.put("group.id", group);
        // Under one name, so that the next one need not wait until the last one is missed.
        settings.put("group.instance.id", group);
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        settings.put("isolation.level", "read_committed");
        settings.put("session.timeout.ms", "2000");
        settings.put("heartbeat.interval.ms", "200");
        settings.put("max.poll.records", "200");
        settings.put("partition.assignment.strategy", "org.apache.kafka.clients.consumer.CooperativeStickyAssignor");
        return new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    private static KafkaProducer<byte[], byte[]> producer(String address, String group) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", address);
        settings.put("transactional.id", group);
        settings.put("transaction.timeout.ms", "10000");
        return new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer());
    }
}
