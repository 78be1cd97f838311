package org.apache.spark.kafka010;

import java.util.HashMap;
import java.util.Map;
import scala.Option;

/** Collects the settings of a Kafka client; adds none for authentication, which this stand-in does not have. */
public final class KafkaConfigUpdater {
  private final Map<String, Object> settings = new HashMap<>();

  public KafkaConfigUpdater(String module, scala.collection.immutable.Map<String, Object> given) {
    given.foreachEntry(settings::put);
  }

  public KafkaConfigUpdater set(String name, Object value) {
    settings.put(name, value);
    return this;
  }

  public KafkaConfigUpdater setIfUnset(String name, Object value) {
    settings.putIfAbsent(name, value);
    return this;
  }

  public KafkaConfigUpdater setAuthenticationConfigIfNeeded() {
    return this;
  }

  public KafkaConfigUpdater setAuthenticationConfigIfNeeded(Option<KafkaTokenClusterConf> cluster) {
    return this;
  }

  public Map<String, Object> build() {
    return settings;
  }
}
