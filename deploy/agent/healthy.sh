#!/usr/bin/env bash
# Exit 0 when the agent's /health answers 200. Needs nothing but bash.
set -euo pipefail
exec 3<>"/dev/tcp/127.0.0.1/${1:-8000}"
printf 'GET /health HTTP/1.0\r\nHost: localhost\r\n\r\n' >&3
IFS= read -r status <&3
[[ $status == *" 200"* ]]
