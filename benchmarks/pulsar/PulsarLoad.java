import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.ProducerBuilder;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.api.Reader;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.SubscriptionType;
import org.apache.pulsar.client.api.transaction.Transaction;

/**
 * One load of the benchmark by Pulsar's own client: {@code PulsarLoad CASE URL WARM_UP_SECONDS SECONDS}.
 *
 * <p>It talks with its parent by lines. READY comes after the warm-up, and MEASURED after the part that counts; after
 * each of them a line is awaited, so that the parent can look at the broker's costs exactly around that part. The last
 * line is a JSON object with what was done, after what was acknowledged has been read back and counted.
 */
public final class PulsarLoad {
    private static final byte[] BODY = new byte[100];
    private static final int CTP_MESSAGES = 100;
    private static final int CTP_TRANSACTIONS_PER_SECOND = 100;
    private static final int BULK_STEP = 2_000;
    private static final int FURTHER_CLIENTS = 10;
    private static final BufferedReader PARENT = new BufferedReader(new InputStreamReader(System.in));

    private final String url;
    private final double warmUpSeconds;
    private final double seconds;

    private PulsarLoad(String url, double warmUpSeconds, double seconds) {
        this.url = url;
        this.warmUpSeconds = warmUpSeconds;
        this.seconds = seconds;
    }

    public static void main(String[] arguments) throws Exception {
        PulsarLoad load =
            new PulsarLoad(arguments[1], Double.parseDouble(arguments[2]), Double.parseDouble(arguments[3]));
        switch (arguments[0]) {
            case "transactions-1" -> load.transactions(1);
            case "transactions-50" -> load.transactions(50);
            case "transform" -> load.transform(false);
            case "transform-batched" -> load.transform(true);
            case "bulk" -> load.bulk();
            case "first-transaction" -> load.firstTransaction();
            case "first-messages" -> firstMessages();
            case "answers" -> acknowledged(load.url);
            default -> throw new IllegalArgumentException(arguments[0]);
        }
        System.out.flush();
        Runtime.getRuntime().halt(0); // a client that is closed in order takes seconds, which nobody measures
    }

    // --- cases -------------------------------------------------------------------------------------------------------

    /** Each of the clients has a thread, a producer and a topic of its own; the connection is one for all. */
    private void transactions(int clients) throws Exception {
        PulsarClient client = client(url);
        List<Producer<byte[]>> producers = new ArrayList<>();
        for (int i = 0; i < clients; i++) {
            producers.add(unbatched(client, "transactions-" + i).create());
        }
        List<Double> warm = together(client, producers, warmUpSeconds);
        Tally tally = new Tally();
        tally.begin();
        List<Double> latencies = together(client, producers, seconds);
        tally.end(latencies.size(), (long) latencies.size() * BODY.length);
        long found = 0;
        for (int i = 0; i < clients; i++) {
            found += count(client, "transactions-" + i, null);
        }
        tally.report(latencies, warm.size() + latencies.size(), found);
    }

    private static List<Double> together(PulsarClient client, List<Producer<byte[]>> producers, double seconds)
            throws Exception {
        long end = System.nanoTime() + (long) (seconds * 1e9);
        ExecutorService threads = Executors.newFixedThreadPool(producers.size());
        List<Future<List<Double>>> running = new ArrayList<>();
        for (Producer<byte[]> producer : producers) {
            running.add(threads.submit(() -> {
                List<Double> latencies = new ArrayList<>();
                while (System.nanoTime() < end) {
                    long begin = System.nanoTime();
                    Transaction transaction = begin(client);
                    producer.newMessage(transaction).value(BODY).sendAsync().get();
                    transaction.commit().get();
                    latencies.add(milliseconds(begin));
                }
                return latencies;
            }));
        }
        List<Double> all = new ArrayList<>();
        for (Future<List<Double>> each : running) {
            all.addAll(each.get());
        }
        threads.shutdown();
        return all;
    }

