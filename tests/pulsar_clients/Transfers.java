import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.SubscriptionType;
import org.apache.pulsar.client.api.transaction.Transaction;

/**
 * Does orders in joint transactions, until it is killed: Transfers BOOTSTRAP URL RUN PARTITION SEED.
 *
 * <p>Orders come by a subscription of Pulsar's, and by a partition of Kafka's with a group's offsets. Each one is written
 * to an output by either client, and moves an amount between two accounts, to which both clients write. Chance decides
 * who opens a transaction, who ends it, and how one is given up.
 */
public class Transfers {
    private static final int MOST = 10;
    private static final int ACCOUNTS = 4;
    private static final int LARGEST_AMOUNT = 100;
    private static final int TIMEOUT_MS = 5_000;
    private static final int OFTEN = 10;
    private static final int SELDOM = 100;
    private static final String GROUP = "transfers";

    private final String run;
    private final String transactionalId;
    private final String label;
    private final Random random;
    private final Map<String, Object> kafka;
    private final Admin admin;
    private final KafkaConsumer<String, String> asked;
    private final TopicPartition place;
    private final PulsarClient pulsar;
    private final Consumer<String> orders;
    private final Map<String, Producer<String>> senders = new HashMap<>();
    private KafkaProducer<String, String> producer;
    private int count;

    /** What is written in the present transaction, and is not answered yet. */
    private final List<Future<?>> waiting = new ArrayList<>();

    /** Whether Kafka's producer has sent something in it. Otherwise that client sends no end. */
    private boolean written;

    public static void main(String[] arguments) throws Exception {
        new Transfers(arguments[0], arguments[1], arguments[2], Integer.parseInt(arguments[3]), arguments[4]).run();
    }

