#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# gpusharectl status, inspect, lend, reclaim, grant --spot: against an agent of the tests, whose
# answers stand in files. The real one is asked in tests/vm.
# shellcheck disable=SC2154 # what common.bash sets

load common

grant_name=0123456789abcdef0123456789abcdef

teardown() {
	if [[ -s $dir/agent.pid ]]; then
		kill "$(<"$dir/agent.pid")" || true
	fi
}

# agent: starts one. Its socket counts only if it is root's.
agent() {
	[ "$(id -u)" -eq 0 ] || skip "only root can be the agent"
	mkdir -p "$run_dir" "$dir/answers"
	/usr/bin/python3 tests/lib/fakeagent.py "$run_dir/agent.sock" "$dir/answers" \
		>"$dir/agent.log" 2>&1 3>&- &
	echo $! >"$dir/agent.pid"
	for _ in {1..100}; do
		[[ ! -S $run_dir/agent.sock ]] || return 0
		sleep 0.1
	done
	cat "$dir/agent.log"
	return 1
}

# answers OP MEMBERS: what it says to that; MEMBERS is JSON without its braces.
answers() {
	printf '{"v":1,"ok":true%s}' "${2:+,$2}" >"$dir/answers/$1"
}

# refuses OP SENTENCE
refuses() {
	printf '{"v":1,"ok":false,"error":"%s"}' "$2" >"$dir/answers/$1"
}

# asked N: prints the N-th request of this test, its members sorted.
asked() {
	sed -n "$1p" "$dir/answers/requests" | /usr/bin/python3 -c '
import json, sys
print(json.dumps(json.load(sys.stdin), sort_keys=True))'
}

# node: an agent that tells of four cards: one lent, one in use and shared, one idle, one free.
node() {
	agent
	answers status '
	"kernel": {"loaded": true, "version": "1.2.3"},
	"cards": [
	 {"card": "nvidia-G0", "vendor": "nvidia", "id": "G0", "uuid": "GPU-0",
	  "holding": "uid-a/main", "busy": 0.375,
	  "memory_used": 12884901888, "memory_total": 85899345920, "revocable": true},
	 {"card": "nvidia-G1", "vendor": "nvidia", "id": "G1", "holding": "uid-b/main", "busy": 0,
	  "memory_used": 0, "memory_total": 85899345920, "revocable": false},
	 {"card": "nvidia-G2", "vendor": "nvidia", "id": "G2", "holding": "uid-c/main", "busy": 0},
	 {"card": "nvidia-G3", "vendor": "nvidia", "id": "G3", "busy": 0}],
	"holdings": [
	 {"holding": "uid-a/main", "state": "lent", "since_ms": 754000, "cards": ["nvidia-G0"],
	  "lend": true, "touches": 9, "members": [
	   {"id": "aaaaaaaaaaaaaaaaaaaa", "name": "team-a/dev/main", "role": "holder",
	    "running": true, "cards": ["nvidia-G0"]}]},
	 {"holding": "uid-b/main", "state": "active", "since_ms": 5000, "cards": ["nvidia-G1"],
	  "lend": false, "why_not": "other pods share it", "touches": 100, "members": [
	   {"id": "bbbbbbbbbbbbbbbbbbbb", "name": "team-b/dev/main", "role": "holder",
	    "running": true, "cards": ["nvidia-G1"]},
	   {"id": "cccccccccccccccccccc", "name": "team-b/job/train", "role": "target",
	    "running": true, "cards": ["nvidia-G1"], "user_id": "u-7", "partition": "gold",
	    "memory_used": 1073741824}]},
	 {"holding": "uid-c/main", "state": "idle", "cards": ["nvidia-G2"], "lend": true,
	  "members": [
	   {"id": "dddddddddddddddddddd", "role": "holder", "running": false,
	    "cards": ["nvidia-G2"]}]}],
	"borrowers": [
	 {"id": "eeeeeeeeeeeeeeeeeeee", "name": "team-s/spot/one", "role": "borrower",
	  "running": true, "ending": false, "cards": ["nvidia-G0"]}]'
}