    /** Each transaction receives, sends on and acknowledges; every message is acknowledged by a command of its own. */
    private void transform(boolean isBatched) throws Exception {
        PulsarClient client = client(url);
        int warm = (int) (warmUpSeconds * CTP_TRANSACTIONS_PER_SECOND);
        int measured = (int) (seconds * CTP_TRANSACTIONS_PER_SECOND);
        int messages = (warm + measured) * CTP_MESSAGES;
        Consumer<byte[]> consumer = client.newConsumer().topic("in").subscriptionName("transform")
            .subscriptionType(SubscriptionType.Shared).receiverQueueSize(1_000)
            .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest)
            .acknowledgmentGroupTime(0, TimeUnit.MILLISECONDS).isAckReceiptEnabled(true).subscribe();
        Producer<byte[]> feed = unbatched(client, "in").blockIfQueueFull(true).create();
        for (int i = 0; i < messages; i++) {
            feed.sendAsync(Integer.toString(i).getBytes());
        }
        feed.flush();
        ProducerBuilder<byte[]> builder = unbatched(client, "out").enableBatching(isBatched);
        Producer<byte[]> producer = builder.create();
        for (int i = 0; i < warm; i++) {
            transformOnce(client, consumer, producer);
        }
        Tally tally = new Tally();
        tally.begin();
        List<Double> latencies = new ArrayList<>();
        for (int i = 0; i < measured; i++) {
            long begin = System.nanoTime();
            transformOnce(client, consumer, producer);
            latencies.add(milliseconds(begin));
        }
        tally.end(measured, 0);
        Set<String> distinct = new HashSet<>();
        long found = count(client, "out", distinct);
        tally.report(latencies, messages, found == distinct.size() ? found : -found);
    }

    private static void transformOnce(PulsarClient client, Consumer<byte[]> consumer, Producer<byte[]> producer)
            throws Exception {
        Transaction transaction = begin(client);
        List<CompletableFuture<?>> answers = new ArrayList<>();
        for (int i = 0; i < CTP_MESSAGES; i++) {
            Message<byte[]> message = consumer.receive(30, TimeUnit.SECONDS);
            answers.add(producer.newMessage(transaction).value(message.getData()).sendAsync());
            answers.add(consumer.acknowledgeAsync(message.getMessageId(), transaction));
        }
        for (CompletableFuture<?> answer : answers) {
            answer.get();
        }
        transaction.commit().get();
    }

    /** One producer sends as much as it can, in batches; then one reader reads all of it. */
    private void bulk() throws Exception {
        PulsarClient client = client(url);
        Producer<byte[]> producer = client.newProducer().topic("bulk").sendTimeout(0, TimeUnit.SECONDS)
            .blockIfQueueFull(true).maxPendingMessages(5_000).batchingMaxPublishDelay(5, TimeUnit.MILLISECONDS)
            .batchingMaxMessages(10_000).batchingMaxBytes(512 * 1024).create();
        long warm = produce(producer, warmUpSeconds);
        Tally tally = new Tally();
        tally.begin();
        long sent = produce(producer, seconds);
        tally.end(sent, sent * BODY.length);
        long begin = System.nanoTime();
        long found = count(client, "bulk", null);
        tally.more.append(String.format(Locale.ROOT, ", \"read_seconds\": %.6f", milliseconds(begin) / 1e3));
        tally.report(List.of(), warm + sent, found);
    }

    private static long produce(Producer<byte[]> producer, double seconds) throws Exception {
        long end = System.nanoTime() + (long) (seconds * 1e9);
        long sent = 0;
        while (System.nanoTime() < end) {
            for (int i = 0; i < BULK_STEP; i++, sent++) {
                producer.sendAsync(BODY);
            }
        }
        producer.flush();
        return sent;
    }

    /** The first client of a process loads the client's classes too; those that come after it do not. */
    private void firstTransaction() throws Exception {
        List<Double> further = new ArrayList<>();
        double first = 0;
        for (int i = 0; i <= FURTHER_CLIENTS; i++) {
            long begin = System.nanoTime();
            PulsarClient client = client(url);
            Producer<byte[]> producer = unbatched(client, "first-transaction").create();
            Transaction transaction = begin(client);
            producer.newMessage(transaction).value(BODY).sendAsync().get();
            transaction.commit().get();
            if (i == 0) {
                first = milliseconds(begin);
            } else {
                further.add(milliseconds(begin));
            }
            client.close();
        }
        System.out.printf(Locale.ROOT, "{\"first_ms\": %.3f, \"further_ms\": %s}%n", first, further);
    }

    /** The parent names one broker after another; each time the line ACKNOWLEDGED says that a message is stored. */
    private static void firstMessages() throws Exception {
        for (String url = PARENT.readLine(); url != null; url = PARENT.readLine()) {
            acknowledged(url);
        }
    }

    private static void acknowledged(String url) throws Exception {
        while (true) {
            PulsarClient client = PulsarClient.builder().serviceUrl(url).operationTimeout(2, TimeUnit.SECONDS).build();
            try {
                client.newProducer().topic("first").create().send(BODY);
                System.out.println("ACKNOWLEDGED");
                client.closeAsync();
                return;
            } catch (PulsarClientException notYet) {
                client.closeAsync();
                Thread.sleep(10);
            }
        }
    }

    // --- means -------------------------------------------------------------------------------------------------------

    private static PulsarClient client(String url) throws PulsarClientException {
        return PulsarClient.builder().serviceUrl(url).enableTransaction(true).ioThreads(2).build();
    }

    private static ProducerBuilder<byte[]> unbatched(PulsarClient client, String topic) {
        return client.newProducer().topic(topic).sendTimeout(0, TimeUnit.SECONDS).enableBatching(false);
    }

    private static Transaction begin(PulsarClient client) throws Exception {
        return client.newTransaction().withTransactionTimeout(60, TimeUnit.SECONDS).build().get();
    }

    private static double milliseconds(long begin) {
        return (System.nanoTime() - begin) / 1e6;
    }

    /** Count what a reader finds in a topic from its beginning on, and keep the values where they are wanted. */
    private static long count(PulsarClient client, String topic, Set<String> values) throws Exception {
        long found = 0;
        try (Reader<byte[]> reader =
                client.newReader().topic(topic).receiverQueueSize(5_000).startMessageId(MessageId.earliest).create()) {
            while (reader.hasMessageAvailable()) {
                Message<byte[]> message = reader.readNext(20, TimeUnit.SECONDS);
                if (message == null) {
                    break;
                }
                found++;
                if (values != null) {
                    values.add(new String(message.getData()));
                }
            }
        }
        return found;
    }

    /** The measured part, and its report to the parent. */
    private static final class Tally {
        private final StringBuilder more = new StringBuilder();
        private long begin;
        private double elapsedSeconds;
        private long operations;
        private long payloadBytes;

        void begin() throws Exception {
            System.out.println("READY");
            PARENT.readLine();
            begin = System.nanoTime();
        }

        void end(long operations, long payloadBytes) throws Exception {
            elapsedSeconds = milliseconds(begin) / 1e3;
            this.operations = operations;
            this.payloadBytes = payloadBytes;
            System.out.println("MEASURED");
            PARENT.readLine();
        }

        void report(List<Double> latencies, long acknowledged, long found) {
            String all = latencies.stream().map(each -> String.format(Locale.ROOT, "%.4f", each))
                .collect(Collectors.joining(", "));
            System.out.printf(Locale.ROOT,
                "{\"operations\": %d, \"seconds\": %.6f, \"payload_bytes\": %d, \"acknowledged\": %d, \"found\": %d%s, "
                    + "\"latencies_ms\": [%s]}%n",
                operations, elapsedSeconds, payloadBytes, acknowledged, found, more, all);
        }
    }
}
