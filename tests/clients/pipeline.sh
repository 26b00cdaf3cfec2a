#!/bin/bash
# SPDX-License-Identifier: MIT
# socat and jq, as somebody at a prompt uses them.
# usage: pipeline.sh SOCKET PID
set -euo pipefail
socket=$1
pid=$2
fail() { echo "pipeline: $*" >&2; exit 1; }

# One question, one pipe: socat closes its sending half and still gets the answer.
ask() { printf '{"jsonrpc":"2.0","id":1,"method":"%s","params":%s}\n' "$1" "$2" | socat -t 30 - "UNIX:$socket"; }

ask agent.hello '{"client":"socat"}' | jq -e '.result.protocol | startswith("1.")' >/dev/null || fail "hello"
echo '{"jsonrpc":"2.0","id":1,"method":"process.list"}' | socat -t 30 - "UNIX:$socket" |
	jq -e --argjson pid "$pid" '.result.processes[] | select(.pid == $pid) | .queues == 4' >/dev/null || fail "list"
printf '{"jsonrpc":"2.0","id":1,"method":"agent.status"}' | socat -t 30 - "UNIX:$socket" |
	jq -e '.result.connections == 1' >/dev/null || fail "no line break at the end"
ask no.such.method '{}' | jq -e '.error.code == -32601' >/dev/null || fail "unknown method"
ask session.attach '{"pid":4194304}' | jq -e '.error | .code == -32001 and (.data.hint | length) > 0' >/dev/null ||
	fail "dead process"
echo '{"jsonrpc":' | socat -t 30 - "UNIX:$socket" | jq -e '.id == null and .error.code == -32700' >/dev/null ||
	fail "broken JSON"

# A session needs the connection to stay.
coproc CONNECTION { socat -t 30 - "UNIX:$socket"; }
say() { printf '{"jsonrpc":"2.0","id":"x","method":"%s","params":%s}\n' "$1" "$2" >&"${CONNECTION[1]}"; }
# The next message that jq's expression picks.
hear() {
	local line found
	while IFS= read -r -t 30 line <&"${CONNECTION[0]}"; do
		if found=$(jq -er "$1" <<<"$line"); then
			echo "$found"
			return
		fi
	done
	fail "nothing with $1"
}

say session.attach "{\"pid\":$pid}"
session=$(hear .result.session)
say gpu.snapshot "{\"session\":\"$session\"}"
[ "$(hear '.result | select(.complete) | .queues | length')" = 4 ] || fail "snapshot"
say gpu.queues '{"session":"nonsense"}'
[ "$(hear .error.data.name)" = no_such_session ] || fail "error of a session"
say session.detach "{\"session\":\"$session\"}"
[ "$(hear .result.ended)" = true ] || fail "detach"
say session.attach "{\"pid\":$pid}"
session=$(hear .result.session)
kill -KILL "$pid"
[ "$(hear 'select(.method == "session.ended") | .params.session')" = "$session" ] || fail "end of the session"
eval "exec ${CONNECTION[1]}>&-"
wait
echo "done"
