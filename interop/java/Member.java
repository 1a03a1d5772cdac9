import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;

import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RebalanceInProgressException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** A consumer of kafka-clients; arguments: address topic group classic|consumer. Tells what it owns, gets and commits, as interop/mixed_member.py. */
public final class Member {
    public static void main(String[] arguments) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("group.id", arguments[2]);
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        settings.put("max.poll.interval.ms", "5000");
        settings.put("group.protocol", arguments[3]);
        if (arguments[3].equals("classic")) {
            settings.put("session.timeout.ms", "2000");
            settings.put("heartbeat.interval.ms", "100");
            settings.put("partition.assignment.strategy", "org.apache.kafka.clients.consumer.RoundRobinAssignor");
        }
        var bytes = new ByteArrayDeserializer();
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings, bytes, bytes)) {
            consumer.subscribe(List.of(arguments[1]), new Teller());
            while (true) {
                ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofMillis(50));
                for (ConsumerRecord<byte[], byte[]> each : records) {
                    say("got " + each.partition() + " " + each.offset());
                }
                commit(consumer, records);
            }
        }
    }

    private static void commit(KafkaConsumer<byte[], byte[]> consumer, ConsumerRecords<byte[], byte[]> records) {
        try {
            for (Map.Entry<TopicPartition, OffsetAndMetadata> end : records.nextOffsets().entrySet()) {
                consumer.commitSync(Map.of(end.getKey(), end.getValue()));
                say("committed " + end.getKey().partition() + " " + end.getValue().offset());
            }
        } catch (CommitFailedException | RebalanceInProgressException lost) {
            // The partitions are somebody else's by now.
        }
    }

    private static void say(String words) {
        System.out.println(System.nanoTime() + " " + words);
    }

    private static final class Teller implements ConsumerRebalanceListener {
        private final Set<Integer> owned = new TreeSet<>();

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            partitions.forEach(each -> owned.add(each.partition()));
            tell();
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            partitions.forEach(each -> owned.remove(each.partition()));
            tell();
        }

        private void tell() {
            say("owned " + owned.stream().map(each -> "" + each).collect(Collectors.joining(" ")));
        }
    }
}
