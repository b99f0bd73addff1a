#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The runtime's story on a real containerd: one container's card inside another. Everything runs
# in namespaces of its own; the machine's own containerd, /dev and /etc are not touched.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=tests/lib/lib.sh
source tests/lib/lib.sh

KEY=gpushare.k8s.io
CARD0=/dev/nvidia0
CARD1=/dev/nvidia1
OTHER=/dev/gcu0

bold='' dim='' green='' red='' plain=''
if [[ -t 1 ]]; then
	bold=$'\e[1m' dim=$'\e[2m' green=$'\e[32m' red=$'\e[31m' plain=$'\e[0m'
fi
step=0
started=$SECONDS

title() {
	step=$((step + 1))
	printf '\n%s%d. %s%s\n' "$bold" "$step" "$1" "$plain"
}

say() {
	printf '   %s\n' "$*"
}

# What the next command is, as a person would type it or write it into a manifest.
shown() {
	printf '   %s%s%s\n' "$dim" "$*" "$plain"
}

good() {
	printf '   %s✓ %s%s\n' "$green" "$*" "$plain"
}

wrong() {
	printf '   %s✗ %s%s\n' "$red" "$*" "$plain"
	exit 1
}

# expect WHAT DEVICE… -- POD CONTAINER: asks the container to open each, and tells what came out.
expect() {
	local what=$1 devices=() answers device
	shift
	while [[ $1 != -- ]]; do
		devices+=("$1")
		shift
	done
	answers=$(container_probe "$2" "$3" "${devices[@]}")
	for device in "${devices[@]}"; do
		if "${what}_in" "$answers" "$device" 2>/dev/null; then
			case $what in
			open) good "$3 opens $device" ;;
			denied) good "$3 can't open $device: permission denied by its cgroup" ;;
			absent) good "$3 has no $device" ;;
			esac
		else
			wrong "$3, $device: $answers"
		fi
	done
}

# refused POD CONTAINER option…: creation fails; shows the message that the kubelet would show.
refused() {
	local message
	if message=$(container_run "$@" 2>&1); then
		wrong "$2 was created"
	fi
	good "$2 is refused. The kubelet shows:"
	printf '%s\n' "$message" | fold -s -w 88 | sed "s/^/     $dim/; s/\$/$plain/"
}

finish() {
	local status=$?
	node_stop || true
	exit "$status"
}

[[ $EUID == 0 ]] || {
	echo "demo: needs root (sudo make demo): it starts a containerd" >&2
	exit 1
}
lacks=$(missing_commands containerd runc busybox; cri_missing)
[[ -z $lacks ]] || {
	echo "demo: $lacks" >&2
	exit 1
}

trap finish EXIT
printf '%sgpushare: one container'"'"'s card inside another%s\n' "$bold" "$plain"
say "starting a containerd of our own ($(containerd --version | cut -d' ' -f3)), its runtime"
say "handler \"gpushare\" is $GS_RUNTIME in front of runc; two cards without a driver behind them"
node_start
devices_create
config_write
cri_prepare
image_build
containerd_start

title "A pod as it is today: main was given a card, dind was not"
pod_run team-a/dev
container_run team-a/dev main --device "$CARD0"
container_run team-a/dev dind
expect open "$CARD0" -- team-a/dev main
expect absent "$CARD0" -- team-a/dev dind
expect denied c:195:0 -- team-a/dev dind
pod_remove team-a/dev

title "The same pod with one annotation"
shown "$KEY/container-devices-from.dind: _/_/main"
pod_run team-a/dev --annotation "$KEY/container-devices-from.dind=_/_/main"
container_run team-a/dev main --device "$CARD0"
container_run team-a/dev dind
expect open "$CARD0" -- team-a/dev dind
expect absent "$CARD1" -- team-a/dev dind
expect denied c:195:1 -- team-a/dev dind
say "what gpushare keeps of it on the node:"
shown "gpusharectl containers"
gpusharectl containers | sed 's/^/     /'

title "Two sources in one container"
shown "$KEY/container-devices-from.both: _/_/first,_/_/second"
pod_run team-a/two --annotation "$KEY/container-devices-from.both=_/_/first,_/_/second"
container_run team-a/two first --device "$CARD1"
container_run team-a/two second --device "$OTHER" --device /dev/gcuctl
container_run team-a/two both
expect open "$CARD1" "$OTHER" -- team-a/two both
expect absent "$CARD0" -- team-a/two both
pod_remove team-a/two

title "Another pod asks for team-a's card"
shown "$KEY/container-devices-from.thief: team-a/dev/main"
pod_run team-b/thief --annotation "$KEY/container-devices-from.thief=team-a/dev/main"
refused team-b/thief thief
pod_remove team-b/thief

title "A grant lets one pod in"
shown "gpusharectl grant --source team-a/dev/main"
grant=$(gpusharectl grant --source team-a/dev/main)
say "→ ${grant:0:6}… (a secret until it is bound to the first container that uses it)"
shown "$KEY/grant: ${grant:0:6}…"
pod_run team-b/guest --annotation "$KEY/container-devices-from.guest=team-a/dev/main"
container_run team-b/guest guest --annotation "$KEY/grant=$grant"
expect open "$CARD0" -- team-b/guest guest
expect absent "$CARD1" -- team-b/guest guest

title "The same grant in a third pod"
pod_run team-c/copycat --annotation "$KEY/container-devices-from.copycat=team-a/dev/main"
refused team-c/copycat copycat --annotation "$KEY/grant=$grant"
pod_remove team-c/copycat
pod_remove team-b/guest
pod_remove team-a/dev

title "A privileged dind: without us it sees every card of the node"
pod_run team-a/priv --privileged
container_run team-a/priv main --device "$CARD0"
container_run team-a/priv dind --privileged
expect open "$CARD0" "$CARD1" -- team-a/priv dind
pod_remove team-a/priv

title "The same privileged dind with the annotation: its own pod's card and no neighbour's"
shown "$KEY/container-devices-from.dind: _/_/main"
pod_run team-a/priv --privileged --annotation "$KEY/container-devices-from.dind=_/_/main"
container_run team-a/priv main --device "$CARD0"
container_run team-a/priv dind --privileged
expect open "$CARD0" -- team-a/priv dind
expect absent "$CARD1" -- team-a/priv dind
expect denied c:195:1 -- team-a/priv dind
pod_remove team-a/priv

printf '\n%sAll of it happened on real software, in %d seconds.%s\n' "$bold" \
	"$((SECONDS - started))" "$plain"
