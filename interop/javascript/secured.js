// kafkajs at a broker that asks who is there; argument: JSON of address, authority, topic, mechanism, username, password, token.
const { Kafka, logLevel } = require('kafkajs')

const given = JSON.parse(process.argv[2])
const sasl = given.mechanism === 'oauthbearer'
  ? { mechanism: 'oauthbearer', oauthBearerProvider: async () => ({ value: given.token }) }
  : { mechanism: given.mechanism, username: given.username, password: given.password }

async function main() {
  const kafka = new Kafka({
    brokers: [given.address], logLevel: logLevel.NOTHING, retry: { retries: 2 }, ssl: { ca: [given.authority] }, sasl,
  })
  const producer = kafka.producer()
  await producer.connect()
  await producer.send({ topic: given.topic, messages: [{ value: 'a' }, { value: 'b' }] })
  await producer.disconnect()
  const consumer = kafka.consumer({ groupId: given.topic })
  const read = []
  await consumer.connect()
  await consumer.subscribe({ topic: given.topic, fromBeginning: true })
  await new Promise(resolve => consumer.run({
    eachMessage: async ({ message }) => { if (read.push(message.value.toString()) === 2) resolve() },
  }))
  console.log(read.join(' '))
  await consumer.disconnect()
}

main().catch(error => { console.error(error.message); process.exit(1) })
