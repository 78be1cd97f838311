"""Short ways to say what a query of the tests reads and writes."""

from confluent_kafka import Producer


def fill(bootstrap, topic, rows):
    """Produce rows, whose values are their numbers."""
    producer = Producer({"bootstrap.servers": bootstrap})
    for row in rows:
        producer.produce(topic, key=b"%d" % (row % 97), value=b"%d" % row)
    producer.flush()


def reading(spark, bootstrap, topic, **options):
    """Return the stream of a topic, from its beginning."""
    reader = spark.readStream.format("exacta").option("kafka.bootstrap.servers", bootstrap).option("subscribe", topic)
    for name, value in {"startingOffsets": "earliest", **options}.items():
        reader = reader.option(name, value)
    return reader.load()


def writing(rows, bootstrap, checkpoint, *, form="exacta", **options):
    """Return the writer of a query that ends when all that is there is written."""
    writer = rows.writeStream.format(form).option("kafka.bootstrap.servers", bootstrap)
    for name, value in {"checkpointLocation": str(checkpoint), **options}.items():
        writer = writer.option(name, value)
    return writer.trigger(availableNow=True)


def run(writer):
    """Run a query to its end; raises what it fails with."""
    query = writer.start()
    query.awaitTermination()
    return query
