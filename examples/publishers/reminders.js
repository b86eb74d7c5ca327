const amqp = require("amqplib");

const exchange = "events", queue = "reminders";

async function main() {
  const connection = await amqp.connect(process.env.RABBITMQ_URI);
  const channel = await connection.createChannel();
  await channel.checkExchange(exchange);
  await channel.assertQueue(queue, { durable: true });
  await channel.bindQueue(queue, exchange + ".deliver", "reminder.#");

  const began = Date.now();
  await channel.consume(queue, (message) => {
    const delay = message.properties.headers["x-delay"];
    console.log(`${message.content} after ${Date.now() - began} ms, x-delay ${delay}`);
    channel.ack(message);
  });
  for (const seconds of [3, 1, 2]) {
    const options = { persistent: true, headers: { "x-delay": seconds * 1000 } };
    channel.publish(exchange, "reminder.mail", Buffer.from(String(seconds)), options);
  }
}

main();