@test "a wrong call is 2 and says where help is" {
	local call
	for call in 'status x' 'status -o' 'status -o wide' 'status -x' 'inspect a b' \
		'inspect -o xml' 'inspect --nope' 'inspect --node n' 'inspect --totals x' 'top x' \
		'top --interval 1' 'top --interval 100ms' 'top --interval 2h' 'top --count 0' \
		'top --count 1x' 'top -n ns' 'lend' 'lend a b' 'lend -x a' 'reclaim' \
		'reclaim a b' 'reclaim --timeout' 'reclaim --timeout 5 a' 'reclaim --timeout 0 a' \
		'reclaim --timeout 2h a' 'reclaim -o json a' 'events x' 'events -n 0' \
		'events -o wide' 'grant --spot' 'grant --spot --to a/b/c' \
		'grant --spot --card c --source a/b/c' 'grant --spot --list' \
		'grant --spot --card c --revoke 012345' 'grant --spot --card c --to a/b'; do
		# shellcheck disable=SC2086 # words
		ctl $call
		got 2 '' '^gpusharectl: [^:]'
		[[ $said == *"Try 'gpusharectl ${call%% *} --help'"* ]]
	done
	ctl lend ''
	got 2 '' 'no name'
	ctl reclaim $'\xff'
	got 2 '' 'no name'
}

@test "without an agent each says which socket, and what to do" {
	[ "$(id -u)" -eq 0 ] || skip "only root can be the agent"
	local call
	for call in 'inspect' 'inspect -o json' 'lend x' 'reclaim x' 'grant --spot --card x'; do
		# shellcheck disable=SC2086 # words
		ctl $call
		got 1 '' "^gpusharectl: no agent at $run_dir/agent.sock: No such file or directory \
\(is gpushared running\? systemctl status gpushared\)$"
	done
	agent
	kill "$(<"$dir/agent.pid")"
	wait "$(<"$dir/agent.pid")" || true
	rm "$dir/agent.pid"
	ctl inspect
	got 1 '' "^gpusharectl: no agent at $run_dir/agent.sock: Connection refused \("
	chmod 0666 "$run_dir/agent.sock"
	ctl lend x
	got 1 '' 'others than root may write to the socket'
}

@test "without an agent status has the kernel module at least" {
	[ "$(id -u)" -eq 0 ] || skip "only root can be the agent"
	ctl status
	got 1 "^agent: no answer at $run_dir/agent.sock.kernel module: [^ ]" \
		"^gpusharectl: no agent at $run_dir/agent.sock: .*systemctl status gpushared"
	[[ $output != *nothing\ is\ wrong* ]]
	ctl status -o json
	got 1 . 'no agent at'
	[ "$(json 'd["agent"], d["cards"], d["holdings"], d["borrowers"], d["states"]')" = \
		"(False, [], [], [], {})" ]
	[[ $(json 'd["problems"]') == "['no agent at $run_dir/agent.sock: "* ]]
}

@test "somebody without rights is told to be root" {
	[ "$(id -u)" -eq 0 ] || skip "only root can become nobody"
	local verb
	agent
	public=$(mktemp -d)
	cp "$bin/gpusharectl" "$GPUSHARE_CONFIG" "$public"
	chmod -R a+rX "$public"
	for verb in status inspect 'lend x' 'reclaim x'; do
		# shellcheck disable=SC2086 # words
		GPUSHARE_CONFIG=$public/config.json run setpriv --reuid=65534 --regid=65534 \
			--clear-groups "$public/gpusharectl" $verb
		echo "$output"
		[ "$status" -eq 1 ]
		[[ $output == *'gpusharectl: no agent at '*'(run it as root)'* ]]
	done
	rm -rf "$public"
}

@test "status is one page" {
	node
	ctl status
	got 0 "^agent: $run_dir/agent.sock.kernel module: 1.2.3.cards: 4 \
\(1 active, 1 free, 1 idle, 1 lent\)" ''
	got 0 'HOLDING +STATE +SINCE +CARDS +HELD-BY +SHARED-WITH +NOT-LENT'
	got 0 'uid-a/main +lent +12m34s +nvidia-G0 +team-a/dev/main +- +-'
	got 0 'uid-b/main +active +5s +nvidia-G1 +team-b/dev/main +team-b/job/train +other pods sh'
	got 0 'uid-c/main +idle +- +nvidia-G2 +dddddddddddddddddddd +- +-'
	got 0 'team-s/spot/one +running +nvidia-G0'
	got 0 'returns that make no call: held on 1 of 2 cards'
	got 0 'nothing is wrong$'
	[ "$(asked 1)" = '{"op": "status", "v": 1}' ]
}

