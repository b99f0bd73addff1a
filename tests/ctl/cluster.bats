#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# kubectl gpushare: against a kubectl of the tests, whose answer stands in a file. A real one and a
# real API server are in tests/k8s.
# shellcheck disable=SC2154 # what common.bash sets

load common

# fake: a kubectl, and ourselves as its plugin.
fake() {
	[[ ! -d $dir/path ]] || return 0
	mkdir "$dir/path"
	ln -s "$bin/gpusharectl" "$dir/path/kubectl-gpushare"
	cat >"$dir/path/kubectl" <<-EOT
		#!/bin/sh
		printf '%s\n' "\$@" >>"$dir/called"
		echo -- >>"$dir/called"
		cat "$dir/answer" || exit
		[ ! -e "$dir/complaint" ] || { cat "$dir/complaint" >&2; exit 1; }
	EOT
	chmod +x "$dir/path/kubectl"
}

# share ARGUMENT...: runs kubectl-gpushare as ctl() does.
share() {
	fake
	status=0
	output=$(PATH=$dir/path:$PATH kubectl-gpushare "$@" 2>"$dir/said") || status=$?
	said=$(<"$dir/said")
}

# nodes PYTHON: what kubectl answers: ConfigMaps of the pictures in the dictionary that it is; "now"
# is a time of now.
nodes() {
	/usr/bin/python3 - "$1" >"$dir/answer" <<-'EOT'
		import json, sys, time
		def at(seconds):
		    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - seconds))
		now = at(0)
		print(json.dumps({"kind": "List", "items": [
		    {"metadata": {"name": "gpushare-node-" + name},
		     "data": {"status.json": picture if isinstance(picture, str)
		                             else json.dumps({"v": 1, **picture})}}
		    for name, picture in eval(sys.argv[1]).items()]}))
	EOT
}

two_nodes() {
	nodes '{"n1": {"time": now, "cards": [
		{"card": "nvidia-A", "vendor": "nvidia", "id": "A", "holding": "h", "busy": 0.5,
		 "memory_used": 2**30, "memory_total": 2**33}], "holdings": [{"holding": "h",
		 "state": "active", "since_ms": 5000, "members": [{"id": "1" * 20, "name":
		 "team-a/dev/main", "role": "holder", "running": True, "user_id": "u-1",
		 "partition": "gold", "cards": ["nvidia-A"], "memory_used": 2**20}]}]},
		"n2": {"time": at(4000), "left_out": 3,
		 "cards": [{"card": "nvidia-B", "busy": 0.75}]}}'
}

@test "a wrong call is 2 and says where help is" {
	local call
	for call in 'inspect a b' 'inspect -o xml' 'inspect --node' 'inspect --totals x' 'top x' \
		'top --interval 1s' 'top -o json' 'nothing' 'status'; do
		# shellcheck disable=SC2086 # words
		share $call
		got 2 '' '^kubectl gpushare: [^:]'
		[[ $said == *"Try 'kubectl gpushare "* ]]
	done
	[ ! -e "$dir/called" ]
}

@test "inspect lists every card of every node" {
	two_nodes
	share inspect
	got 0 '^NODE +CARD +STATE +SINCE +HELD-BY' \
		'^kubectl gpushare: node n2: 3 containers and cards had no room in its view$'
	got 0 'n1 +nvidia-A +active +[0-9]+s +team-a/dev/main +- +- +50% +1.0/8.0 GiB +it is in use'
	got 0 'n2 \(stale 1h6m\) +nvidia-B +free'
	[ "$(wc -l <<<"$output")" -eq 3 ]
	[ "$(paste -sd' ' "$dir/called")" = '--namespace=gpushare-system --request-timeout=30s '\
'get --output=json configmaps --selector=gpushare.k8s.io/view=node --' ]
	share inspect -o wide
	got 0 'n1 .* nvidia +A +h +u-1 +- '
	share inspect team-a/dev/main
	got 0 '^node +n1.card +nvidia-A.*held by +team-a/dev/main'
	share inspect nvidia-B
	got 0 '^node +n2.stale +yes: .*card +nvidia-B'
	share inspect none
	got 1 '' 'no card, holding or container with a card is called none'
}

