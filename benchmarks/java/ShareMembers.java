import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.Scanner;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Members of a share group in threads, for share.py. A line on stdin is a turn: address topic group members. */
public final class ShareMembers {
    private static final Duration FIRST = Duration.ofSeconds(20);
    private static final Duration NEXT = Duration.ofSeconds(2);

    public static void main(String[] arguments) throws Exception {
        Scanner input = new Scanner(System.in);
        while (input.hasNextLine()) {
            String[] turn = input.nextLine().split(" ");
            int members = Integer.parseInt(turn[3]);
            ExecutorService threads = Executors.newFixedThreadPool(members);
            List<Future<double[]>> results = new ArrayList<>();
            for (int member = 0; member < members; member++) {
                results.add(threads.submit(() -> consume(turn[0], turn[1], turn[2])));
            }
            double records = 0;
            double bytes = 0;
            double first = Double.MAX_VALUE;
            double last = 0;
            for (Future<double[]> result : results) {
                double[] found = result.get();
                records += found[0];
                bytes += found[1];
                if (found[0] > 0) {
                    first = Math.min(first, found[2]);
                    last = Math.max(last, found[3]);
                }
            }
            threads.shutdown();
            System.out.printf(
                "{\"records\": %.0f, \"bytes\": %.0f, \"first\": %.6f, \"last\": %.6f}%n", records, bytes, first, last);
        }
    }

    /** Consume until nothing comes. Returns the number of records, their bytes, and when the first and the last ones came. */
    private static double[] consume(String servers, String topic, String group) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", servers);
        settings.put("group.id", group);
        var bytes = new ByteArrayDeserializer();
        double[] found = new double[4];
        try (KafkaShareConsumer<byte[], byte[]> consumer = new KafkaShareConsumer<>(settings, bytes, bytes)) {
            consumer.subscribe(List.of(topic));
            while (true) {
                ConsumerRecords<byte[], byte[]> records = consumer.poll(found[0] == 0 ? FIRST : NEXT);
                if (records.isEmpty()) {
                    return found;
                }
                double now = System.currentTimeMillis() / 1000.0;
                found[2] = found[0] == 0 ? now : found[2];
                found[3] = now;
                for (ConsumerRecord<byte[], byte[]> each : records) {
                    found[1] += each.value().length;
                }
                found[0] += records.count();
            }
        }
    }
}
