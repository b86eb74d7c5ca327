#!/usr/bin/env bash
# Creates the sidecar's user with the permissions that the applied pipeline lists, or gives it a new password:
#
#   create-user.sh USER DIRECTORY
#
# The permissions replace those that the user has in the vhost: for a second pipeline there, use another user.
# Writes USER and a random password to the files "username" and "password" in DIRECTORY. The password is in no state,
# no plan, no log and no process list. Needs curl, Terraform (or TERRAFORM=tofu), and RABBITMQ_ENDPOINT,
# RABBITMQ_USERNAME and RABBITMQ_PASSWORD of an administrator; RABBITMQ_CACERT, RABBITMQ_CLIENTCERT and
# RABBITMQ_CLIENTKEY if needed. All are what the provider takes.
set -euo pipefail

if (($# != 2)); then
  echo "usage: ${0##*/} USER DIRECTORY" >&2
  exit 2
fi
user=$1 directory=$2
terraform=${TERRAFORM:-terraform}
: "${RABBITMQ_ENDPOINT:?is not set: the URL of the management API}"

# escaped is a text within quotes of curl's configuration.
escaped() { local text=${1//\\/\\\\} && printf %s "${text//\"/\\\"}"; }

# api PATH sends its standard input to the management API.
api() {
  curl --silent --show-error --fail --request PUT --header 'Content-Type: application/json' --data-binary @- \
    ${RABBITMQ_CACERT:+--cacert "$RABBITMQ_CACERT"} \
    ${RABBITMQ_CLIENTCERT:+--cert "$RABBITMQ_CLIENTCERT"} ${RABBITMQ_CLIENTKEY:+--key "$RABBITMQ_CLIENTKEY"} \
    --config <(printf 'user = "%s"\n' "$(escaped "${RABBITMQ_USERNAME-}:${RABBITMQ_PASSWORD-}")") "${RABBITMQ_ENDPOINT%/}/api/$1" ||
    {
      echo "${0##*/}: PUT ${RABBITMQ_ENDPOINT%/}/api/$1 failed. RABBITMQ_ENDPOINT has to end before /api, the user has to be" \
        "an administrator, and with TLS see RABBITMQ_CACERT, RABBITMQ_CLIENTCERT and RABBITMQ_CLIENTKEY." >&2
      return 1
    }
}

# escape percent-encodes a name for a URL.
escape() {
  local LC_ALL=C text=$1 i
  for ((i = 0; i < ${#text}; i++)); do
    case ${text:i:1} in
      [a-zA-Z0-9._~-]) printf '%s' "${text:i:1}" ;;
      *) printf '%%%02X' "'${text:i:1}" ;;
    esac
  done
}

vhost=$("$terraform" output -raw vhost)
permissions=$("$terraform" output -json worker_permissions)
password=$(head -c 24 /dev/urandom | base64 | tr '+/' '-_') # no character that a URI would have to escape

umask 077
mkdir -p "$directory"
# Next to the directory, or what deploys it would take what a failure leaves.
new=$(mktemp -d "${directory%/}.XXXXXX")
trap 'rm -rf "$new"' EXIT
printf '%s' "$user" >"$new/username"
printf '%s' "$password" >"$new/password" # before the broker has it, or it could be lost
printf '{"password":"%s","tags":""}' "$password" | api "users/$(escape "$user")"
mv "$new/username" "$new/password" "$directory/" # the broker has it
printf '%s' "$permissions" | api "permissions/$(escape "$vhost")/$(escape "$user")"
echo "User $user has the permissions of the pipeline in vhost $vhost. Its name and its new password are in $directory."
