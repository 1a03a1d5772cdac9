import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import org.apache.kafka.common.utils.internals.Exit;

/**
 * Runs tools one after the other in one JVM: words between tabs in; what the tool said, and a line with its status, out.
 */
public class Tools {
    /** Stands for the end of the process; some tools catch it and end once more, so that only the first end counts. */
    private static final class Ended extends RuntimeException {
    }

    private static final ByteArrayOutputStream SAID = new ByteArrayOutputStream();
    private static String said;
    private static int status;

    public static void main(String[] arguments) throws Exception {
        PrintStream out = System.out;
        PrintStream captured = new PrintStream(SAID, true, StandardCharsets.UTF_8);
        System.setOut(captured);
        System.setErr(captured);
        Exit.setExitProcedure((code, message) -> {
            end(code);
            throw new Ended();
        });
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            run(line.split("\t"));
            out.print(said + "\n\u0000" + status + "\n");
            out.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    private static void run(String[] words) throws ReflectiveOperationException {
        SAID.reset();
        said = null;
        String[] rest = java.util.Arrays.copyOfRange(words, 1, words.length);
        try {
            Class.forName(words[0]).getMethod("main", String[].class).invoke(null, (Object) rest);
            end(0);
        } catch (InvocationTargetException thrown) {
            if (said == null) {
                thrown.getCause().printStackTrace();
                end(1);
            }
        } catch (ClassNotFoundException missing) {
            missing.printStackTrace();
            end(1);
        }
    }

    private static void end(int code) {
        if (said == null) {
            said = SAID.toString(StandardCharsets.UTF_8);
            status = code;
        }
    }
}
