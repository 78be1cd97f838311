import java.util.List;
import java.util.ArrayList;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.SubscriptionType;
import org.apache.pulsar.client.api.transaction.Transaction;

/** Consumes, transforms and produces in transactions, until it is killed: Transform URL INPUT OUTPUT TYPE ACKS SEED. */
public class Transform {
    private static final int MOST = 20;
    private static final int TIMEOUT_S = 5;

    /**
     * The last message that this process has acknowledged cumulatively. A connection that is lost while messages are
     * being transformed brings these a second time, and nobody but their consumer can tell.
     */
    private static MessageId last = MessageId.earliest;

    public static void main(String[] arguments) throws Exception {
        boolean cumulative = arguments[4].equals("cumulative");
        Random random = new Random(Long.parseLong(arguments[5]));
        PulsarClient client = PulsarClient.builder().serviceUrl(arguments[0]).enableTransaction(true)
            .startingBackoffInterval(20, TimeUnit.MILLISECONDS).maxBackoffInterval(200, TimeUnit.MILLISECONDS).build();
        Consumer<byte[]> consumer = client.newConsumer().topic(arguments[1]).subscriptionName("transform")
            .subscriptionType(SubscriptionType.valueOf(arguments[3])).receiverQueueSize(2 * MOST)
            .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest)
            .acknowledgmentGroupTime(0, TimeUnit.MILLISECONDS).isAckReceiptEnabled(true)
            .enableBatchIndexAcknowledgment(true).subscribe();
        Producer<byte[]> producer = client.newProducer().topic(arguments[2]).enableBatching(false)
            .sendTimeout(0, TimeUnit.SECONDS).create();
        System.out.println("RUNNING");
        while (true) {
            try {
                once(client, consumer, producer, cumulative, random);
            } catch (Exception error) {
                System.out.println("FAILED " + error);
                // What was delivered and not acknowledged comes again, and what waits in the client is dropped. While it
                // connects anew the client would count an epoch of which it never tells the broker, and then drop
                // everything that comes (4.2.4).
                while (!consumer.isConnected()) {
                    Thread.sleep(1);
                }
                consumer.redeliverUnacknowledgedMessages();
            }
        }
    }

    private static void once(PulsarClient client, Consumer<byte[]> consumer, Producer<byte[]> producer,
            boolean cumulative, Random random) throws Exception {
        int most = 1 + random.nextInt(MOST);
        List<Message<byte[]>> messages = new ArrayList<>();
        for (Message<byte[]> next; messages.size() < most
                && (next = consumer.receive(messages.isEmpty() ? 1000 : 20, TimeUnit.MILLISECONDS)) != null;) {
            if (!cumulative || next.getMessageId().compareTo(last) > 0) {
                messages.add(next);
            }
        }
        if (messages.isEmpty()) {
            return;
        }
        Transaction transaction =
            client.newTransaction().withTransactionTimeout(TIMEOUT_S, TimeUnit.SECONDS).build().get();
        try {
            List<CompletableFuture<?>> asked = new ArrayList<>();
            for (Message<byte[]> message : messages) {
                asked.add(producer.newMessage(transaction).value(message.getData()).sendAsync());
                if (!cumulative) {
                    asked.add(consumer.acknowledgeAsync(message.getMessageId(), transaction));
                }
            }
            if (cumulative) {
                asked.add(consumer.acknowledgeCumulativeAsync(messages.get(messages.size() - 1).getMessageId(), transaction));
            }
            for (CompletableFuture<?> each : asked) {
                each.get(2 * TIMEOUT_S, TimeUnit.SECONDS);
            }
            if (random.nextInt(5) > 0) {
                transaction.commit().get(2 * TIMEOUT_S, TimeUnit.SECONDS);
                last = messages.get(messages.size() - 1).getMessageId();
                System.out.println("COMMITTED " + messages.size());
                return;
            }
        } catch (Exception error) {
            transaction.abort();  // whoever has lost its connection does not wait for it: its time runs out
            throw error;
        }
        transaction.abort().get(2 * TIMEOUT_S, TimeUnit.SECONDS);
        System.out.println("ABORTED " + messages.size());
        if (cumulative) {
            consumer.redeliverUnacknowledgedMessages();
        }
    }
}