@test "status as JSON has every key, and null for what is not known" {
	node
	ctl status -o json
	got 0 . ''
	[ "$(json 'sorted(d)')" = "['agent', 'borrowers', 'cards', 'holdings', 'kernel', \
'problems', 'states']" ]
	[ "$(json 'd["agent"], d["kernel"], d["problems"]')" = \
		"(True, {'loaded': True, 'version': '1.2.3'}, [])" ]
	[ "$(json 'd["states"]')" = "{'active': 1, 'free': 1, 'idle': 1, 'lent': 1}" ]
	[ "$(json 'len({tuple(c) for c in d["cards"]})')" = 1 ]
	[ "$(json 'len({tuple(h) for h in d["holdings"]})')" = 1 ]
	[ "$(json 'd["cards"][3]')" = "{'card': 'nvidia-G3', 'vendor': 'nvidia', 'id': 'G3', \
'uuid': None, 'holding': None, 'state': 'free', 'busy': 0.0, 'memory_used': None, \
'memory_total': None, 'strangers': False, 'revocable': None}" ]
	[ "$(json '[c["revocable"] for c in d["cards"]]')" = '[True, False, None, None]' ]
	[ "$(json '[(h["state"], h["since_ms"], h["touches"], h["lend"], h["why_not"])
		for h in d["holdings"]]')" = "[('lent', 754000, 9, True, None), \
('active', 5000, 100, False, 'other pods share it'), ('idle', None, None, True, None)]" ]
	[ "$(json 'd["holdings"][1]["members"][1]')" = "{'id': 'cccccccccccccccccccc', \
'name': 'team-b/job/train', 'role': 'target', 'running': True, 'ending': False, \
'cards': ['nvidia-G1'], 'user_id': 'u-7', 'partition': 'gold', \
'memory_used': 1073741824}" ]
	[ "$(json '[d["borrowers"][0][k] for k in ("user_id", "partition", "memory_used")]')" = \
		'[None, None, None]' ]
	[ "$(json 'd["borrowers"][0]["name"], d["borrowers"][0]["ending"]')" = \
		"('team-s/spot/one', False)" ]
}

@test "status tells what is wrong" {
	agent
	answers status '"kernel": {"loaded": false}, "cards": [], "holdings": [], "borrowers": []'
	ctl status
	got 0 'kernel module: not loaded.cards: 0' ''
	got 0 'nobody holds a card.*nobody borrows a card'
	got 0 'wrong:.  the kernel module is not loaded \(modprobe gpushare\)'
	got 0 'the agent knows no card'
	answers status '"kernel": {"loaded": true},
		"cards": [{"card": "a", "holding": "h1", "strangers": true, "busy": 1},
			{"card": "b", "holding": "h2"}, {"card": "c", "holding": "h3", "busy": 0,
			 "revocable": false, "unrevocable": "one address space"}],
		"holdings": [{"holding": "h1", "state": "quarantine", "cards": ["a"]},
			{"holding": "h2", "state": "unknown", "cards": ["b"]},
			{"holding": "h3", "state": "active", "cards": ["c"]}],
		"borrowers": [{"id": "x1", "running": true, "cards": ["a"]},
			{"id": "x2", "running": true, "cards": ["c"], "ending": true},
			{"id": "x3", "running": false, "cards": ["c"]}]'
	ctl status -o json
	got 0 . ''
	[ "$(json 'len(d["problems"])')" = 6 ]
	ctl status
	got 0 'kernel module: loaded'
	got 0 'holding h1 is in quarantine'
	got 0 'state of holding h2 is not known.*kmod status'
	got 0 'card a is used by a process that belongs to no container'
	got 0 'load of card b is not known'
	got 0 'return to card c that makes no call is not held: one address space'
	ctl inspect c
	got 0 'revocable +no: .* seen by load at most \(one address space\)$'
	ctl status
	got 0 'borrower x2 runs on card c, which is not lent \(active\)'
	got 0 'x2 +ending +c'
	got 0 'x3 +gone +c'
}

