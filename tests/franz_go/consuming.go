package main

import (
	"context"
	"errors"
	"strconv"

	"github.com/twmb/franz-go/pkg/kgo"
)

// read TOPIC COUNT LEVEL: tells the first so many values of all partitions at a level of isolation.
func read(ctx context.Context, bootstrap string, names []string) error {
	count, err := strconv.Atoi(names[1])
	if err != nil {
		return err
	}
	levels := map[string]kgo.IsolationLevel{
		"read_committed": kgo.ReadCommitted(), "read_uncommitted": kgo.ReadUncommitted(),
	}
	consumer, err := client(bootstrap, kgo.ConsumeTopics(names[0]), kgo.FetchIsolationLevel(levels[names[2]]))
	if err != nil {
		return err
	}
	defer consumer.Close()
	values := []string{}
	for len(values) < count {
		fetches := consumer.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return err
		}
		fetches.EachRecord(func(record *kgo.Record) { values = append(values, string(record.Value)) })
	}
	tell(values)
	return nil
}

// copy SOURCE TARGET GROUP ID: takes each record of the source to the same partition of the target, with offsets and
// records in one transaction, until it is asked to end; tells how many each transaction has brought.
func copyRecords(ctx context.Context, bootstrap string, names []string) error {
	session, err := kgo.NewGroupTransactSession(append(common(bootstrap),
		kgo.ConsumeTopics(names[0]),
		kgo.ConsumerGroup(names[2]),
		kgo.TransactionalID(names[3]),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.RequireStableFetchOffsets(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		// Who was killed is soon missed.
		kgo.SessionTimeout(sessionTimeout),
		kgo.HeartbeatInterval(sessionTimeout/4),
	)...)
	if err != nil {
		return err
	}
	defer session.Close()
	for {
		fetches := session.PollRecords(ctx, copiedAtOnce)
		if ctx.Err() != nil {
			return nil
		}
		if err := fetches.Err(); err != nil {
			return err
		}
		if err := session.Begin(); err != nil {
			return err
		}
		copied := 0
		var failure error
		fetches.EachRecord(func(record *kgo.Record) {
			copied++
			target := &kgo.Record{Topic: names[1], Partition: record.Partition, Value: record.Value}
			session.Produce(ctx, target, func(_ *kgo.Record, err error) { failure = errors.Join(failure, err) })
		})
		flushed := session.Client().Flush(ctx)
		if ctx.Err() != nil {
			return nil
		}
		committed, err := session.End(ctx, kgo.TransactionEndTry(flushed == nil && failure == nil))
		if err != nil {
			return err
		}
		tell(map[string]any{"copied": copied, "committed": committed})
	}
}
