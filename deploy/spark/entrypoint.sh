#!/bin/sh
# Spark's Hadoop does not run for a user id without a name, which OpenShift gives containers.
# libnss_wrapper names such an id, for this process and its children. Where no file can be written,
# commands run without a name: `reconcile pause` needs none, and `stream` says what it lacks.
set -eu

if ! getent passwd "$(id -u)" > /dev/null && names=$(mktemp -d "${TMPDIR:-/tmp}/names-XXXXXX"); then
    echo "reconciler:x:$(id -u):$(id -g):reconciler:${HOME:-/}:/bin/false" > "$names/passwd"
    echo "reconciler:x:$(id -g):" > "$names/group"
    export LD_PRELOAD=libnss_wrapper.so
    export NSS_WRAPPER_PASSWD="$names/passwd" NSS_WRAPPER_GROUP="$names/group"
fi
exec reconcile "$@"
