import com.rabbitmq.client.AMQP.BasicProperties;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.ConnectionFactory;
import java.util.Map;

public class Reminders {
  static final String EXCHANGE = "events", QUEUE = "reminders";

  public static void main(String[] arguments) throws Exception {
    ConnectionFactory factory = new ConnectionFactory();
    factory.setUri(System.getenv("RABBITMQ_URI"));
    Channel channel = factory.newConnection().createChannel();
    channel.exchangeDeclarePassive(EXCHANGE);
    channel.queueDeclare(QUEUE, true, false, false, null);
    channel.queueBind(QUEUE, EXCHANGE + ".deliver", "reminder.#");

    long began = System.currentTimeMillis();
    for (int seconds : new int[] {3, 1, 2}) {
      BasicProperties properties =
          new BasicProperties.Builder().deliveryMode(2).headers(Map.of("x-delay", seconds * 1000)).build();
      channel.basicPublish(EXCHANGE, "reminder.mail", properties, String.valueOf(seconds).getBytes());
    }
    channel.basicConsume(QUEUE, (tag, message) -> {
      System.out.printf("%s after %d ms, x-delay %s%n", new String(message.getBody()),
          System.currentTimeMillis() - began, message.getProperties().getHeaders().get("x-delay"));
      channel.basicAck(message.getEnvelope().getDeliveryTag(), false);
    }, tag -> {});
  }
}
