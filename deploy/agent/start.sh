#!/usr/bin/env bash
# Writes the configuration of one node's Debezium agent, then becomes that agent. The image, the unit of systemd and
# the embedded servers run this file. docs/install.md tells how to install it.
#
# The agent reads the node's own cassandra.yaml, unchanged: partitioner, snitch, encryption, and the folders of data,
# commit log and cdc_raw must be those of the node. Settings, all from the environment:
#   CASSANDRA_RELEASE        5.0 or 4.1
#   KAFKA_BOOTSTRAP_SERVERS  host:port,…
#   TOPIC_PREFIX             default: james; the same at all agents
#   CASSANDRA_YAML           default: /etc/cassandra/cassandra.yaml; cassandra-rackdc.properties is read beside it
#   CASSANDRA_STORAGE        default: /var/lib/cassandra; the parent of folders that cassandra.yaml does not name
#   CASSANDRA_HOST, CASSANDRA_PORT  default: rpc_address and native_transport_port of cassandra.yaml
#   NODE_ID                  default: the name of the host; different at each agent
#   AGENT_WORK               default: /var/lib/reconciler-agent; the agent's own disk
#   AGENT_JARS               default: the folder jars beside that of this file
#   AGENT_HTTP_PORT          default: 8000, for /health
#   AGENT_METRICS_PORT       port or address:port where the MBeans of the agent are served to Prometheus
#   AGENT_JAVA_OPTIONS       default: -Xms64m -Xmx512m; separated by blanks
#   CASSANDRA_USERNAME, KAFKA_USERNAME  with a password: a login. KAFKA_MECHANISM, default: SCRAM-SHA-512
#   CASSANDRA_TRUST_STORE    TLS to the node: PKCS 12, with CASSANDRA_KEY_STORE if the node asks for a certificate
#   KAFKA_CA                 TLS to Kafka: PEM, with KAFKA_CERTIFICATE (key and certificate) if Kafka asks for one
# Passwords are read from CASSANDRA_PASSWORD, KAFKA_PASSWORD and STORE_PASSWORD (of both stores), or from the file
# that CASSANDRA_PASSWORD_FILE, KAFKA_PASSWORD_FILE or STORE_PASSWORD_FILE names. All else that the driver or the
# producer knows stands in driver.conf and agent.properties in the folder AGENT_CONFIG, default:
# /etc/reconciler-agent; they are appended.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

fail() {
  echo "start.sh: $1" >&2
  exit 2
}

# The value of a setting of one line in cassandra.yaml, without quotes and comment.
setting() {
  sed -nE "s/^$1:[[:space:]]+([^#]*[^#[:space:]])([[:space:]]+#.*)?[[:space:]]*\$/\1/p" "$CASSANDRA_YAML" |
    tail -n 1 | tr -d "\"'"
}

# The password of this name, from its file or from the environment.
secret() {
  local file=$1_FILE
  if [[ -n ${!file:-} ]]; then cat -- "${!file}"; else printf %s "${!1:-}"; fi
}

# Each UTF-16 unit as \uXXXX, which HOCON and Java's properties read alike: no character keeps a meaning.
escaped() {
  printf %s "$1" | iconv -f UTF-8 -t UTF-16BE | od -An -v -tx1 -w2 | sed 's/ //g; s/^/\\u/' | tr -d '\n'
}

# Between the quotes of a JAAS configuration.
quoted() {
  printf %s "$1" | sed 's/[\\"]/\\&/g'
}

driver() {
  "$here/../render.sh" "$here/driver.conf"
  local password key=datastax-java-driver.advanced
  if [[ -n ${CASSANDRA_USERNAME:-} ]]; then
    password=$(secret CASSANDRA_PASSWORD)
    echo "$key.auth-provider { class = PlainTextAuthProvider"
    echo "  username = \"$(escaped "$CASSANDRA_USERNAME")\", password = \"$(escaped "$password")\" }"
  fi
  [[ -n ${CASSANDRA_TRUST_STORE:-} ]] || return 0
  password=$(secret STORE_PASSWORD)
  password=$(escaped "$password")
  # Host names are verified by the address with which the driver connects. A handshake that a busy node gives up is
  # tried again.
  echo "$key.reconnect-on-init = true"
  echo "$key.ssl-engine-factory { class = DefaultSslEngineFactory, hostname-validation = true"
  echo "  truststore-path = \"$CASSANDRA_TRUST_STORE\", truststore-password = \"$password\""
  if [[ -n ${CASSANDRA_KEY_STORE:-} ]]; then
    echo "  keystore-path = \"$CASSANDRA_KEY_STORE\", keystore-password = \"$password\""
  fi
  echo "}"
}

