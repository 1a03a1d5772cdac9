import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.Metric;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** All numbers that kafka-clients has of a producer, a consumer of each protocol and an admin; arguments: address topic. A line "group name" for each. */
public final class Numbers {
    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("transactional.id", "numbers");
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            producer.initTransactions();
            producer.beginTransaction();
            producer.send(new ProducerRecord<>(arguments[1], new byte[3])).get();
            producer.commitTransaction();
            tell(producer.metrics());
        }
        for (String protocol : List.of("classic", "consumer")) {
            consume(arguments, protocol);
        }
        settings.remove("transactional.id");
        try (Admin admin = Admin.create(settings)) {
            admin.describeCluster().clusterId().get();
            tell(admin.metrics());
        }
    }

    private static void consume(String[] arguments, String protocol) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("group.id", "numbers-" + protocol);
        settings.put("group.protocol", protocol);
        settings.put("auto.offset.reset", "earliest");
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.subscribe(List.of(arguments[1]));
            while (consumer.poll(Duration.ofMillis(200)).isEmpty()) {
            }
            tell(consumer.metrics());
        }
    }

    private static void tell(Map<MetricName, ? extends Metric> metrics) {
        for (MetricName name : metrics.keySet()) {
            System.out.println("NUMBER " + name.group() + " " + name.name());
        }
    }
}
