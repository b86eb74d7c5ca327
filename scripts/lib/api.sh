# shellcheck shell=bash
# Requests to a management API, and how it completes a broker that the environment names.

api_version=''   # set by api_answers: the version, and
api_amqp_port='' # the port of the plain AMQP listener

# True as soon as the node serves both its API and AMQP: a starting node opens them one after the other.
api_answers() { # ENDPOINT
  local overview
  overview=$(api "$1" overview 2>/dev/null) || return 1
  api_version=$(sed -n 's/.*"rabbitmq_version":"\([^"]*\)".*/\1/p' <<<"$overview")
  api_amqp_port=$(grep -o '"protocol":"amqp",[^}]*' <<<"$overview" | sed -n 's/.*"port":\([0-9]*\).*/\1/p' | head -n 1)
  [[ -n $api_version && -n $api_amqp_port ]]
}

api() { # ENDPOINT PATH [CURL-ARGUMENT...]
  curl --silent --fail --max-time 5 "${@:3}" --config - <<<"user = \"$(escaped "$username:$password")\"
    url = \"$(escaped "$1/api/$2")\""
}

escaped() { local text=${1//\\/\\\\} && printf %s "${text//\"/\\\"}"; }

percent_encoded() {
  local LC_ALL=C text=$1 i char
  for ((i = 0; i < ${#text}; i++)); do
    char=${text:i:1}
    case $char in
      [a-zA-Z0-9._~-]) printf %s "$char" ;;
      *) printf %%%02X "$(($(printf %d "'$char") & 255))" ;;
    esac
  done
}

percent_decoded() { printf %b "${1//%/\\x}"; }

use_environment() {
  local scheme=amqp credentials='' host=''
  endpoint=${RABBITMQ_ENDPOINT:-} uri=${RABBITMQ_URI:-}
  endpoint=${endpoint%/}
  if [[ -n $uri ]]; then
    [[ $uri =~ ^(amqps?)://(([^@/]*)@)?([^/?]+) ]] || die "RABBITMQ_URI is not like amqp://user:password@host:port"
    scheme=${BASH_REMATCH[1]} credentials=${BASH_REMATCH[3]} host=${BASH_REMATCH[4]}
  fi
  username=$(percent_decoded "${credentials%%:*}") password=''
  [[ $credentials != *:* ]] || password=$(percent_decoded "${credentials#*:}")
  username=${RABBITMQ_USERNAME:-${username:-guest}} password=${RABBITMQ_PASSWORD:-${password:-guest}}
  if [[ -z $endpoint ]]; then
    [[ $scheme == amqp ]] || die "RABBITMQ_URI is amqps: set RABBITMQ_ENDPOINT too"
    endpoint=http://${host%:*}:15672
  fi
  api_answers "$endpoint" ||
    die "no RabbitMQ answers at $endpoint as user '$username'; check RABBITMQ_ENDPOINT, RABBITMQ_USERNAME and RABBITMQ_PASSWORD"
  if [[ -z $host ]]; then
    host=${endpoint#*://} host=${host%%/*}
    [[ $host =~ ^(.*):[0-9]+$ ]] && host=${BASH_REMATCH[1]}
    host=$host:$api_amqp_port
  fi
  uri=$scheme://$(percent_encoded "$username"):$(percent_encoded "$password")@$host
  broker="from the environment"
}
