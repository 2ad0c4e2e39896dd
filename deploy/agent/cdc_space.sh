#!/bin/sh
# Writes how full a node's cdc_raw is, for the textfile collector of node_exporter. Arguments: the
# folder, cdc_total_space in MiB as in cassandra.yaml, and the file to write. reconciler-cdc-space.timer runs
# it each minute on each Cassandra node:
#   cdc_space.sh /var/lib/cassandra/cdc_raw 4096 /var/lib/node_exporter/textfile/cdc_raw.prom
set -eu
raw=$1 limit_mib=$2 file=$3

listed=$(ls -lnA "$raw")
used=$(printf '%s\n' "$listed" | awk '$1 ~ /^-/ { sum += $5 } END { printf "%.0f", sum }')
new=$(mktemp "$file.XXXXXX")  # the collector reads *.prom only, and never half a file
trap 'rm -f "$new"' EXIT
cat > "$new" <<METRICS
# HELP reconciler_cdc_raw_bytes Bytes of the change segments that no agent has consumed yet
# TYPE reconciler_cdc_raw_bytes gauge
reconciler_cdc_raw_bytes $used
# HELP reconciler_cdc_raw_limit_bytes The setting cdc_total_space
# TYPE reconciler_cdc_raw_limit_bytes gauge
reconciler_cdc_raw_limit_bytes $((limit_mib * 1048576))
METRICS
chmod 644 "$new"
mv "$new" "$file"