@test "inspect lists every card" {
	node
	ctl inspect
	got 0 '^CARD +STATE +SINCE +HELD-BY +SHARED-WITH +BORROWED-BY +BUSY +MEMORY +NOT-LENT' ''
	got 0 'nvidia-G0 +lent +12m34s +team-a/dev/main +- +team-s/spot/one +38% +12.0/80.0 GiB +-'
	got 0 'nvidia-G1 +active +5s +team-b/dev/main +team-b/job/train +- +0% +0.0/80.0 GiB +other'
	got 0 'nvidia-G2 +idle +- +dddddddddddddddddddd +- +- +0% +- +-'
	got 0 'nvidia-G3 +free +- +- +- +- +0% +- +nobody holds it'
	[ "$(wc -l <<<"$output")" -eq 5 ]
}

@test "inspect tells all about what is named" {
	node
	local name
	for name in nvidia-G0 G0 GPU-0 uid-a/main team-a/dev/main aaaaaaaaaaaaaaaaaaaa aaaaaa \
		team-s/spot/one eeeeeeeeeeee; do
		ctl inspect "$name"
		got 0 '^card +nvidia-G0.vendor +nvidia.id +G0.uuid +GPU-0.state +lent.since +12m34s'
		got 0 . ''
		got 0 'holding +uid-a/main.touches +9'
		got 0 'held by +team-a/dev/main \(id aaaaaaaaaaaa, running\)'
		got 0 'borrowed by +team-s/spot/one \(id eeeeeeeeeeee, running\)'
		got 0 'busy +38%.memory +12.0/80.0 GiB.revocable +yes: .* is held, too$'
		[[ $output != *not\ lent* && $output != *nvidia-G1* ]]
	done
	ctl inspect team-b/job/train
	got 0 'not lent +other pods share it'
	got 0 'shared with +team-b/job/train'
	got 0 'revocable +no: a return that makes no call is seen by load at most$'
	ctl inspect G2
	[[ $output != *revocable* ]]
	got 0 'held by +dddddddddddddddddddd \(id dddddddddddd, gone\)'
	for name in aaaaa nvidia-G9 '' team-a/dev; do
		ctl inspect "$name"
		got 1 '' "^gpusharectl: no card, holding or container with a card is called $name$"
	done
}

@test "inspect as JSON has every key" {
	node
	ctl inspect -o json
	got 0 . ''
	[ "$(json 'len(d), len({tuple(c) for c in d})')" = '(4, 1)' ]
	[ "$(json 'sorted(d[0])')" = "['borrowers', 'busy', 'card', 'holders', 'holding', 'id', \
'memory_total', 'memory_used', 'revocable', 'sharers', 'since_ms', 'state', 'strangers', \
'touches', 'uuid', 'vendor', 'why_not']" ]
	[ "$(json '[(c["state"], c["since_ms"], c["touches"], c["why_not"]) for c in d]')" = \
		"[('lent', 754000, 9, None), ('active', 5000, 100, 'other pods share it'), \
('idle', None, None, None), ('free', None, None, 'nobody holds it')]" ]
	[ "$(json '[[len(c[k]) for k in ("holders", "sharers", "borrowers")] for c in d]')" = \
		'[[1, 0, 1], [1, 1, 0], [1, 0, 0], [0, 0, 0]]' ]
	ctl inspect -o json uid-b/main
	[ "$(json '[c["card"] for c in d], d[0]["sharers"][0]["name"]')" = \
		"(['nvidia-G1'], 'team-b/job/train')" ]
	agent_says_nothing
}

@test "inspect -o wide and yaml" {
	node
	ctl inspect -o wide
	got 0 'BUSY +MEMORY +VENDOR +ID +HOLDING +TENANT +TOUCHES +NOT-LENT' ''
	got 0 'nvidia-G0 +lent .* nvidia +G0 +uid-a/main +- +9 +-'
	ctl inspect -o wide team-a/dev/main
	[ "$(wc -l <<<"$output")" -eq 2 ]
	ctl inspect -o json
	local as_json=$output
	ctl inspect -o yaml
	got 0 '^- card: nvidia-G0' ''
	/usr/bin/python3 -c 'import json, sys, yaml
assert yaml.safe_load(sys.argv[1]) == json.loads(sys.argv[2])' "$output" "$as_json"
}

