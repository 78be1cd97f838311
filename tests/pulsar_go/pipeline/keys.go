package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"strings"

	"github.com/apache/pulsar-client-go/pulsar"
)

// keys URL TOPIC WAY KEYS sends each key (they stand between commas) once, with the way as the value.
func keys() {
	options := pulsar.ProducerOptions{Topic: os.Args[3]}
	switch os.Args[4] {
	case "asKafka":
		options.MessageRouter = asKafka
	case "Murmur3_32Hash":
		options.HashingScheme = pulsar.Murmur3_32Hash
	}
	if err := send(options, strings.Split(os.Args[5], ","), []byte(os.Args[4])); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func send(options pulsar.ProducerOptions, keys []string, value []byte) error {
	client, err := pulsar.NewClient(pulsar.ClientOptions{URL: os.Args[2]})
	if err != nil {
		return err
	}
	defer client.Close()
	producer, err := client.CreateProducer(options)
	if err != nil {
		return err
	}
	defer producer.Close()
	failures := make(chan error, len(keys))
	for _, key := range keys {
		told := func(_ pulsar.MessageID, _ *pulsar.ProducerMessage, err error) { failures <- err }
		producer.SendAsync(context.Background(), &pulsar.ProducerMessage{Key: key, Payload: value}, told)
	}
	for range keys {
		if err := <-failures; err != nil {
			return err
		}
	}
	return nil
}

// asKafka places a key where Kafka's clients place it.
func asKafka(message *pulsar.ProducerMessage, topic pulsar.TopicMetadata) int {
	const m = 0x5bd1e995
	key := []byte(message.Key)
	h := 0x9747b28c ^ uint32(len(key))
	for ; len(key) >= 4; key = key[4:] {
		k := binary.LittleEndian.Uint32(key) * m
		h = h*m ^ (k^k>>24)*m
	}
	if len(key) > 0 {
		for i, each := range key {
			h ^= uint32(each) << (8 * i)
		}
		h *= m
	}
	h = (h ^ h>>13) * m
	return int(((h ^ h>>15) & 0x7fffffff) % topic.NumPartitions())
}
