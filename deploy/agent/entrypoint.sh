#!/usr/bin/env bash
# Writes the agent's configuration from the templates, then becomes the agent.
# From outside: CASSANDRA_HOST, KAFKA_BOOTSTRAP_SERVERS, TOPIC_PREFIX; NODE_ID, the node's host id
# (nodetool info); CASSANDRA_ENDPOINT_SNITCH, CASSANDRA_DATACENTER and CASSANDRA_RACK as the node has
# them; CASSANDRA_USERNAME with CASSANDRA_PASSWORD where the cluster asks for a login.
# The node's disk is at /var/lib/cassandra, the agent's own at /var/lib/agent. TLS and logins that these do
# not name stand in files of your own (docs/security.md), which are appended: /etc/agent/driver.conf and
# /etc/agent/agent.properties.
set -euo pipefail

export work=/var/lib/agent storage=/var/lib/cassandra
export connector_class=io.debezium.connector.cassandra.Cassandra5Connector
export topic_prefix=${TOPIC_PREFIX:-james} node_id=${NODE_ID:-node-1} http_port=8000
export bootstrap_servers=${KAFKA_BOOTSTRAP_SERVERS:?say where Kafka is, as host:port}
export host=${CASSANDRA_HOST:?say where the Cassandra node is} native_port=${CASSANDRA_PORT:-9042}
export storage_port=7000 address=127.0.0.1
export endpoint_snitch=${CASSANDRA_ENDPOINT_SNITCH:-SimpleSnitch}
export datacenter=${CASSANDRA_DATACENTER:-datacenter1} rack=${CASSANDRA_RACK:-rack1}
export cluster_name=${CASSANDRA_CLUSTER_NAME:-james}
export cassandra_yaml=$work/cassandra.yaml driver_conf=$work/driver.conf
export auth=""
if [[ -n ${CASSANDRA_USERNAME:-} ]]; then
  auth="advanced.auth-provider { class = PlainTextAuthProvider, username = \"$CASSANDRA_USERNAME\", password = \"${CASSANDRA_PASSWORD:-}\" }"
fi

umask 077
# The agent notes the highest position that Kafka has acknowledged of a table. After a crash it would
# skip what was on its way to another partition: so what lies in cdc_raw is sent again.
rm -rf "$work/offsets"
mkdir -p "$work/relocation" "$work/offsets"
cd /opt/agent
./render.sh templates/cassandra.yaml templates/cassandra-5.0.yaml > "$cassandra_yaml"
./render.sh templates/cassandra-rackdc.properties > "$work/cassandra-rackdc.properties"
./render.sh templates/driver.conf > "$driver_conf"
./render.sh templates/agent.properties > "$work/agent.properties"
for name in driver.conf agent.properties; do
  if [[ -e /etc/agent/$name ]]; then cat "/etc/agent/$name" >> "$work/$name"; fi
done

# AGENT_JAVA_OPTIONS holds options separated by blanks.
# shellcheck disable=SC2086
exec java ${AGENT_JAVA_OPTIONS:--Xms64m -Xmx512m} @templates/jvm17.options \
  -Dcassandra.storagedir="$storage" \
  -Dcassandra-rackdc.properties="file:$work/cassandra-rackdc.properties" \
  -Dlogback.configurationFile=/opt/agent/templates/logback.xml \
  -cp '/opt/agent/jars/*' \
  io.debezium.connector.cassandra.CassandraConnectorTask "$work/agent.properties"
