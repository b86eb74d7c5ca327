import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.DefaultConsumer;
import com.rabbitmq.client.Envelope;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.time.Instant;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import java.util.Set;

public class Consumer {
    static final String QUEUE = "orders.created";
    static final String DEAD_LETTERS = "orders.dlx";
    static final HttpClient CLIENT = HttpClient.newHttpClient();

    static class Refused extends Exception {
        final int status;
        final String retryAfter;

        Refused(HttpResponse<?> response) {
            super("HTTP " + response.statusCode());
            status = response.statusCode();
            retryAfter = response.headers().firstValue("Retry-After").orElse(null);
        }
    }

    /** Your work: here, a server that recognizes the message-id of a duplicate. */
    static void process(AMQP.BasicProperties properties, byte[] body) throws Exception {
        HttpRequest request = HttpRequest.newBuilder(URI.create(System.getenv("PAYMENTS_URL"))).timeout(Duration.ofSeconds(10))
            .header("Idempotency-Key", Objects.requireNonNullElse(properties.getMessageId(), ""))
            .POST(HttpRequest.BodyPublishers.ofByteArray(body)).build();
        HttpResponse<?> response = CLIENT.send(request, HttpResponse.BodyHandlers.discarding());
        if (response.statusCode() >= 400) {
            throw new Refused(response);
        }
    }

    static Map<String, Object> headersOf(AMQP.BasicProperties properties) {
        return new HashMap<>(Objects.requireNonNullElse(properties.getHeaders(), Map.of()));
    }

    /** Rejects with a reason, and returns once the broker has the message. */
    static void fail(Channel channel, Envelope envelope, AMQP.BasicProperties properties, byte[] body, Exception error,
            Map<String, Object> hints) throws Exception {
        StringWriter trace = new StringWriter();
        error.printStackTrace(new PrintWriter(trace, true));
        Map<String, Object> headers = headersOf(properties);
        headers.keySet().removeAll(Set.of("x-death", "CC"));
        headers.putAll(hints);
        headers.put("retry-queue", QUEUE);
        headers.put("dead-letter-error", error.toString());
        headers.put("dead-letter-exception", trace.toString());
        channel.basicPublish(DEAD_LETTERS, envelope.getRoutingKey(), true,
            properties.builder().headers(headers).expiration(null).userId(null).build(), body);
        channel.waitForConfirmsOrDie();
        channel.basicAck(envelope.getDeliveryTag(), false);
    }

    /** Retry-After is a number of seconds, or a date. */
    static long millisecondsOf(String retryAfter) {
        if (retryAfter.matches("\\d+")) {
            return Long.parseLong(retryAfter) * 1000;
        }
        Instant due = ZonedDateTime.parse(retryAfter, DateTimeFormatter.RFC_1123_DATE_TIME).toInstant();
        return Math.max(0, Duration.between(Instant.now(), due).toMillis() + 1);
    }

    /** The number of this attempt. The header retry-max-attempts has the number of the last one. */
    static int attempt(AMQP.BasicProperties properties) {
        return ((Number) headersOf(properties).getOrDefault("retry-count", 0)).intValue() + 1;
    }

    static void handle(Channel channel, Envelope envelope, AMQP.BasicProperties properties, byte[] body) throws Exception {
        try {
            process(properties, body);
        } catch (Exception error) {
            System.out.println("attempt " + attempt(properties) + ": " + error);
            Map<String, Object> hints = Map.of();
            if (error instanceof Refused refused && refused.retryAfter != null) {
                hints = Map.of("retry-after-ms", millisecondsOf(refused.retryAfter));
            } else if (error instanceof Refused refused && Set.of(400, 404, 422).contains(refused.status)) {
                hints = Map.of("retry", "never");
            }
            fail(channel, envelope, properties, body, error, hints);
            return;
        }
        channel.basicAck(envelope.getDeliveryTag(), false);
    }

    /** Messages without an acknowledgement are delivered again. */
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
        channel.basicQos(10);
        channel.basicConsume(QUEUE, false, new DefaultConsumer(channel) {
            @Override
            public void handleDelivery(String consumer, Envelope envelope, AMQP.BasicProperties properties, byte[] body)
                    throws IOException {
                try {
                    handle(channel, envelope, properties, body);
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
