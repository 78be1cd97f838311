import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import org.apache.kafka.common.utils.internals.Exit;

/**
 * Runs command line tools one after another in one virtual machine, whose start would cost more than they do.
 *
 * A line on standard input names what to run: main class, standard input and arguments, each in Base64, with blanks
 * between. The answer is a line: exit status, standard output and standard error. A tool ends as it would by itself:
 * what it would exit with is its status. What it wants to have run at its end is run then, but threads that it leaves
 * behind live on: a tool that has some is better off in a process of its own.
 */
public final class Toolbox {
    /** Thrown where a tool would end the virtual machine. Some catch it and go on, but nothing that they say counts. */
    private static final class Exited extends Error {
        Exited() {
            super(null, null, false, false);
        }
    }

    /** Where output goes now: tools may keep the stream that they found first. */
    private static final class Current extends OutputStream {
        private final ByteArrayOutputStream target = new ByteArrayOutputStream();

        @Override
        public void write(int value) {
            write(new byte[] {(byte) value}, 0, 1);
        }

        @Override
        public void write(byte[] bytes, int offset, int length) {
            if (!exited) {
                target.write(bytes, offset, length);
            }
        }

        String taken() {
            String encoded = Base64.getEncoder().encodeToString(target.toByteArray());
            target.reset();
            return encoded;
        }
    }

    /** Whether the tool that runs has exited, and with what. */
    private static volatile boolean exited;
    private static int status;

    /** What it wants to have run at its end: some send only then what is left. */
    private static final List<Runnable> hooks = new ArrayList<>();

    public static void main(String[] none) throws IOException {
        PrintStream answers = System.out;
        Current out = new Current();
        Current err = new Current();
        System.setOut(new PrintStream(out, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(err, true, StandardCharsets.UTF_8));
        Exit.setExitProcedure(Toolbox::exit);
        Exit.setHaltProcedure(Toolbox::exit);
        Exit.setShutdownHookAdder((name, hook) -> hooks.add(hook));
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            List<byte[]> words = Arrays.stream(line.split(" ", -1)).map(Base64.getDecoder()::decode).toList();
            System.setIn(new ByteArrayInputStream(words.get(1)));
            String[] arguments = words.stream().skip(2).map(Toolbox::text).toArray(String[]::new);
            exited = false;
            int returned = run(text(words.get(0)), arguments);
            if (!exited) {
                status = returned;
            }
            hooks.forEach(Runnable::run);
            hooks.clear();
            answers.println(status + " " + out.taken() + " " + err.taken());
            answers.flush();
        }
    }

    private static void exit(int code, String message) {
        if (!exited) {
            exited = true;
            status = code;
        }
        throw new Exited();
    }

    private static int run(String mainClass, String[] arguments) {
        try {
            Class.forName(mainClass).getMethod("main", String[].class).invoke(null, (Object) arguments);
            return 0;
        } catch (InvocationTargetException wrapped) {
            // As the virtual machine does with what nobody catches; after an exit nobody hears of it.
            wrapped.getCause().printStackTrace();
            return 1;
        } catch (ReflectiveOperationException missing) {
            missing.printStackTrace();
            return 127;
        }
    }

    private static String text(byte[] bytes) {
        return new String(bytes, StandardCharsets.UTF_8);
    }
}
