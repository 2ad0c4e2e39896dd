#!/bin/sh
# On Kubernetes Spark starts the same image with the word `executor`, and if an operator submits the
# application, the driver with the word `driver`. All that these need is in variables of Spark's.
set -eu

# What Spark itself starts does not run for a user id without a name, which OpenShift gives
# containers. libnss_wrapper names such an id, for this process and its children; `reconcile` needs
# no name.
name_the_user() {
    if ! getent passwd "$(id -u)" > /dev/null; then
        names=$(mktemp -d "${TMPDIR:-/tmp}/names-XXXXXX")
        echo "reconciler:x:$(id -u):$(id -g):reconciler:${HOME:-/}:/bin/false" > "$names/passwd"
        echo "reconciler:x:$(id -g):" > "$names/group"
        export LD_PRELOAD=libnss_wrapper.so
        export NSS_WRAPPER_PASSWD="$names/passwd" NSS_WRAPPER_GROUP="$names/group"
    fi
}

case "${1:-}" in
    executor)
        name_the_user
        # An executor copies jars into its working folder.
        folders=${SPARK_LOCAL_DIRS:-/tmp}
        cd "$(mktemp -d "${folders%%,*}/executor-XXXXXX")"
        # Spark numbers the options of the JVM: SPARK_JAVA_OPT_0, SPARK_JAVA_OPT_1, …
        set -- java "-Xms$SPARK_EXECUTOR_MEMORY" "-Xmx$SPARK_EXECUTOR_MEMORY"
        number=0
        while option=$(printenv "SPARK_JAVA_OPT_$number"); do
            set -- "$@" "$option"
            number=$((number + 1))
        done
        exec "$@" \
            -cp "${SPARK_CLASSPATH:+$SPARK_CLASSPATH:}${SPARK_CONF_DIR:-/opt/spark/conf}:$SPARK_HOME/jars/*" \
            org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
            --driver-url "$SPARK_DRIVER_URL" --app-id "$SPARK_APPLICATION_ID" \
            --executor-id "$SPARK_EXECUTOR_ID" --cores "$SPARK_EXECUTOR_CORES" \
            --hostname "$SPARK_EXECUTOR_POD_IP" --podName "$SPARK_EXECUTOR_POD_NAME" \
            --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID"
        ;;
    driver)
        name_the_user
        shift
        exec "$SPARK_HOME/bin/spark-submit" --deploy-mode client \
            --conf "spark.driver.bindAddress=$SPARK_DRIVER_BIND_ADDRESS" "$@"
        ;;
    *)
        exec reconcile "$@"
        ;;
esac
