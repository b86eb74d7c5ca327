import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.DefaultConsumer;
import com.rabbitmq.client.Envelope;
import java.io.IOException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

public class Consumer {
    static final String QUEUE = "orders.created";
    static final String FAILED = "orders.failed.route";
    static final int MAX_ATTEMPTS = 4;

    static void process(byte[] body) throws Exception {
        if (body.length == 0 || body[0] != '{') { // your work
            throw new Exception("no JSON object");
        }
    }

    /** Which attempt this delivery is, by what the broker has noted. */
    static long attempt(Map<String, Object> headers) {
        if (headers.get("x-death") instanceof List<?> deaths) {
            for (Object each : deaths) {
                Map<?, ?> death = (Map<?, ?>) each; // texts are no String, but a LongString
                if (QUEUE.equals(death.get("queue").toString()) && "rejected".equals(death.get("reason").toString())) {
                    return ((Number) death.get("count")).longValue() + 1;
                }
            }
        }
        return 1;
    }

    /** Publishes to the failed queue, and returns once the broker has the message. */
    static void park(Channel channel, AMQP.BasicProperties properties, Map<String, Object> headers, byte[] body,
            long attempts, Exception error) throws Exception {
        String text = String.valueOf(error);
        headers.put("dead-letter-reason", "exhausted");
        headers.put("dead-letter-at", System.currentTimeMillis());
        headers.put("dead-letter-error", text.substring(0, Math.min(text.length(), 2000)));
        headers.put("retry-queue", QUEUE);
        headers.put("retry-count", attempts);
        channel.basicPublish(FAILED, "failed:" + QUEUE, true,
            properties.builder().headers(headers).deliveryMode(2).expiration(null).userId(null).build(), body);
        channel.waitForConfirmsOrDie();
    }

    static void handle(Channel channel, long tag, AMQP.BasicProperties properties, byte[] body) throws Exception {
        Map<String, Object> headers = new HashMap<>();
        if (properties.getHeaders() != null) {
            headers.putAll(properties.getHeaders());
        }
        try {
            process(body);
        } catch (Exception error) {
            long attempts = attempt(headers);
            System.out.println("attempt " + attempts + " of " + MAX_ATTEMPTS + ": " + error);
            if (attempts < MAX_ATTEMPTS) {
                channel.basicNack(tag, false, false);
                return;
            }
            park(channel, properties, headers, body, attempts, error);
        }
        channel.basicAck(tag, false);
    }

    /** What is not acknowledged is delivered again. */
    static void stop(Object reason) {
        System.err.println(reason);
        Runtime.getRuntime().halt(1);
    }

    public static void main(String[] args) throws Exception {
        ConnectionFactory factory = new ConnectionFactory();
        factory.setUri(System.getenv("RABBITMQ_URI"));
        Channel channel = factory.newConnection().createChannel();
        channel.addReturnListener((code, text, exchange, key, properties, body) -> stop(text)); // comes before the confirm
        channel.addShutdownListener(Consumer::stop);
        channel.confirmSelect();
        channel.basicQos(50);
        channel.basicConsume(QUEUE, false, new DefaultConsumer(channel) {
            @Override
            public void handleDelivery(String consumer, Envelope envelope, AMQP.BasicProperties properties, byte[] body)
                    throws IOException {
                try {
                    handle(channel, envelope.getDeliveryTag(), properties, body);
                } catch (Exception error) {
                    stop(error);
                }
            }

            @Override
            public void handleCancel(String consumer) {
                stop("the queue is gone");
            }
        });
    }
}
