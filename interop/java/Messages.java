import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;

/** Encodes messages: each line of the input is a name, a version and JSON, separated by tabs; each line of the output has the bytes in hexadecimal. */
public final class Messages {
    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        ObjectMapper mapper = new ObjectMapper();
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] parts = line.split("\t", 3);
            short version = Short.parseShort(parts[1]);
            Class<?> converter = Class.forName("org.apache.kafka.common.message." + parts[0] + "DataJsonConverter");
            Message message = (Message) converter.getMethod("read", JsonNode.class, short.class).invoke(null, mapper.readTree(parts[2]), version);
            ByteBuffer encoded = MessageUtil.toByteBufferAccessor(message, version).buffer();
            byte[] bytes = new byte[encoded.remaining()];
            encoded.get(bytes);
            System.out.println(HexFormat.of().formatHex(bytes));
        }
    }
}
