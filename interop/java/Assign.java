import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;

import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

/**
 * Kafka's own assignors on cases from standard input, one line of answer for each.
 *
 * A case: lines of words parted by tabs, "-" for nothing.
 *   node id rack | topic name replicas-of-partition-0;of-1;… | member id instance rack generation topics owned userdata
 *   run assignor
 * An answer: member=topic:partition,topic:partition;member=… or "error: …".
 */
public final class Assign {
    private final Map<Integer, Node> nodes = new LinkedHashMap<>();
    private final List<PartitionInfo> partitions = new ArrayList<>();
    private final Map<String, Subscription> members = new HashMap<>();

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        StringBuilder out = new StringBuilder();
        Assign current = new Assign();
        for (String line; (line = in.readLine()) != null; ) {
            String[] words = line.split("\t", -1);
            switch (words[0]) {
                case "node" -> current.nodes.put(
                    Integer.valueOf(words[1]),
                    new Node(Integer.parseInt(words[1]), "host", 1, orNull(words[2])));
                case "topic" -> current.topic(words);
                case "member" -> current.member(words);
                case "run" -> {
                    out.append(current.run(words[1])).append('\n');
                    current = new Assign();
                }
                default -> throw new IllegalArgumentException(line);
            }
        }
        System.out.print(out);
    }

    private static String orNull(String word) {
        return word.equals("-") ? null : word;
    }

    private static List<String> list(String word, String separator) {
        return word.equals("-") ? List.of() : Arrays.asList(word.split(separator));
    }

    private void topic(String[] words) {
        int number = 0;
        for (String replicas : list(words[2], ";")) {
            Node[] held = list(replicas, ",").stream().map(id -> nodes.get(Integer.valueOf(id))).toArray(Node[]::new);
            partitions.add(new PartitionInfo(words[1], number++, held.length > 0 ? held[0] : null, held, held));
        }
    }

    private void member(String[] words) {
        List<TopicPartition> owned = list(words[6], ",").stream().map(text -> {
            int colon = text.lastIndexOf(':');
            return new TopicPartition(text.substring(0, colon), Integer.parseInt(text.substring(colon + 1)));
        }).collect(Collectors.toList());
        ByteBuffer data = words[7].equals("-") ? null : ByteBuffer.wrap(HexFormat.of().parseHex(words[7]));
        Subscription subscription = new Subscription(
            list(words[5], ","), data, owned, Integer.parseInt(words[4]), Optional.ofNullable(orNull(words[3])));
        subscription.setGroupInstanceId(Optional.ofNullable(orNull(words[2])));
        members.put(words[1], subscription);
    }

    private String run(String name) {
        ConsumerPartitionAssignor assignor = switch (name) {
            case "range" -> new RangeAssignor();
            case "roundrobin" -> new RoundRobinAssignor();
            case "sticky" -> new StickyAssignor();
            case "cooperative-sticky" -> new CooperativeStickyAssignor();
            default -> throw new IllegalArgumentException(name);
        };
        Cluster cluster = new Cluster("id", nodes.values(), partitions, Set.of(), Set.of());
        try {
            return new TreeMap<>(assignor.assign(cluster, new GroupSubscription(members)).groupAssignment())
                .entrySet().stream()
                .map(entry -> entry.getKey() + "=" + entry.getValue().partitions().stream()
                    .map(tp -> tp.topic() + ":" + tp.partition()).collect(Collectors.joining(",")))
                .collect(Collectors.joining(";"));
        } catch (RuntimeException error) {
            return "error: " + error;
        }
    }
}
