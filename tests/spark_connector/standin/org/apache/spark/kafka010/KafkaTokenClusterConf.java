package org.apache.spark.kafka010;

/** The settings of a cluster for which Spark would fetch tokens: there is never one here. */
public final class KafkaTokenClusterConf {
  private KafkaTokenClusterConf() {}
}
