// Franz-go at a broker; arguments: address topic group. Writes within transactions, with every codec, aborts some, and
// reads in a group what was committed, a line for each value.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const each = 50

func main() {
	address, topic, group := os.Args[1], os.Args[2], os.Args[3]
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	codecs := []kgo.CompressionCodec{
		kgo.NoCompression(), kgo.GzipCompression(), kgo.SnappyCompression(), kgo.Lz4Compression(), kgo.ZstdCompression(),
	}
	for number, codec := range codecs {
		write(ctx, address, topic, group, number, codec)
	}
	read(ctx, address, topic, group, len(codecs)*each)
}

func write(ctx context.Context, address, topic, group string, number int, codec kgo.CompressionCodec) {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(address), kgo.TransactionalID(group), kgo.ProducerBatchCompression(codec),
	)
	check(err)
	defer client.Close()
	for _, kind := range []string{"aborted", "committed"} {
		check(client.BeginTransaction())
		for record := 0; record < each; record++ {
			value := fmt.Sprintf("%s %d", kind, number*each+record)
			client.Produce(ctx, &kgo.Record{Topic: topic, Value: []byte(value)}, nil)
		}
		check(client.Flush(ctx))
		check(client.EndTransaction(ctx, kgo.TransactionEndTry(kind == "committed")))
	}
}

func read(ctx context.Context, address, topic, group string, count int) {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(address), kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	)
	check(err)
	defer client.Close()
	for seen := 0; seen < count; {
		fetches := client.PollFetches(ctx)
		check(fetches.Err())
		fetches.EachRecord(func(record *kgo.Record) {
			fmt.Println(string(record.Value))
			seen++
		})
	}
	check(client.CommitUncommittedOffsets(ctx))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
