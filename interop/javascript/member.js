// A consumer of kafkajs; arguments: address topic group. Tells what it owns, gets and commits, as interop/mixed_member.py.
const { Kafka, PartitionAssigners, AssignerProtocol, logLevel } = require('kafkajs')

const [address, topic, group] = process.argv.slice(2)
const say = (...words) => console.log([process.hrtime.bigint(), ...words].join(' '))

// kafkajs calls its own by a name that nobody else knows; the sharing is that of every round robin.
const roundrobin = context => ({
  ...PartitionAssigners.roundRobin(context),
  name: 'roundrobin',
  protocol: ({ topics }) => ({
    name: 'roundrobin',
    metadata: AssignerProtocol.MemberMetadata.encode({ version: 0, topics, userData: Buffer.alloc(0) }),
  }),
})

async function main() {
  const kafka = new Kafka({ brokers: [address], logLevel: logLevel.NOTHING, retry: { initialRetryTime: 50 } })
  const consumer = kafka.consumer({
    groupId: group,
    partitionAssigners: [roundrobin],
    sessionTimeout: 2000,
    heartbeatInterval: 100,
    rebalanceTimeout: 5000,
    maxWaitTimeInMs: 100,
  })
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => say('owned', ...(payload.memberAssignment[topic] || [])))
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning: true })
  await consumer.run({
    autoCommit: false,
    eachBatch: async ({ batch, heartbeat, isStale, resolveOffset }) => {
      if (isStale()) return
      batch.messages.forEach(({ offset }) => say('got', batch.partition, offset))
      const next = String(Number(batch.lastOffset()) + 1)
      await consumer.commitOffsets([{ topic, partition: batch.partition, offset: next }])
      say('committed', batch.partition, next)
      // Or a heartbeat that fails, with the broker that is killed, has kafkajs read the batch again from where it began.
      resolveOffset(batch.lastOffset())
      await heartbeat()
    },
  })
}

main().catch(error => {
  console.error(error)
  process.exit(1)
})
