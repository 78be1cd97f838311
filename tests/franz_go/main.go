// What the conformance scenarios do, done by franz-go: a command for each, told in lines of JSON.
//
// Usage: franz_go COMMAND BOOTSTRAP NAME... What is printed is judged by the tests in Python; a failure that a command
// does not expect ends it with status 1.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	transactionTimeout = 10 * time.Second
	sessionTimeout     = 2 * time.Second
	copiedAtOnce       = 20
)

var commands = map[string]func(ctx context.Context, bootstrap string, names []string) error{
	"admin":        admin,
	"copy":         copyRecords,
	"fence":        fence,
	"idempotent":   idempotent,
	"keys":         keys,
	"read":         read,
	"staged":       staged,
	"topics":       topics,
	"transactions": transactions,
}

func main() {
	// Ends a command that goes on for ever.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := commands[os.Args[1]](ctx, os.Args[2], os.Args[3:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func tell(what any) {
	text, err := json.Marshal(what)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(text))
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func client(bootstrap string, options ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append(common(bootstrap), options...)...)
}

func common(bootstrap string) []kgo.Opt {
	return []kgo.Opt{
		kgo.SeedBrokers(bootstrap),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.TransactionTimeout(transactionTimeout),
	}
}