@test "inspect --totals counts for each pod and each tenant" {
	node
	ctl inspect --totals
	got 0 '^cards: 4 \(1 active, 1 free, 1 idle, 1 lent\)..POD +TENANT +PARTITION +HELD' ''
	got 0 'team-a/dev +team-a +- +1 +1 +0 +0 +-'
	got 0 'team-b/job +u-7 +gold +0 +0 +1 +0 +1.0 GiB'
	got 0 'TENANT +PARTITION +PODS +HELD +LENT +SHARED +BORROWED +MEMORY'
	got 0 'team-s +- +1 +0 +0 +0 +1 +-'
	ctl inspect --totals -o json
	[ "$(json '[(p["pod"], p["node"], p["held"], p["borrowed"]) for p in d["pods"]]')" = \
		"[('dddddddddddddddddddd', None, 1, 0), ('team-a/dev', None, 1, 0), \
('team-b/dev', None, 1, 0), ('team-b/job', None, 0, 0), ('team-s/spot', None, 0, 1)]" ]
	[ "$(json 'sorted(d["tenants"][0])')" = "['borrowed', 'held', 'lent', 'memory_used', \
'partition', 'pods', 'shared', 'tenant']" ]
}

# An answer without anything in it is an empty picture, and no crash.
agent_says_nothing() {
	answers status ''
	ctl inspect
	got 0 '' 'knows no card'
	ctl inspect -o json
	got 0 '^\[\]$' ''
	answers status '"cards": [7, {"card": 7}, null], "holdings": {"a": 1}, "kernel": [],
		"borrowers": [{"id": 1}, "x"]'
	ctl status
	got 0 'kernel module: not known.cards: 0.' ''
}

@test "a card is seen only by those members who use it" {
	agent
	answers status '"kernel": {"loaded": true}, "borrowers": [],
		"cards": [{"card": "a", "holding": "h", "busy": 0},
			{"card": "b", "holding": "h", "busy": 0}],
		"holdings": [{"holding": "h", "state": "idle", "cards": ["a", "b"], "members": [
			{"id": "one", "role": "holder", "cards": ["a", "b"], "running": true},
			{"id": "two", "role": "target", "cards": ["b"], "running": true}]}]'
	ctl inspect
	got 0 'a +idle +- +one +- +- .*b +idle +- +one +two +- ' ''
	ctl inspect two
	got 0 '^card +b.'
	[[ $output != *card*card* ]]
	ctl inspect h
	got 0 '^card +a.*card +b.' ''
}

@test "a hostile name gives the terminal no orders" {
	agent
	answers status '"kernel": {"loaded": true, "version": "1\u001b[31m"}, "cards": [
		{"card": "c\u001b]0;x\u0007", "holding": "h\u009b1m\u202e", "busy": 0,
		 "vendor": "v\nw", "strangers": true}],
		"holdings": [{"holding": "h\u009b1m\u202e", "state": "id\u007fle",
		 "cards": ["c\u001b]0;x\u0007"], "why_not": "n\u001b[2J", "members": [
		  {"id": "i\u001b", "name": "a/b/c\u001b[31m", "role": "holder", "cards":
		   ["c\u001b]0;x\u0007"], "running": true}]}],
		"borrowers": [{"id": "s\u001b", "running": true, "cards": ["c\u001b]0;x\u0007"]}]'
	refuses lend 'no \u001b[31m card'
	local call order
	for call in status inspect 'status -o json' 'inspect -o json' 'inspect a/b/c'; do
		if [[ $call == *a/b/c* ]]; then
			ctl inspect $'a/b/c\e[31m'
		else
			# shellcheck disable=SC2086 # words
			ctl $call
		fi
		got 0 . ''
		for order in $'\e' $'\a' $'\u9b' $'\u202e' $'v\nw'; do
			if [[ $output == *"$order"* ]]; then
				printf '%s gives %q\n' "$call" "$order"
				return 1
			fi
		done
	done
	ctl inspect
	got 0 'c\?\]0;x\? +id\?le '
	ctl lend $'x\e[31m'
	got 1 '' '^gpusharectl: no \?\[31m card$'
	answers lend
	ctl lend $'x\e[31m'
	got 0 '^x\?\[31m is lent$' ''
	ctl inspect $'\e[31m'
	got 1 '' 'is called \?\[31m$'
}

