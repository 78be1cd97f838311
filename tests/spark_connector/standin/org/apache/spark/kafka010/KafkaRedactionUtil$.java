package org.apache.spark.kafka010;

import scala.Tuple2;
import scala.collection.immutable.Seq;

/** Stands for the Scala object KafkaRedactionUtil: without authentication there is nothing to hide in a log. */
public final class KafkaRedactionUtil$ {
  public static final KafkaRedactionUtil$ MODULE$ = new KafkaRedactionUtil$();

  private KafkaRedactionUtil$() {}

  public Seq<Tuple2<String, Object>> redactParams(Seq<Tuple2<String, Object>> settings) {
    return settings;
  }
}
