// A registry client of npm; arguments: package URL. Registers a schema, writes and reads a value, and is refused an incompatible schema.
const [name, url] = process.argv.slice(2)
const field = (name, type, others = {}) => ({ name, type, ...others })
const user = { type: 'record', name: 'User', fields: [field('name', 'string'), field('age', 'int')] }
const wider = { ...user, fields: [...user.fields, field('other', 'int')] }
const value = { name: 'Ada', age: 36 }

async function confluent() {
  const { SchemaRegistryClient, AvroSerializer, AvroDeserializer, SerdeType } = require(name)
  const client = new SchemaRegistryClient({ baseURLs: [url] })
  await client.register('npm-value', { schemaType: 'AVRO', schema: JSON.stringify(user) })
  const data = await new AvroSerializer(client, SerdeType.VALUE, { useLatestVersion: true }).serialize('npm', value)
  const read = await new AvroDeserializer(client, SerdeType.VALUE, {}).deserialize('npm', data)
  const refused = await client.register('npm-value', { schemaType: 'AVRO', schema: JSON.stringify(wider) }).then(
    () => 200,
    error => error.status
  )
  return { value: { ...read }, refused }
}

async function kafkajs() {
  const { SchemaRegistry, SchemaType } = require(name)
  const registry = new SchemaRegistry({ host: url })
  const { id } = await registry.register({ type: SchemaType.AVRO, schema: JSON.stringify(user) }, { subject: 'kafkajs' })
  const read = await registry.decode(await registry.encode(id, value))
  const refused = await registry
    .register({ type: SchemaType.AVRO, schema: JSON.stringify(wider) }, { subject: 'kafkajs' })
    .then(
      () => 200,
      error => error.status
    )
  return { value: { ...read }, refused }
}

const run = name.startsWith('@kafkajs') ? kafkajs : confluent
run().then(
  result => console.log(JSON.stringify(result)),
  error => {
    console.error(error)
    process.exit(1)
  }
)