@test "inspect as JSON and YAML has what the node's own has, and whose it is" {
	two_nodes
	share inspect -o json
	[ "$(json '[(c["node"], c["card"], c["stale"]) for c in d]')" = \
		"[('n1', 'nvidia-A', False), ('n2', 'nvidia-B', True)]" ]
	[ "$(json 'len({tuple(c) for c in d})')" = 1 ]
	[ "$(json 'd[1]["age_ms"] // 10000, d[0]["holders"][0]["user_id"]')" = "(400, 'u-1')" ]
	share inspect -o yaml
	[ "$(/usr/bin/python3 -c 'import sys, yaml
print([c["node"] for c in yaml.safe_load(sys.stdin)])' <<<"$output")" = "['n1', 'n2']" ]
}

@test "inspect --totals over all nodes" {
	two_nodes
	share inspect --totals
	got 0 '^nodes: 2 \(1 stale\), cards: 2 \(1 active, 1 free\)'
	got 0 'team-a/dev +u-1 +gold +n1 +1 +0 +0 +0 +1 MiB'
	got 0 'u-1 +gold +1 +1 +0 +0 +0 +1 MiB$'
	share inspect --totals -o json
	[ "$(json 'd["pods"][0]["node"], d["tenants"][0]["held"]')" = "('n1', 1)" ]
}

@test "what the user says of the cluster is passed on" {
	nodes '{"n7": {"time": now, "cards": [{"card": "c"}]}}'
	share inspect --node n7 -n other --context=prod --kubeconfig /etc/k
	got 0 'n7 +c +free' ''
	[ "$(paste -sd' ' "$dir/called")" = '--kubeconfig=/etc/k --context=prod '\
'--namespace=other --request-timeout=30s get --output=json configmaps/gpushare-node-n7 --' ]
	# One alone is no list.
	/usr/bin/python3 -c 'import json, sys
print(json.dumps(json.load(open(sys.argv[1]))["items"][0]))' "$dir/answer" >"$dir/one"
	mv "$dir/one" "$dir/answer"
	share inspect --node n7
	got 0 'n7 +c +free' ''
}

@test "no kubectl, one that fails, and one that prints something else" {
	two_nodes
	echo 'Error from server (Forbidden): configmaps is forbidden' >"$dir/complaint"
	share inspect
	got 1 '' 'Error from server .*kubectl gpushare: kubectl failed \(exit status 1\)'
	rm "$dir/complaint"
	echo 'no JSON' >"$dir/answer"
	share inspect
	got 1 '' '^kubectl gpushare: what kubectl printed: '
	rm "$dir/path/kubectl"
	run env PATH="$dir/path" kubectl-gpushare inspect
	[ "$status" -eq 1 ]
	[[ $output == 'kubectl gpushare: there is no kubectl in PATH'* ]]
}

@test "no node at all is said, and where was looked" {
	nodes '{}'
	share inspect
	got 0 '' '^kubectl gpushare: no node tells of its cards in namespace gpushare-system$'
	share inspect -o json
	got 0 '^\[\]$'
}

@test "a node's rubbish spoils no other's, and gives the terminal no orders" {
	nodes '{"bad": "{", "worse\u001b[31m": "7", "n1": {"time": now, "cards": [
		{"card": "c\u001b[2J"}, 7]}}'
	local call order
	for call in 'inspect' 'inspect -o wide' 'inspect --totals' 'inspect -o yaml' top; do
		# shellcheck disable=SC2086 # words
		share $call
		got 0 .
		for order in $'\e' $'\a' $'\u9b'; do
			[[ $output$said != *"$order"* ]]
		done
	done
	share inspect
	got 0 'n1 +c\?\[2J +free' 'node bad: its view can.t be read: .*node worse\?\[31m: its view'
}

@test "top once, for who is no terminal" {
	two_nodes
	share top
	got 0 '^kubectl gpushare top - cards of all nodes, ..:..:...nodes: 2 \(1 stale\), cards: 2'
	got 0 'NODE +CARD +STATE +SINCE +BUSY +MEMORY +HELD-BY'
	# the busiest first
	got 0 'nvidia-B +free +- +########.. 75% .*nvidia-A +active +[0-9]+s +#####..... 50%'
}