    private Transfers(String bootstrap, String url, String run, int partition, String seed) throws Exception {
        this.run = run;
        transactionalId = "transfers-" + partition + run;
        label = partition + "-" + seed + "-";
        random = new Random(31L * Long.parseLong(seed) + partition);
        kafka = Map.of("bootstrap.servers", bootstrap, "reconnect.backoff.ms", 20, "reconnect.backoff.max.ms", 200,
            "retry.backoff.ms", 20, "retry.backoff.max.ms", 200);
        admin = Admin.create(kafka);
        place = new TopicPartition("asked" + run, partition);
        asked = new KafkaConsumer<>(
            with(Map.of("group.id", GROUP, "enable.auto.commit", false, "auto.offset.reset", "earliest",
                "isolation.level", "read_committed", "max.poll.records", MOST)),
            new StringDeserializer(), new StringDeserializer());
        asked.assign(List.of(place));
        pulsar = PulsarClient.builder().serviceUrl(url).enableTransaction(true)
            .startingBackoffInterval(20, TimeUnit.MILLISECONDS).maxBackoffInterval(200, TimeUnit.MILLISECONDS).build();
        orders = pulsar.newConsumer(Schema.STRING).topic("orders" + run).subscriptionName("transform")
            .subscriptionType(SubscriptionType.Shared).receiverQueueSize(2 * MOST)
            .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest)
            .acknowledgmentGroupTime(0, TimeUnit.MILLISECONDS).isAckReceiptEnabled(true)
            .enableBatchIndexAcknowledgment(true).subscribe();
        initialise();
    }

    private void run() throws Exception {
        System.out.println("RUNNING");
        while (true) {
            try {
                if (random.nextInt(OFTEN) == 0) {
                    byPulsarAlone();
                }
                once();
            } catch (Exception error) {
                System.out.println("FAILED " + error);
                rewind();
                while (!orders.isConnected()) {
                    Thread.sleep(1);  // see Transform.java
                }
                orders.redeliverUnacknowledgedMessages();
            }
        }
    }

    /**
     * Ends a transaction in which Kafka's client writes nothing, and so says no end. If its next one is not Pulsar's, its
     * first write is refused, and it has to abort.
     */
    private void byPulsarAlone() throws Exception {
        producer.beginTransaction();
        Transaction transaction = begin();
        try {
            JoinTransaction.join(admin, transactionalId, transaction);
            (random.nextBoolean() ? transaction.commit() : transaction.abort())
                .get(2 * TIMEOUT_MS, TimeUnit.MILLISECONDS);
            producer.commitTransaction();
        } catch (Exception error) {
            initialise();
            throw error;
        }
    }

    private Transaction begin() throws Exception {
        return pulsar.newTransaction().withTransactionTimeout(TIMEOUT_MS, TimeUnit.MILLISECONDS).build().get();
    }

    /** Takes orders from both clients, and does them in one transaction. */
    private void once() throws Exception {
        List<Message<String>> messages = new ArrayList<>();
        int most = 1 + random.nextInt(MOST);
        for (Message<String> next; messages.size() < most
                && (next = orders.receive(20, TimeUnit.MILLISECONDS)) != null;) {
            messages.add(next);
        }
        List<String> numbers = new ArrayList<>(messages.stream().map(Message::getValue).toList());
        for (ConsumerRecord<String, String> each : asked.poll(Duration.ofMillis(numbers.isEmpty() ? 500 : 5))) {
            numbers.add(each.value());
        }
        if (numbers.isEmpty()) {
            return;
        }
        System.out.println("BEGINNING");
        count++;
        waiting.clear();
        written = false;
        producer.beginTransaction();
        Transaction transaction = null;
        try {
            if (random.nextBoolean()) {
                transaction = begin();
                if (random.nextBoolean()) {  // it may have written before it is joined
                    byPulsar(transaction, "pulsar", numbers.get(0));
                    settle();
                    JoinTransaction.join(admin, transactionalId, transaction);
                } else {
                    JoinTransaction.join(admin, transactionalId, transaction);
                    byPulsar(transaction, "pulsar", numbers.get(0));
                }
                byKafka("kafka", numbers.get(0));
            } else {
                byKafka("kafka", numbers.get(0));
                settle();
                transaction = JoinTransaction.join(admin, transactionalId, pulsar);
                byPulsar(transaction, "pulsar", numbers.get(0));
            }
            write(transaction, numbers);
            for (Message<String> each : messages) {
                waiting.add(orders.acknowledgeAsync(each.getMessageId(), transaction));
            }
            producer.sendOffsetsToTransaction(
                Map.of(place, new OffsetAndMetadata(asked.position(place))), asked.groupMetadata());
            settle();
            if (random.nextInt(SELDOM) == 0) {
                Thread.sleep(TIMEOUT_MS + TIMEOUT_MS / 5);  // the broker aborts it, and no end may succeed any more
            }
        } catch (Exception error) {
            giveUp(transaction);
            throw error;
        }
        end(transaction, numbers.size());
    }

    /** Writes the rest: the outputs of all orders but the first one, and what they move. */
    private void write(Transaction transaction, List<String> numbers) {
        for (String number : numbers) {
            if (!number.equals(numbers.get(0))) {
                byKafka("kafka", number);
                byPulsar(transaction, "pulsar", number);
            }
            int amount = 1 + random.nextInt(LARGEST_AMOUNT);
            int from = random.nextInt(ACCOUNTS);
            int to = (from + 1 + random.nextInt(ACCOUNTS - 1)) % ACCOUNTS;
            byEither(transaction, "account" + from, number + " " + -amount);
            byEither(transaction, "account" + to, number + " " + amount);
        }
    }

    private void byEither(Transaction transaction, String topic, String what) {
        if (random.nextBoolean()) {
            byKafka(topic, what);
        } else {
            byPulsar(transaction, topic, what);
        }
    }

    private void byKafka(String topic, String what) {
        written = true;
        waiting.add(producer.send(new ProducerRecord<>(topic + run, label + count + " " + what)));
    }

    private void byPulsar(Transaction transaction, String topic, String what) {
        waiting.add(senders.computeIfAbsent(topic, this::sender).newMessage(transaction)
            .value(label + count + " " + what).sendAsync());
    }

    private Producer<String> sender(String topic) {
        try {
            return pulsar.newProducer(Schema.STRING).topic(topic + run).enableBatching(false)
                .sendTimeout(0, TimeUnit.SECONDS).create();
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
    }

    private void settle() throws Exception {
        for (Future<?> each : waiting) {
            each.get(2 * TIMEOUT_MS, TimeUnit.MILLISECONDS);
        }
        waiting.clear();
    }

    /** Ends it, by Kafka's client alone, by Pulsar's and then by Kafka's, or by Pulsar's and a new producer. */
    private void end(Transaction transaction, int size) throws Exception {
        boolean commit = random.nextInt(5) > 0;
        int by = random.nextInt(5);
        boolean isEnded = false;
        System.out.println("ENDING");
        if (by < 3) {
            try {
                (commit ? transaction.commit() : transaction.abort()).get(2 * TIMEOUT_MS, TimeUnit.MILLISECONDS);
                isEnded = true;
            } catch (Exception error) {
                System.out.println("UNSURE " + error);  // whether it has ended: the producer asks for the same end
            }
        }
        if (isEnded && by == 0) {
            initialise();
        } else {
            try {
                endByKafka(commit);
            } catch (KafkaException error) {
                initialise();
                throw error;
            }
        }
        System.out.println((commit ? "COMMITTED " : "ABORTED ") + size);
        if (!commit) {
            rewind();
        }
    }

    private void endByKafka(boolean commit) {
        while (true) {
            try {
                if (commit) {
                    producer.commitTransaction();
                } else {
                    producer.abortTransaction();
                }
                return;
            } catch (TimeoutException error) {
                System.out.println("UNSURE " + error);
            }
        }
    }

    /**
     * Aborts it. Where the producer has sent nothing, its client says no end; and where a join has failed nobody knows
     * whether the two are one. Pulsar's client ends it then, or a new producer does.
     */
    private void giveUp(Transaction transaction) {
        int way = random.nextInt(3);
        try {
            if (way == 0 && transaction != null) {
                transaction.abort().get(2 * TIMEOUT_MS, TimeUnit.MILLISECONDS);
                endByKafka(false);
                return;
            }
            if (way == 1 && written) {
                endByKafka(false);
                return;
            }
        } catch (Exception error) {
            System.out.println("UNSURE " + error);
        }
        initialise();
    }

    /** Makes the producer anew, which aborts what its transactional id has open. */
    private void initialise() {
        if (producer != null) {
            producer.close(Duration.ZERO);
        }
        producer = new KafkaProducer<>(
            with(Map.of("transactional.id", transactionalId, "transaction.timeout.ms", TIMEOUT_MS,
                "delivery.timeout.ms", 2 * TIMEOUT_MS, "request.timeout.ms", TIMEOUT_MS, "linger.ms", 0)),
            new StringSerializer(), new StringSerializer());
        while (true) {
            try {
                producer.initTransactions();
                return;
            } catch (TimeoutException error) {
                System.out.println("UNSURE " + error);
            }
        }
    }

    /** Goes back to what the group has done. */
    private void rewind() {
        OffsetAndMetadata done = asked.committed(Set.of(place)).get(place);
        asked.seek(place, done == null ? 0 : done.offset());
    }

    private Map<String, Object> with(Map<String, Object> more) {
        Map<String, Object> options = new HashMap<>(kafka);
        options.putAll(more);
        return options;
    }
}
