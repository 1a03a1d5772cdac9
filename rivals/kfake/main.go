// Franz-go's kfake as a broker of its own: arguments: directory, then a port, 0 for any. Says where it listens.
package main

import (
	"fmt"
	"log"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/twmb/franz-go/pkg/kfake"
)

const partitions = 6

func main() {
	port, err := strconv.Atoi(os.Args[2])
	check(err)
	cluster, err := kfake.NewCluster(
		kfake.NumBrokers(1),
		kfake.Ports(port),
		kfake.AllowAutoTopicCreation(),
		kfake.DefaultNumPartitions(partitions),
		kfake.BrokerConfigs(map[string]string{"group.initial.rebalance.delay.ms": "0"}),
		kfake.DataDir(os.Args[1]),
	)
	check(err)
	defer cluster.Close()
	fmt.Println(cluster.ListenAddrs()[0])
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	<-stop
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