# screen WORD...: runs kubectl gpushare top on a terminal of 60 columns and 8 lines, does what the
# words say once it has shown a frame (a key; SIGxxx: a signal; resize), and waits for its end.
# Prints "status N, terminal as before: B"; what it wrote is in $dir/screen.
screen() {
	fake
	PATH=$dir/path:$PATH TERM=${TERM_HERE-xterm} /usr/bin/python3 - "$dir/screen" "$@" <<-'EOT'
		import fcntl, os, pty, select, signal, struct, subprocess, sys, termios, time
		def size(fd, lines, columns):
		    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
		ours, theirs = pty.openpty()
		size(theirs, 8, 60)
		before = termios.tcgetattr(theirs)
		def control():
		    os.setsid()
		    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
		p = subprocess.Popen(["kubectl-gpushare", "top", "--interval", "2s"], stdin=theirs,
		                     stdout=theirs, stderr=theirs, preexec_fn=control)
		shown = b""
		def read_until(what):
		    global shown
		    end = time.monotonic() + 30
		    seen = len(shown)
		    while what not in shown[seen:]:
		        if time.monotonic() > end:
		            sys.exit("no %r in %r" % (what, shown[seen:]))
		        if select.select([ours], [], [], 0.1)[0]:
		            shown += os.read(ours, 65536)
		        elif p.poll() is not None:
		            break
		for word in sys.argv[2:]:
		    read_until(b"\x1b[J")
		    if word.startswith("SIG"):
		        p.send_signal(getattr(signal, word))
		    elif word == "resize":
		        size(theirs, 5, 40)
		    else:
		        os.write(ours, word.encode())
		end = time.monotonic() + 30
		while p.poll() is None and time.monotonic() < end:
		    if select.select([ours], [], [], 0.1)[0]:
		        shown += os.read(ours, 65536)
		while select.select([ours], [], [], 0.1)[0]:
		    shown += os.read(ours, 65536)
		print("status %s, terminal as before: %s" % (p.poll(),
		      termios.tcgetattr(theirs) == before))
		with open(sys.argv[1], "wb") as f:
		    f.write(shown)
	EOT
}

@test "top takes the terminal, and gives it back" {
	two_nodes
	local word text
	for word in q Q $'\x03' SIGTERM SIGHUP; do
		run screen "$word"
		case $word in
		[qQ]) [ "$output" = 'status 0, terminal as before: True' ] ;;
		$'\x03') [ "$output" = 'status -2, terminal as before: True' ] ;;
		SIGTERM) [ "$output" = 'status -15, terminal as before: True' ] ;;
		SIGHUP) [ "$output" = 'status -1, terminal as before: True' ] ;;
		esac
		text=$(tr '\r' ' ' <"$dir/screen")
		[[ $text == $'\e[?1049h\e[?25l\e[?7l'* ]]
		[[ $text == *$'\e[?7h\e[?25h\e[?1049l'* ]]
	done
}

@test "top looks again, by itself and when a key is pressed, and follows the window's size" {
	two_nodes
	run screen x x resize q
	[ "$output" = 'status 0, terminal as before: True' ]
	[ "$(grep -c -- '^--$' "$dir/called")" -ge 3 ]
	# 60 columns, and 40 after that: no line is longer
	local widest
	widest=$(/usr/bin/python3 -c '
import re, sys
frames = open(sys.argv[1], newline="").read().split("\x1b[H")[1:]
bare = [re.sub("\x1b\\[[0-9;?]*[A-Za-z]", "", f).split("\r\n") for f in frames]
widths = [max(len(l.strip("\r")) for l in b) for b in bare]
print(widths[0], widths[-1], len(bare[-1]) <= 5)' \
		"$dir/screen")
	echo "$widest"
	[ "$widest" = '60 40 True' ]
}

@test "top goes on while the cluster is away, and says so" {
	two_nodes
	fake
	cat >"$dir/path/kubectl" <<-EOT
		#!/bin/sh
		if [ -e "$dir/once" ]; then
			printf 'first\nnot to be reached \033[31m\n' >&2
			exit 1
		fi
		touch "$dir/once"
		cat "$dir/answer"
	EOT
	run screen x q
	[ "$output" = 'status 0, terminal as before: True' ]
	grep -q 'kubectl: not to be reached ?\[31m' "$dir/screen"
}

@test "colours only where they are wanted, and nothing on a dumb terminal" {
	two_nodes
	run screen q
	grep -q $'\e\[1;31m\|\e\[7m' "$dir/screen"
	export NO_COLOR=1
	run screen q
	[ "$output" = 'status 0, terminal as before: True' ]
	run grep -q $'\e\[[0-9;]*m' "$dir/screen"
	[ "$status" -eq 1 ]
	export TERM_HERE=dumb
	run screen
	[ "$output" = 'status 0, terminal as before: True' ]
	run grep -q $'\e' "$dir/screen"
	[ "$status" -eq 1 ]
	grep -q 'nvidia-A' "$dir/screen"
}
