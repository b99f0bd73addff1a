#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The demo's story, inside the node: a card that its user leaves alone is lent to a spot pod, and
# given back the moment he touches it. What is printed as a fact was looked up, and a fact that is
# not so ends the demo.
# shellcheck disable=SC2034 # CONTAINER_OPTIONS is of tests/lib/cri.sh
set -uo pipefail
source /vm/suite/lib.sh

bold=$'\e[1m' dim=$'\e[2m' green=$'\e[32m' red=$'\e[31m' plain=$'\e[0m'
[[ -n ${COLOR:-} ]] || bold='' dim='' green='' red='' plain=''
log=/sys/kernel/debug/fakegpu/log
step=0

title() {
	step=$((step + 1))
	printf '\n%s%d. %s%s\n' "$bold" "$step" "$1" "$plain"
}
say() {
	printf '   %s\n' "$*"
}
shown() {
	printf '   %s$ %s%s\n' "$dim" "$*" "$plain"
}
good() {
	printf '   %s✓ %s%s\n' "$green" "$*" "$plain"
}
wrong() {
	printf '   %s✗ %s%s\n' "$red" "$*" "$plain"
	journalctl -u gpushared -o cat --no-pager | tail -n 20
	exit 1
}
fact() { # TEXT COMMAND...
	local text=$1
	shift
	"$@" >/tmp/fact 2>&1 || { cat /tmp/fact && wrong "$text"; }
	good "$text"
}

holding() {
	gpusharectl status -o json 2>/dev/null |
		/usr/bin/python3 -c 'import json, sys
for h in json.load(sys.stdin)["holdings"]:
    print(h["state"])' | head -n 1
}
is_state() {
	[[ $(holding) == "$1" ]]
}
memory() {
	cat /sys/class/fakegpu/fakegpu0/mem_used
}

mkdir -p /etc/gpushare
cat >/etc/gpushare/config.json <<-'EOF'
	{"agent": {"load_period": "500ms"}}
EOF
systemctl restart gpushared || wrong "the agent does not start"

title "A pod with a card, and docker-in-docker beside it"
say "team/dev: container main was given /dev/fakegpu0; an annotation lets dind have it too, and"
say "says that the card may be lent when nobody touched it for two seconds."
fact "the pod runs" pod_run team/dev --privileged \
	--annotation gpushare.k8s.io/container-devices-from.dind=_/_/main \
	--annotation gpushare.k8s.io/lend=true --annotation gpushare.k8s.io/lend-after=2s
fact "main runs" container_run team/dev main --device /dev/fakegpu0
fact "dind runs, with the card of main" container_run team/dev dind "${DIND_OPTIONS[@]}"
fact "in dind, the user starts a container of his own" \
	dind_run container_exec team/dev dind -- train /dev/fakegpu0
fact "... which computes on the card" \
	dind_exec container_exec team/dev dind -- train fgpu echo /dev/fakegpu0 1
shown gpusharectl status
gpusharectl status | sed 's/^/   /'

title "The user goes away"
say "Nobody touches the card for two seconds, and it does nothing all that time."
fact "the card is lent" wait_for 60 is_state lent

title "A spot pod borrows it"
card=$(gpusharectl status -o json | /usr/bin/python3 -c \
	'import json, sys; print(json.load(sys.stdin)["holdings"][0]["cards"][0])')
shown "gpusharectl grant --spot --card $card"
grant=$(gpusharectl grant --spot --card "$card") || wrong "no grant"
fact "the spot pod runs" pod_run spot/job --namespace network=pod \
	--annotation gpushare.k8s.io/container-devices-from.job=team/dev/main
fact "its container runs, with the card" container_run spot/job job --namespace network=pod \
	--annotation "gpushare.k8s.io/grant=$grant" \
	-- /bin/sh -c 'trap "" TERM; exec fgpu alloc /dev/fakegpu0 512M , hold /dev/fakegpu0'
has_memory() {
	(($(memory) >= 512 << 20))
}
fact "it has 512 MiB of the card's memory" wait_for 60 has_memory
fact "and the card is still lent" is_state lent

title "The user comes back, from inside docker-in-docker"
say "One call to the driver, as any program makes it. Nothing in it knows of us."
echo 1 >/sys/kernel/debug/fakegpu/clear
since=$(date +%s.%N)
shown "(in dind) docker run ... train.py"
dind_exec container_exec team/dev dind -- train fgpu echo /dev/fakegpu0 4711 >/tmp/back 2>&1 ||
	{ cat /tmp/back && wrong "his call failed"; }
good "his call was served: $(</tmp/back)"

title "What happened in between"
say "In milliseconds from the touch. kernel: as the module measured it; card: the driver's own log;"
say "agent: when it wrote the line, which it does after it has acted. All of it in an emulator."
sleep 1
/usr/bin/python3 /vm/extra/timeline.py "$since" "$log" || wrong "the order is wrong"
fact "the spot container is gone" wait_for 60 sh -c '! pgrep -f "[f]gpu alloc" >/dev/null'
fact "the card's memory was free before the call" test "$(memory)" -lt $((512 << 20))
fact "the grant is revoked: the spot pod can't start again" \
	sh -c "gpusharectl grant --list 2>/dev/null | grep -q revoked"
shown gpusharectl status
gpusharectl status | sed 's/^/   /'

printf '\n%sThat was all. docs/install.md says how a node of yours does it.%s\n' "$bold" "$plain"
