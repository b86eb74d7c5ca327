# Parks messages through the exchange orders.failed.route. The project's tests do not run this program.
defmodule Consumer do
  @queue "orders.created"
  @failed "orders.failed.route"
  @max_attempts 4
  @kept ~w(content_type content_encoding priority correlation_id reply_to message_id timestamp type app_id)a

  defp process("{" <> _), do: :ok # your work
  defp process(_), do: raise("no JSON object")

  # Which attempt this delivery is, by what the broker has noted.
  defp attempt(headers) do
    deaths = for {"x-death", :array, all} <- headers, {:table, death} <- all, do: Map.new(death, fn {key, _, value} -> {key, value} end)

    case Enum.find(deaths, &match?(%{"queue" => @queue, "reason" => "rejected"}, &1)) do
      nil -> 1
      death -> death["count"] + 1
    end
  end

  # Returns once the broker has the message in the failed queue.
  defp park(channel, body, meta, headers, attempts, error) do
    added = [
      {"dead-letter-reason", "exhausted"},
      {"dead-letter-at", System.system_time(:millisecond)},
      {"dead-letter-error", error |> Exception.message() |> String.slice(0, 2000)},
      {"retry-queue", @queue},
      {"retry-count", attempts}
    ]

    options = meta |> Map.take(@kept) |> Map.to_list()
    headers = Enum.reject(headers, fn {key, _, _} -> List.keymember?(added, key, 0) end) ++ added
    :ok = AMQP.Basic.publish(channel, @failed, "failed:" <> @queue, body, [headers: headers, persistent: true, mandatory: true] ++ options)
    true = AMQP.Confirm.wait_for_confirms(channel)

    receive do # a return comes before the confirm
      {return, _message} when elem(return, 0) == :"basic.return" -> exit(elem(return, 2))
    after
      0 -> :ok
    end
  end

  defp failure(body) do
    process(body)
    nil
  rescue
    error -> error
  end

  defp handle(channel, body, meta) do
    if error = failure(body) do
      headers = if is_list(meta.headers), do: meta.headers, else: []
      fail(channel, body, meta, headers, attempt(headers), error)
    else
      :ok = AMQP.Basic.ack(channel, meta.delivery_tag)
    end
  end

  defp fail(channel, body, meta, headers, attempts, error) do
    IO.puts("attempt #{attempts} of #{@max_attempts}: #{Exception.message(error)}")

    if attempts < @max_attempts do
      :ok = AMQP.Basic.nack(channel, meta.delivery_tag, requeue: false)
    else
      park(channel, body, meta, headers, attempts, error)
      :ok = AMQP.Basic.ack(channel, meta.delivery_tag)
    end
  end

  defp loop(channel) do
    receive do
      {:basic_deliver, body, meta} -> handle(channel, body, meta)
      {:basic_consume_ok, _} -> :ok
      other -> exit(other) # what is not acknowledged is delivered again
    end

    loop(channel)
  end

  def run do
    {:ok, connection} = AMQP.Connection.open(System.fetch_env!("RABBITMQ_URI"))
    {:ok, channel} = AMQP.Channel.open(connection)
    Process.monitor(channel.pid)
    :ok = AMQP.Confirm.select(channel)
    :ok = :amqp_channel.register_return_handler(channel.pid, self())
    :ok = AMQP.Basic.qos(channel, prefetch_count: 50)
    {:ok, _} = AMQP.Basic.consume(channel, @queue)
    loop(channel)
  end
end
