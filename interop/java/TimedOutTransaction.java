import java.time.Duration;
import java.util.Properties;

import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Begins a transaction that times out, ends it, and runs another; arguments: address topic transactionalId commit|abort timeoutMs pauseMs.
 *
 * Prints a line for each step: its name and "ok", or the error's class.
 */
public final class TimedOutTransaction {
    private TimedOutTransaction() {
    }

    public static void main(String[] arguments) throws InterruptedException {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("transactional.id", arguments[2]);
        settings.put("transaction.timeout.ms", arguments[4]);
        KafkaProducer<String, String> producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
        producer.initTransactions();
        producer.beginTransaction();
        send(producer, arguments[1], "late");
        producer.flush();
        Thread.sleep(Long.parseLong(arguments[5]));
        report("end", arguments[3].equals("commit") ? producer::commitTransaction : producer::abortTransaction);
        report("next", () -> {
            producer.beginTransaction();
            send(producer, arguments[1], "next");
            producer.commitTransaction();
        });
        producer.close(Duration.ofSeconds(5));
    }

    private static void send(KafkaProducer<String, String> producer, String topic, String value) {
        producer.send(new ProducerRecord<>(topic, value));
    }

    private static void report(String step, Runnable action) {
        try {
            action.run();
            System.out.println(step + " ok");
        } catch (RuntimeException error) {
            System.out.println(step + " " + error.getClass().getSimpleName());
        }
    }
}
