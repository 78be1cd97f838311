package main

import (
	"context"
	"strings"

	"github.com/spaolacci/murmur3"
	"github.com/twmb/franz-go/pkg/kgo"
)

// keys TOPIC WAY KEYS: sends each key (they stand between commas) once, with the way as the value.
func keys(ctx context.Context, bootstrap string, names []string) error {
	options := []kgo.Opt{kgo.SeedBrokers(bootstrap)}
	if names[1] == "murmur3" {
		options = append(options,
			kgo.RecordPartitioner(kgo.StickyKeyPartitioner(kgo.KafkaHasher(murmur3.Sum32))),
		)
	}
	producer, err := kgo.NewClient(options...)
	if err != nil {
		return err
	}
	defer producer.Close()
	var records []*kgo.Record
	for _, key := range strings.Split(names[2], ",") {
		records = append(records, &kgo.Record{Topic: names[0], Key: []byte(key), Value: []byte(names[1])})
	}
	return producer.ProduceSync(ctx, records...).FirstErr()
}
