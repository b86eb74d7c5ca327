const amqp = require('amqplib')

const QUEUE = 'orders.created'
const FAILED = 'orders.failed.route'
const MAX_ATTEMPTS = 4

async function work(body) {
  JSON.parse(body) // your work
}

// Which attempt this delivery is, by what the broker has noted.
function attempt(message) {
  const deaths = message.properties.headers?.['x-death'] ?? []
  const death = deaths.find((d) => d.queue === QUEUE && d.reason === 'rejected')
  return death ? death.count + 1 : 1
}

// Resolves once the broker has the message in the failed queue.
function park(channel, message, attempts, error) {
  const headers = {
    ...message.properties.headers,
    'dead-letter-reason': 'exhausted',
    'dead-letter-at': Date.now(),
    'dead-letter-error': String(error).slice(0, 2000),
    'retry-queue': QUEUE,
    'retry-count': attempts
  }
  const options = { ...message.properties, headers, persistent: true, mandatory: true, expiration: undefined, userId: undefined }
  return new Promise((resolve, reject) => {
    channel.publish(FAILED, `failed:${QUEUE}`, message.content, options, (refused) => (refused ? reject(refused) : resolve()))
  })
}

async function handle(channel, message) {
  try {
    await work(message.content)
  } catch (error) {
    const attempts = attempt(message)
    console.log(`attempt ${attempts} of ${MAX_ATTEMPTS}: ${error}`)
    if (attempts < MAX_ATTEMPTS) {
      channel.nack(message, false, false)
      return
    }
    await park(channel, message, attempts, error)
  }
  channel.ack(message)
}

// What is not acknowledged is delivered again.
function stop(reason) {
  console.error(reason)
  process.exit(1)
}

async function main() {
  const connection = await amqp.connect(process.env.RABBITMQ_URI)
  const channel = await connection.createConfirmChannel()
  channel.on('return', (message) => stop(message.fields.replyText)) // comes before the confirm
  await channel.prefetch(50)
  await channel.consume(QUEUE, (message) => {
    if (message === null) {
      stop('the queue is gone')
    }
    handle(channel, message).catch(stop)
  })
}

main().catch(stop)