producer() {
  "$here/../render.sh" "$here/agent.properties"
  local password login protocol=PLAINTEXT key=kafka.producer
  if [[ -n ${KAFKA_CA:-} ]]; then
    protocol=SSL
    printf '%s\n' "$key.ssl.truststore.type=PEM" "$key.ssl.truststore.location=$KAFKA_CA"
  fi
  if [[ -n ${KAFKA_CERTIFICATE:-} ]]; then
    printf '%s\n' "$key.ssl.keystore.type=PEM" "$key.ssl.keystore.location=$KAFKA_CERTIFICATE"
  fi
  if [[ -n ${KAFKA_USERNAME:-} ]]; then
    protocol=SASL_$protocol
    password=$(secret KAFKA_PASSWORD)
    login="username=\"$(quoted "$KAFKA_USERNAME")\" password=\"$(quoted "$password")\";"
    case ${KAFKA_MECHANISM:=SCRAM-SHA-512} in
      PLAIN) login="org.apache.kafka.common.security.plain.PlainLoginModule required $login" ;;
      *) login="org.apache.kafka.common.security.scram.ScramLoginModule required $login" ;;
    esac
    printf '%s\n' "$key.sasl.mechanism=$KAFKA_MECHANISM" "$key.sasl.jaas.config=$(escaped "$login")"
  fi
  echo "$key.security.protocol=$protocol"
}

# A file of the agent: what `driver` or `producer` prints, then what the operator appends.
write() {
  umask 077
  "$1" > "$AGENT_WORK/$2"
  if [[ -e ${AGENT_CONFIG:=/etc/reconciler-agent}/$2 ]]; then cat -- "$AGENT_CONFIG/$2" >> "$AGENT_WORK/$2"; fi
}

jar() {
  local found=("$AGENT_JARS/$1"-*.jar)
  [[ -e ${found[0]} ]] || fail "$AGENT_JARS has no $1-*.jar: copy the jars there"
  printf %s "${found[0]}"
}

: "${CASSANDRA_YAML:=/etc/cassandra/cassandra.yaml}" "${CASSANDRA_STORAGE:=/var/lib/cassandra}"
: "${AGENT_WORK:=/var/lib/reconciler-agent}" "${AGENT_JARS:=$here/../jars}"
[[ -n ${KAFKA_BOOTSTRAP_SERVERS:-} ]] || fail "set KAFKA_BOOTSTRAP_SERVERS to host:port of Kafka"
[[ -r $CASSANDRA_YAML ]] || fail "$CASSANDRA_YAML cannot be read: set CASSANDRA_YAML to the node's cassandra.yaml"

options=("@$here/../cassandra/jvm17.options")
case ${CASSANDRA_RELEASE:-} in
  5.0) connector=Cassandra5Connector ;;
  4.1)
    connector=Cassandra4Connector
    jamm=$(jar jamm)
    options+=("@$here/../cassandra/jvm17-4.1.options" "-javaagent:$jamm")
    ;;
  *) fail "CASSANDRA_RELEASE is '${CASSANDRA_RELEASE:-}': set it to 5.0 or 4.1" ;;
esac
if [[ -n ${AGENT_METRICS_PORT:-} ]]; then
  exporter=$(jar jmx_prometheus_javaagent)
  options+=("-javaagent:$exporter=$AGENT_METRICS_PORT:$here/metrics.yaml")
fi
rackdc=$(dirname "$CASSANDRA_YAML")/cassandra-rackdc.properties
if [[ -e $rackdc ]]; then options+=("-Dcassandra-rackdc.properties=file://$rackdc"); fi

host=${CASSANDRA_HOST:-$(setting rpc_address)}
[[ -n $host ]] || fail "$CASSANDRA_YAML has no rpc_address: set CASSANDRA_HOST to the node's address"
if [[ $host == 0.0.0.0 ]]; then host=127.0.0.1; fi
native_port=${CASSANDRA_PORT:-$(setting native_transport_port)}
native_port=${native_port:-9042}
cluster_name=$(setting cluster_name)
connector_class=io.debezium.connector.cassandra.$connector
topic_prefix=${TOPIC_PREFIX:-james} node_id=${NODE_ID:-$HOSTNAME} http_port=${AGENT_HTTP_PORT:-8000}
bootstrap_servers=$KAFKA_BOOTSTRAP_SERVERS cassandra_yaml=$CASSANDRA_YAML
work=$AGENT_WORK driver_conf=$AGENT_WORK/driver.conf
export host native_port cluster_name connector_class topic_prefix node_id http_port
export bootstrap_servers cassandra_yaml work driver_conf

# The agent notes the highest position that Kafka has acknowledged of a table. After a crash it would skip what was on
# its way to another partition. Without these notes it sends again what lies in cdc_raw.
rm -rf "$AGENT_WORK/offsets"
mkdir -p "$AGENT_WORK/relocation" "$AGENT_WORK/offsets"
write driver driver.conf
write producer agent.properties

cd "$AGENT_WORK"
# shellcheck disable=SC2086  # options separated by blanks
exec "${JAVA_HOME:+$JAVA_HOME/bin/}java" ${AGENT_JAVA_OPTIONS:--Xms64m -Xmx512m} "${options[@]}" \
  "-Dcassandra.storagedir=$CASSANDRA_STORAGE" "-Dlogback.configurationFile=$here/logback.xml" \
  -cp "$AGENT_JARS/*" io.debezium.connector.cassandra.CassandraConnectorTask "$AGENT_WORK/agent.properties"
