import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.header.Header;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.transforms.Transformation;
import org.apache.kafka.connect.transforms.predicates.Predicate;

/** Applies Kafka Connect's transforms and predicates to records: a line of JSON in, a line of JSON out. */
public class Transforms {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final JsonConverter TYPED = converter("true");
    private static final JsonConverter PLAIN = converter("false");

    private static JsonConverter converter(String schemas) {
        JsonConverter one = new JsonConverter();
        one.configure(Map.of("schemas.enable", schemas), false);
        return one;
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            ObjectNode answer = JSON.createObjectNode();
            try {
                apply(JSON.readTree(line), answer);
            } catch (Exception error) {
                answer.put("error", String.valueOf(error.getMessage()));
            }
            System.out.println(JSON.writeValueAsString(answer));
        }
    }

    @SuppressWarnings("unchecked")
    private static void apply(JsonNode asked, ObjectNode answer) throws Exception {
        SinkRecord record = record(asked);
        Map<String, String> config = new HashMap<>();
        asked.get("config").fields().forEachRemaining(one -> config.put(one.getKey(), one.getValue().asText()));
        Object made = Class.forName(asked.get("class").asText()).getDeclaredConstructor().newInstance();
        if (made instanceof Predicate) {
            Predicate<SinkRecord> predicate = (Predicate<SinkRecord>) made;
            predicate.configure(config);
            answer.put("holds", predicate.test(record));
            return;
        }
        Transformation<SinkRecord> transform = (Transformation<SinkRecord>) made;
        transform.configure(config);
        SinkRecord result = transform.apply(record);
        if (result == null) {
            answer.put("dropped", true);
            return;
        }
        answer.put("topic", result.topic());
        answer.set("key", plain(result.keySchema(), result.key()));
        answer.set("value", plain(result.valueSchema(), result.value()));
        ArrayNode headers = answer.putArray("headers");
        for (Header header : result.headers()) {
            headers.addArray().add(header.key()).add(plain(header.schema(), header.value()));
        }
    }

    private static SinkRecord record(JsonNode asked) throws Exception {
        SchemaAndValue key = typed(asked.get("key"));
        SchemaAndValue value = typed(asked.get("value"));
        SinkRecord record = new SinkRecord("orders", 3, key.schema(), key.value(), value.schema(), value.value(), 7,
            asked.get("timestamp").asLong(), TimestampType.CREATE_TIME);
        record.headers().addString("a", "x");
        return record;
    }

    private static SchemaAndValue typed(JsonNode node) throws Exception {
        return TYPED.toConnectData("orders", JSON.writeValueAsBytes(node));
    }

    private static JsonNode plain(Schema schema, Object value) throws Exception {
        byte[] data = PLAIN.fromConnectData("orders", schema, value);
        return data == null ? JSON.nullNode() : JSON.readTree(data);
    }
}
