package main

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
)

// idempotent TOPIC COUNT: sends 0, 1, ... from several goroutines, in many small batches; tells offset by value.
func idempotent(ctx context.Context, bootstrap string, names []string) error {
	count, err := strconv.Atoi(names[1])
	if err != nil {
		return err
	}
	producer, err := client(bootstrap, kgo.ProducerBatchMaxBytes(4096), kgo.ProducerBatchCompression(kgo.SnappyCompression()))
	if err != nil {
		return err
	}
	defer producer.Close()
	offsets, failures := make([]int64, count), make([]error, count)
	var lanes sync.WaitGroup
	for lane := range 4 {
		lanes.Go(func() {
			for value := lane; value < count; value += 4 {
				record := &kgo.Record{Topic: names[0], Value: []byte(strconv.Itoa(value))}
				producer.Produce(ctx, record, func(sent *kgo.Record, err error) {
					offsets[value], failures[value] = sent.Offset, err
				})
			}
		})
	}
	lanes.Wait()
	if err := producer.Flush(ctx); err != nil {
		return err
	}
	for _, failure := range failures {
		if failure != nil {
			return failure
		}
	}
	tell(offsets)
	return nil
}

// transactions TOPIC ID: writes c0 and c1, a0 and a1, c2 and c3 to two partitions, commits, aborts, commits; then
// leaves one open with o0 when it ends.
func transactions(ctx context.Context, bootstrap string, names []string) error {
	producer, err := client(bootstrap, kgo.TransactionalID(names[1]))
	if err != nil {
		return err
	}
	number := map[kgo.TransactionEndTry]int{}
	for _, end := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort, kgo.TryCommit} {
		if err := producer.BeginTransaction(); err != nil {
			return err
		}
		for partition := range int32(2) {
			value := fmt.Sprintf("%s%d", map[kgo.TransactionEndTry]string{kgo.TryCommit: "c", kgo.TryAbort: "a"}[end], number[end])
			number[end]++
			if err := write(ctx, producer, names[0], partition, value); err != nil {
				return err
			}
		}
		if err := producer.EndTransaction(ctx, end); err != nil {
			return err
		}
	}
	if err := producer.BeginTransaction(); err != nil {
		return err
	}
	return write(ctx, producer, names[0], 0, "o0")
}

// staged TOPIC ID COUNT: writes 0, 1, ... into a transaction, in one batch if they fit, and commits; tells the offsets
// that were reported, by value.
func staged(ctx context.Context, bootstrap string, names []string) error {
	count, err := strconv.Atoi(names[2])
	if err != nil {
		return err
	}
	producer, err := client(bootstrap, kgo.TransactionalID(names[1]))
	if err != nil {
		return err
	}
	defer producer.Close()
	if err := producer.BeginTransaction(); err != nil {
		return err
	}
	records := make([]*kgo.Record, count)
	for value := range records {
		records[value] = &kgo.Record{Topic: names[0], Value: []byte(strconv.Itoa(value))}
	}
	if err := producer.ProduceSync(ctx, records...).FirstErr(); err != nil {
		return err
	}
	if err := producer.EndTransaction(ctx, kgo.TryCommit); err != nil {
		return err
	}
	offsets := make([]int64, count)
	for value, record := range records {
		offsets[value] = record.Offset
	}
	tell(offsets)
	return nil
}

// fence TOPIC ID: a producer is overtaken in its transaction by another one of the same id; tells what each is told.
func fence(ctx context.Context, bootstrap string, names []string) error {
	first, err := client(bootstrap, kgo.TransactionalID(names[1]))
	if err != nil {
		return err
	}
	defer first.Close()
	if err := first.BeginTransaction(); err != nil {
		return err
	}
	if err := write(ctx, first, names[0], 0, "zombie"); err != nil {
		return err
	}
	second, err := client(bootstrap, kgo.TransactionalID(names[1]))
	if err != nil {
		return err
	}
	defer second.Close()
	if err := second.BeginTransaction(); err != nil {
		return err
	}
	if err := write(ctx, second, names[0], 0, "successor"); err != nil {
		return err
	}
	late := write(ctx, first, names[0], 0, "late")
	ended := first.EndTransaction(ctx, kgo.TryCommit)
	if err := second.EndTransaction(ctx, kgo.TryCommit); err != nil {
		return err
	}
	tell(map[string]string{"late": text(late), "ended": text(ended)})
	return nil
}

func write(ctx context.Context, producer *kgo.Client, topic string, partition int32, value string) error {
	record := &kgo.Record{Topic: topic, Partition: partition, Value: []byte(value)}
	return producer.ProduceSync(ctx, record).FirstErr()
}
