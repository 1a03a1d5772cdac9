import java.io.IOException;
import java.time.Duration;
import java.util.Properties;

import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.errors.ApplicationRecoverableException;
import org.apache.kafka.common.errors.AuthorizationException;
import org.apache.kafka.common.errors.InvalidTxnStateException;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Writes one number after the other to all topics at once, each number in a transaction, and the attempt as key; arguments: address
 * topics transactionalId firstNumber.
 *
 * Tells of each transaction how it ended, and ends itself when its input does, or with the first error that is none of a transaction.
 */
public final class Transactor {
    /** Each so many numbers are written once in a transaction that is aborted, before they are in one that is not. */
    private static final int ABORTED_EACH = 5;

    private final String[] topics;
    private final int first;
    private int attempts;
    private final Properties settings = new Properties();
    private KafkaProducer<byte[], byte[]> producer;

    private Transactor(String address, String[] topics, String transactionalId, int first) {
        settings.put("bootstrap.servers", address);
        settings.put("transactional.id", transactionalId);
        settings.put("transaction.timeout.ms", "60000");
        settings.put("metadata.max.age.ms", "500");
        this.topics = topics;
        this.first = first;
        begin();
    }

    private void begin() {
        producer = new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer());
        untilHeard(producer::initTransactions);
    }

    public static void main(String[] arguments) throws IOException {
        try {
            new Transactor(arguments[0], arguments[1].split(","), arguments[2], Integer.parseInt(arguments[3])).run();
        } catch (RuntimeException error) {
            System.out.println("failed " + error);
            Runtime.getRuntime().halt(1);
        }
    }

    private void run() throws IOException {
        for (int number = first; System.in.available() == 0; number++) {
            if (number % ABORTED_EACH == 0) {
                write(number, false);
            }
            while (!write(number, true)) {
                continue;
            }
        }
        producer.close();
    }

    /** Whether it is committed; what must be aborted is written again. */
    private boolean write(int number, boolean commits) {
        String attempt = first + "." + attempts++;
        producer.beginTransaction();
        try {
            for (String topic : topics) {
                producer.send(new ProducerRecord<>(topic, 0, attempt.getBytes(), Integer.toString(number).getBytes()));
            }
            if (commits) {
                untilHeard(producer::commitTransaction);
                System.out.println("committed " + number);
                return true;
            }
            producer.flush();
        } catch (ApplicationRecoverableException | AuthorizationException error) {
            throw error;
        } catch (KafkaException error) {
            System.out.println("must be aborted: " + error);
        }
        abort();
        System.out.println("aborted " + number + " " + attempt);
        return false;
    }

    /**
     * The coordinator may have heard of nothing that could be aborted, while the transaction before is still ending: that is the
     * producer's end. Another of the transactional id waits for it, and goes on; nothing is committed meanwhile.
     */
    private void abort() {
        try {
            untilHeard(producer::abortTransaction);
        } catch (InvalidTxnStateException error) {
            System.out.println("begun anew: " + error);
            producer.close(Duration.ZERO);
            begin();
        }
    }

    private static void untilHeard(Runnable call) {
        while (true) {
            try {
                call.run();
                return;
            } catch (TimeoutException error) {
                System.out.println("not heard yet: " + error);
            }
        }
    }
}