@test "lend asks for it, and tells a refusal" {
	agent
	answers lend
	ctl lend nvidia-G0
	got 0 '^nvidia-G0 is lent$' ''
	[ "$(asked 1)" = '{"name": "nvidia-G0", "op": "lend", "v": 1}' ]
	refuses lend 'holding uid-a/main is not idle'
	ctl lend nvidia-G0
	got 1 '' '^gpusharectl: holding uid-a/main is not idle$'
}

@test "reclaim waits until it is back" {
	node
	answers withdraw
	ctl reclaim nvidia-G0
	got 0 '^nvidia-G0 is back after (0|[0-9]+(ms|s))' ''
	[ "$(asked 1)" = '{"name": "nvidia-G0", "op": "withdraw", "v": 1}' ]
	refuses withdraw 'no card or holding x'
	ctl reclaim --timeout 10s x
	got 1 '' '^gpusharectl: no card or holding x$'
}

@test "reclaim waits no longer than it was told" {
	agent
	: >"$dir/answers/withdraw.hang"
	SECONDS=0
	ctl reclaim nvidia-G0 --timeout 1s
	got 1 '' '^gpusharectl: nvidia-G0 is not back after 1s; the agent goes on with it'
	((SECONDS < 10))
}

@test "what is in quarantine is not back" {
	agent
	answers withdraw
	answers status '"cards": [{"card": "a", "id": "A", "holding": "h", "busy": 0}],
		"holdings": [{"holding": "h", "state": "quarantine"}]'
	local name
	for name in a A h; do
		ctl reclaim "$name"
		got 1 '' "^gpusharectl: $name is in quarantine: a borrower did not let go"
	done
}

@test "grant --spot prints the name that the agent gave" {
	agent
	answers grant "\"grant\": \"$grant_name\", \"cards\": [\"nvidia-G0\", \"nvidia-G1\"],
		\"sources\": [\"team-a/dev/main\"]"
	ctl grant --spot --card nvidia-G0
	got 0 "^$grant_name$" ''
	[ "$(asked 1)" = '{"cards": ["nvidia-G0"], "op": "grant", "v": 1}' ]
	ctl grant --spot --card nvidia-G0 --card G1 --to team-s/spot/one -o json
	got 0 . ''
	[ "$(asked 2)" = '{"cards": ["nvidia-G0", "G1"], "op": "grant", '\
'"to": "team-s/spot/one", "v": 1}' ]
	[ "$(json 'd')" = "{'name': '$grant_name', 'kind': 'spot', 'sources': \
['team-a/dev/main'], 'to': 'team-s/spot/one', 'cards': ['nvidia-G0', 'nvidia-G1'], \
'resource': None}" ]
	refuses grant 'card nvidia-G0 is not lent now'
	ctl grant --spot --card nvidia-G0
	got 1 '' '^gpusharectl: card nvidia-G0 is not lent now$'
	answers grant '"grant": "../x", "cards": [], "sources": []'
	ctl grant --spot --card nvidia-G0
	got 1 '' 'is no grant$'
	answers grant "\"grant\": \"$grant_name\""
	ctl grant --spot --card nvidia-G0
	got 1 '' 'is no grant$'
	# The agent writes it, not we.
	[ ! -e "$lib_dir/grants" ]
}

@test "an answer that is none is told" {
	agent
	echo 'rubbish' >"$dir/answers/status"
	ctl status
	got 1 'agent: no answer at' "^gpusharectl: the agent's answer"
	ctl inspect
	got 1 '' "^gpusharectl: the agent's answer"
	echo '{"v":2,"ok":true}' >"$dir/answers/lend"
	ctl lend x
	got 1 '' 'not of version 1'
}

@test "events without the kernel module says so, and what to do" {
	if [[ -e /sys/module/gpushare ]]; then
		skip "the kernel module is loaded here"
	fi
	local call
	for call in events 'events -f' 'events --follow -o json -n 3'; do
		# shellcheck disable=SC2086 # words
		ctl $call
		got 1 '' '^gpusharectl: kernel module gpushare is not loaded \(modprobe gpushare\)$'
	done
}
