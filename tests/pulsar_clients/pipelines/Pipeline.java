import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.SubscriptionType;
import org.apache.pulsar.client.api.transaction.Transaction;

/** Consume, transform and produce in transactions until killed: url input output type cumulative|individual seed. */
public class Pipeline {
    private static final int TIMEOUT_MS = 3000;

    public static void main(String[] arguments) throws Exception {
        Random random = new Random(Long.parseLong(arguments[5]));
        while (true) {
            PulsarClient client = PulsarClient.builder()
                    .serviceUrl(arguments[0])
                    .enableTransaction(true)
                    .operationTimeout(5, TimeUnit.SECONDS)
                    .maxBackoffInterval(500, TimeUnit.MILLISECONDS)
                    .build();
            try {
                run(client, arguments, random);
            } catch (Exception error) {
                // A new client begins where the broker says that the subscription is. One that acknowledges all messages
                // up to one must not begin before the transaction that it leaves behind has ended.
                System.err.println(error);
                client.closeAsync();
                Thread.sleep(arguments[4].equals("cumulative") ? TIMEOUT_MS + 1000 : 200);
            }
        }
    }

    private static void run(PulsarClient client, String[] arguments, Random random) throws Exception {
        boolean cumulative = arguments[4].equals("cumulative");
        Consumer<byte[]> consumer = client.newConsumer()
                .topic(arguments[1])
                .subscriptionName("pipeline")
                .subscriptionType(SubscriptionType.valueOf(arguments[3]))
                .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest)
                .enableBatchIndexAcknowledgment(true)
                .subscribe();
        Producer<byte[]> producer = client.newProducer().topic(arguments[2]).sendTimeout(0, TimeUnit.SECONDS).create();
        while (true) {
            List<Message<byte[]>> taken = new ArrayList<>();
            int most = 1 + random.nextInt(8);
            while (taken.size() < most) {
                Message<byte[]> message = consumer.receive(200, TimeUnit.MILLISECONDS);
                if (message == null) {
                    break;
                }
                taken.add(message);
            }
            if (taken.isEmpty()) {
                continue;
            }
            Transaction transaction =
                    client.newTransaction().withTransactionTimeout(TIMEOUT_MS, TimeUnit.MILLISECONDS).build().get(10, TimeUnit.SECONDS);
            List<CompletableFuture<?>> done = new ArrayList<>();
            for (Message<byte[]> each : taken) {
                done.add(producer.newMessage(transaction).value(each.getValue()).sendAsync());
                if (!cumulative) {
                    done.add(consumer.acknowledgeAsync(each.getMessageId(), transaction));
                }
            }
            if (cumulative) {
                Message<byte[]> last = taken.get(taken.size() - 1);
                done.add(consumer.acknowledgeCumulativeAsync(last.getMessageId(), transaction));
            }
            for (CompletableFuture<?> each : done) {
                each.get(20, TimeUnit.SECONDS);
            }
            if (random.nextInt(5) == 0) {
                transaction.abort().get(20, TimeUnit.SECONDS);
                if (!arguments[3].equals("Shared")) {
                    // Everything comes again, and what is in the queue here must not be taken before it.
                    consumer.redeliverUnacknowledgedMessages();
                }
            } else {
                transaction.commit().get(20, TimeUnit.SECONDS);
            }
        }
    }
}
