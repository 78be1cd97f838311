// Consume, transform and produce in transactions until killed: URL INPUT OUTPUT TYPE ACKS SEED (ACKS is individual).
// Or send messages with keys: keys URL TOPIC WAY KEYS.
package main

import (
	"context"
	"fmt"
	"math/rand"
	"os"
	"strconv"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

func main() {
	if os.Args[1] == "keys" {
		keys()
		return
	}
	seed, _ := strconv.ParseInt(os.Args[6], 10, 64)
	random := rand.New(rand.NewSource(seed))
	for {
		if err := run(random); err != nil {
			// A new client begins where the broker says that the subscription is.
			fmt.Println("FAILED", err)
			time.Sleep(200 * time.Millisecond)
		}
	}
}

func run(random *rand.Rand) error {
	client, err := pulsar.NewClient(pulsar.ClientOptions{
		URL:               os.Args[1],
		EnableTransaction: true,
		OperationTimeout:  5 * time.Second,
		ConnectionTimeout: 2 * time.Second,
	})
	if err != nil {
		return err
	}
	defer client.Close()
	kind := pulsar.Shared
	if os.Args[4] == "Failover" {
		kind = pulsar.Failover
	}
	consumer, err := client.Subscribe(pulsar.ConsumerOptions{
		Topic:                          os.Args[2],
		SubscriptionName:               "transform",
		Type:                           kind,
		SubscriptionInitialPosition:    pulsar.SubscriptionPositionEarliest,
		EnableBatchIndexAcknowledgment: true,
		AckWithResponse:                true,
	})
	if err != nil {
		return err
	}
	defer consumer.Close()
	// The client puts messages of several transactions into one batch.
	producer, err := client.CreateProducer(pulsar.ProducerOptions{Topic: os.Args[3], DisableBatching: true})
	if err != nil {
		return err
	}
	defer producer.Close()
	fmt.Println("RUNNING")
	for {
		if err := transform(client, consumer, producer, kind, random); err != nil {
			return err
		}
	}
}

func transform(
	client pulsar.Client, consumer pulsar.Consumer, producer pulsar.Producer, kind pulsar.SubscriptionType, random *rand.Rand,
) error {
	most := 1 + random.Intn(8)
	var taken []pulsar.Message
	for len(taken) < most {
		waits, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
		message, err := consumer.Receive(waits)
		cancel()
		if err != nil {
			break
		}
		taken = append(taken, message)
	}
	if len(taken) == 0 {
		return nil
	}
	transaction, err := client.NewTransaction(3 * time.Second)
	if err != nil {
		return err
	}
	soon, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for _, each := range taken {
		message := &pulsar.ProducerMessage{Payload: each.Payload(), Transaction: transaction}
		_, err := producer.Send(soon, message)
		if err == nil {
			err = consumer.AckWithTxn(each, transaction)
		}
		if err != nil {
			_ = transaction.Abort(soon)
			return err
		}
	}
	if random.Intn(5) == 0 {
		if err := transaction.Abort(soon); err != nil {
			return err
		}
		fmt.Println("ABORTED", len(taken))
		if kind != pulsar.Shared {
			// Everything comes again, behind what is here already: begin anew instead of sorting it.
			return fmt.Errorf("aborted")
		}
		return nil
	}
	if err := transaction.Commit(soon); err != nil {
		return err
	}
	fmt.Println("COMMITTED", len(taken))
	return nil
}
