import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

/**
 * A Kafka Streams application with exactly_once_v2: numbers and adds up the orders of each customer.
 *
 * `orders` holds customer and amount by number of order, `names` the customers' names. An order is given its customer as
 * key, which takes it through a repartition topic; joined with the name, a table; and added to what is known of the
 * customer, a state with a changelog. Each order yields one record of `totals`: name, number of the order among the
 * customer's, sum so far. So the records of a customer, in order, say whether anything was lost, repeated or mixed up.
 *
 * Arguments: bootstrap servers, application id, folder for the state. Topics' names begin with the application id.
 */
public final class Totals {
    public static void main(String[] arguments) throws InterruptedException {
        String application = arguments[1];
        StreamsBuilder builder = new StreamsBuilder();
        KTable<String, String> names = builder.table(application + "-names", state("names"));
        builder.<String, String>stream(application + "-orders")
            .selectKey((number, order) -> order.split(" ")[0])
            .join(names, (order, name) -> name + " " + order.split(" ")[1])
            .groupByKey()
            .aggregate(() -> "? 0 0", (customer, order, total) -> added(order, total), state("totals"))
            .toStream()
            .to(application + "-totals");
        try (KafkaStreams streams = new KafkaStreams(builder.build(), properties(arguments))) {
            CountDownLatch ended = new CountDownLatch(1);
            streams.setStateListener((now, before) -> System.out.println(now));
            streams.setUncaughtExceptionHandler(error -> {
                System.out.println("FAILED " + error);
                return StreamThreadExceptionResponse.REPLACE_THREAD;
            });
            Runtime.getRuntime().addShutdownHook(new Thread(() -> {
                streams.close();
                ended.countDown();
            }));
            streams.start();
            ended.await();
        }
    }

    private static String added(String order, String total) {
        String[] fresh = order.split(" ");
        String[] known = total.split(" ");
        return fresh[0] + " " + (Long.parseLong(known[1]) + 1) + " " + (Long.parseLong(known[2]) + Long.parseLong(fresh[1]));
    }

    private static Materialized<String, String, KeyValueStore<Bytes, byte[]>> state(String name) {
        // Without a cache every record is passed on, and written to the changelog. In memory, so that a killed application
        // knows nothing but what the changelog says: on disk, state of aborted transactions may survive (KAFKA-20685).
        return Materialized.<String, String>as(Stores.inMemoryKeyValueStore(name)).withCachingDisabled();
    }

    private static Properties properties(String[] arguments) {
        Properties properties = new Properties();
        properties.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, arguments[0]);
        properties.put(StreamsConfig.APPLICATION_ID_CONFIG, arguments[1]);
        properties.put(StreamsConfig.STATE_DIR_CONFIG, arguments[2]);
        properties.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        properties.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        properties.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        properties.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, 2);
        properties.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, 1);
        properties.put(StreamsConfig.REPARTITION_PURGE_INTERVAL_MS_CONFIG, 1_000);
        // Who was killed is soon missed, and found again soon.
        properties.put("session.timeout.ms", 2_000);
        properties.put("heartbeat.interval.ms", 500);
        properties.put("reconnect.backoff.max.ms", 200);
        properties.put("auto.offset.reset", "earliest");
        return properties;
    }
}
