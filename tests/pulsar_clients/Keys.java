import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.pulsar.client.api.HashingScheme;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.ProducerBuilder;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.TypedMessageBuilder;

/** Sends each key once in each of some ways, with the way's name as the value: Keys BOOTSTRAP URL TOPIC KEYS WAY... */
public class Keys {
    public static void main(String[] arguments) throws Exception {
        String[] keys = arguments[3].split(",");
        try (PulsarClient client = PulsarClient.builder().serviceUrl(arguments[1]).build()) {
            for (String way : List.of(arguments).subList(4, arguments.length)) {
                if (way.startsWith("kafka")) {
                    byKafka(arguments[0], arguments[2], keys, way);
                } else {
                    byPulsar(client.newProducer(Schema.STRING).topic(arguments[2]), keys, way);
                }
            }
        }
    }

    private static void byKafka(String bootstrap, String topic, String[] keys, String way) throws Exception {
        Map<String, Object> options = way.equals("kafka AsPulsar")
            ? Map.of("bootstrap.servers", bootstrap, "partitioner.class", "AsPulsar") : Map.of("bootstrap.servers", bootstrap);
        List<Future<?>> asked = new ArrayList<>();
        try (var producer = new KafkaProducer<>(options, new StringSerializer(), new StringSerializer())) {
            for (String key : keys) {
                asked.add(producer.send(new ProducerRecord<>(topic, key, way)));
            }
        }
        for (Future<?> each : asked) {
            each.get();
        }
    }

    private static void byPulsar(ProducerBuilder<String> builder, String[] keys, String way) throws Exception {
        if (way.startsWith("pulsar AsKafka")) {
            builder.messageRouter(new AsKafka());
        } else if (way.startsWith("pulsar Murmur3_32Hash")) {
            builder.hashingScheme(HashingScheme.Murmur3_32Hash);
        }
        List<Future<?>> asked = new ArrayList<>();
        try (Producer<String> producer = builder.create()) {
            for (String key : keys) {
                TypedMessageBuilder<String> message = producer.newMessage().value(way);
                asked.add((way.endsWith(", bytes") ? message.keyBytes(key.getBytes(StandardCharsets.UTF_8))
                    : message.key(key)).sendAsync());
            }
            producer.flush();
        }
        for (Future<?> each : asked) {
            each.get();
        }
    }
}
