#!/usr/bin/env bash
# The rights in Kafka of the reconciler and of the agents, for a cluster with an authorizer. Run it once, as a
# super user, with kafka-acls.sh of Kafka on the PATH:
#
#     ./acls.sh --bootstrap-server HOST:PORT --command-config ADMIN.properties
#
# Before that, change here the principals, and the topics if yours are called otherwise (kafka.topic_prefix,
# kafka.suspects_topic, kafka.group …). A principal of a certificate is its whole subject.
set -euo pipefail
servers=("$@")
acl() { kafka-acls.sh "${servers[@]}" --add "$@"; }

# The agents' one topic: agents write it, the reconciler reads it. `doctor` reads its settings.
acl --allow-principal User:CN=agent --operation Write --operation Describe --topic james
acl --allow-principal User:reconciler --operation Read --operation Describe --operation DescribeConfigs --topic james

# Its own topics. Leave Create out where you make them yourself.
acl --allow-principal User:reconciler --operation Read --operation Write --operation Describe --operation DescribeConfigs --operation Create --topic reconciler. --resource-pattern-type prefixed

# Its group, for which offsets are committed. The group's name begins with that of the topics.
acl --allow-principal User:reconciler --operation Read --operation Describe --group reconciler. --resource-pattern-type prefixed

# For `reconcile findings --retry-dead-letters` only, which publishes records again to the topic they came from.
# acl --allow-principal User:reconciler --operation Write --topic james
