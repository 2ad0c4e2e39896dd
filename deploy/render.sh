#!/usr/bin/env bash
# Prints the templates given, one after the other, with every ${name} replaced by the environment
# variable of that name: what deploy.embedded does from its own values, for containers. Comments
# stay as they are. A name that is not set is an error; one that is set to nothing is not.
set -euo pipefail

while IFS= read -r line || [[ -n $line ]]; do
  rest=$line
  while [[ ! $line =~ ^[[:space:]]*# && $rest =~ \$\{([a-z_]+)\} ]]; do
    name=${BASH_REMATCH[1]}
    if [[ ! -v $name ]]; then
      echo "render.sh: no value for \${$name}: set it in the environment" >&2
      exit 1
    fi
    rest=${rest#*"\${$name}"}
    line=${line/"\${$name}"/"${!name}"}
  done
  printf '%s\n' "$line"
done < <(for template in "$@"; do cat -- "$template"; echo; done)
