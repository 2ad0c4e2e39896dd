#!/usr/bin/env bash
# Puts the project's cassandra.yaml, change capture on, in the place of the image's own, then goes on
# as the image does: that fills in the addresses of this container. The file is on the node's disk, where its agent
# reads it too.
set -euo pipefail

export storage=/var/lib/cassandra storage_port=7000 native_port=9042
# the image replaces these two, the snitch where CASSANDRA_ENDPOINT_SNITCH is set
export address=127.0.0.1 endpoint_snitch=SimpleSnitch
export cluster_name=${CASSANDRA_CLUSTER_NAME:-james}
mkdir -p "$storage/conf"
{
  /opt/reconciler/render.sh /opt/reconciler/cassandra.yaml /opt/reconciler/cassandra-5.0.yaml
  # The image replaces lines that it finds, commented ones too; this one it must find.
  echo '# broadcast_rpc_address: 1.2.3.4'
} > "$storage/conf/cassandra.yaml"
ln -sf "$storage/conf/cassandra.yaml" /etc/cassandra/cassandra.yaml
exec docker-entrypoint.sh "$@"
