package main

import (
	"context"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
)

// admin TOPIC GROUP ID: tells what can be asked of a topic, a group that reads it and a transactional id that writes.
func admin(ctx context.Context, bootstrap string, names []string) error {
	connection, err := client(bootstrap)
	if err != nil {
		return err
	}
	defer connection.Close()
	asked := kadm.NewClient(connection)
	topic, group, id := names[0], names[1], names[2]
	told := map[string]any{}

	listed, err := asked.ListTransactions(ctx, nil, nil)
	if err != nil {
		return err
	}
	told["listed"] = listed[id].State
	described, err := asked.DescribeTransactions(ctx, id)
	if err != nil {
		return err
	}
	told["described"] = described[id].State
	told["partitions"] = described[id].Topics[topic]
	producers, err := asked.DescribeProducers(ctx, kadm.TopicsSet{topic: {0: {}}})
	if err != nil {
		return err
	}
	starts := []int64{}
	producers.EachProducer(func(producer kadm.DescribedProducer) {
		if producer.CurrentTxnStartOffset >= 0 {
			starts = append(starts, producer.CurrentTxnStartOffset)
		}
	})
	told["open from"] = starts

	ends, err := asked.ListEndOffsets(ctx, topic)
	if err != nil {
		return err
	}
	stable, err := asked.ListCommittedOffsets(ctx, topic)
	if err != nil {
		return err
	}
	told["ends"], told["stable"] = offsets(ends, topic), offsets(stable, topic)
	lags, err := asked.Lag(ctx, group)
	if err != nil {
		return err
	}
	told["lag"], told["group"] = lags[group].Lag.Total(), lags[group].State
	tell(told)
	return nil
}

// topics TOPIC: creates it, gives it another setting and a partition, drops records and drops it; tells what it sees.
func topics(ctx context.Context, bootstrap string, names []string) error {
	connection, err := client(bootstrap)
	if err != nil {
		return err
	}
	defer connection.Close()
	asked, topic := kadm.NewClient(connection), names[0]
	told := map[string]any{}
	if _, err := asked.CreateTopic(ctx, 2, 1, map[string]*string{"max.message.bytes": kadm.StringPtr("2000000")}, topic); err != nil {
		return err
	}
	_, again := asked.CreateTopic(ctx, 2, 1, nil, topic)
	told["again"] = text(again)
	altered, err := asked.AlterTopicConfigs(ctx, []kadm.AlterConfig{{Name: "max.message.bytes", Value: kadm.StringPtr("3000000")}}, topic)
	if err != nil {
		return err
	}
	told["altered"] = text(altered[0].Err)
	added, err := asked.CreatePartitions(ctx, 1, topic)
	if err != nil {
		return err
	}
	told["added"] = text(added[topic].Err)
	for value := range 5 {
		if err := write(ctx, connection, topic, 0, string(rune('a'+value))); err != nil {
			return err
		}
	}
	dropped := kadm.Offsets{}
	dropped.AddOffset(topic, 0, 3, -1)
	deleted, err := asked.DeleteRecords(ctx, dropped)
	if err != nil {
		return err
	}
	told["low watermark"] = deleted[topic][0].LowWatermark
	configs, err := asked.DescribeTopicConfigs(ctx, topic)
	if err != nil {
		return err
	}
	for _, config := range configs[0].Configs {
		if config.Key == "max.message.bytes" {
			told[config.Key] = config.MaybeValue()
		}
	}
	starts, err := asked.ListStartOffsets(ctx, topic)
	if err != nil {
		return err
	}
	told["starts"] = offsets(starts, topic)
	gone, err := asked.DeleteTopics(ctx, topic)
	if err != nil {
		return err
	}
	told["deleted"] = text(gone[topic].Err)
	tell(told)
	return nil
}

func offsets(listed kadm.ListedOffsets, topic string) []int64 {
	found := []int64{}
	for _, partition := range slices.Sorted(maps.Keys(listed[topic])) {
		found = append(found, listed[topic][partition].Offset)
	}
	return found
}
