# shellcheck shell=bash disable=SC2034 # many variables are for what is sourced
# SPDX-License-Identifier: Apache-2.0
# What a suite script in the node needs: `source /vm/suite/lib.sh`, tests, `plan` at the end. What
# makes tests (check, is, wait_for, ...) is tests/vm/suite/lib.sh, what makes pods (pod_run,
# container_run, ...) is tests/lib/cri.sh, as on a machine's own containerd.

# The first sleeps by it, and its shell has it.
usleep() {
	sleep "$(printf '0.%06d' "$1")"
}
source /vm/tap.sh

# What the second asks for. Here the node is the machine itself.
NODE_DIR=/run/gpushare-test
NODE_CGROUP=kubepods-besteffort.slice
GS_LIB=/vm/lib
GS_BUILD=/vm
GS_PYTHON=/usr/bin/python3
CRICTL=$(command -v crictl) # if it could be built; else cri.py
IMAGE=localhost/gpushare/test:1
# Every container can use a card if it is given one.
CONTAINER_OPTIONS=(--mount /vm/bin/fgpu:/bin/fgpu:ro)
mkdir -p $NODE_DIR
node_exec() {
	"$@"
}
source /vm/lib/cri.sh

# The version of the node's cgroups: v2, v1 or hybrid.
node_cgroups() {
	if [[ -e /sys/fs/cgroup/cgroup.controllers ]]; then
		echo v2
	elif [[ -e /sys/fs/cgroup/unified/cgroup.procs ]]; then
		echo hybrid
	else
		echo v1
	fi
}

# node_reboot [hard]: reboots, cleanly or as if the power had failed. The script begins again then,
# with $boot one higher; it is 0 at first. Results that were printed count.
node_reboot() {
	: >/vm/reboot
	# shellcheck disable=SC2154 # of the runner
	if [[ ${1:-} == hard ]]; then
		echo $((boot + 1)) >/vm/boots
		sync -f /vm
		echo b >/proc/sysrq-trigger
	fi
	exit 0
}

# Removes whatever containers there are, of all runtimes.
node_clean() {
	local id
	# Those too that are left from before a reboot.
	for id in $(cri pods -q); do
		cri rmp --force "$id" >/dev/null 2>&1
	done
	for id in $(ctr container ls -q); do
		ctr_remove "$id"
	done
	podman rm --all --force --time 0 >/dev/null 2>&1
	rm -rf "${NODE_DIR:?}"/*
}

# container_pid NAMESPACE/POD NAME: its first process.
container_pid() {
	ctr -n k8s.io task ls | awk -v id="$(container_id "$@")" '$1 == id { print $2 }'
}

# agent_get PATH: what the agent says there over HTTP.
agent_get() {
	"$GS_PYTHON" -c 'import sys, urllib.request
answer = urllib.request.urlopen("http://127.0.0.1:9479" + sys.argv[1], timeout=60)
print(answer.read().decode())' "$1"
}

# refused EXEC... fgpu try STEP...: true if the step is refused by the container's device rules, or
# if there is no such node; any other failure is none. (Without "try" crictl would not tell what
# fgpu said.)
refused() {
	local out
	out=$("$@" 2>&1)
	grep -qE 'failed errno=(EPERM|ENOENT)' <<<"$out" && return 0
	echo "$out"
	return 1
}

# ---- Containers without CRI: ctr and podman. Options: --device PATH, --annotation KEY=VALUE,
# --mount HOST:CONTAINER[:ro], --privileged, and -- COMMAND.

# ctr_run ID [OPTION...]: by `ctr run`, through gpushare-runtime; RUNTIME names another one.
ctr_run() {
	local id=$1 options=() command=(/bin/sleep 1000000) from to mode
	shift
	while (($# > 0)); do
		case $1 in
		--)
			shift
			command=("$@")
			break
			;;
		--mount)
			IFS=: read -r from to mode <<<"$2"
			options+=(--mount "type=bind,src=$from,dst=$to,options=rbind:${mode:-rw}")
			shift 2
			;;
		--privileged) options+=("$1") && shift ;;
		*) options+=("$1" "$2") && shift 2 ;;
		esac
	done
	ctr run --detach --runc-binary "${RUNTIME:-/usr/bin/gpushare-runtime}" \
		--runc-systemd-cgroup --cgroup "ctr.slice:ctr:$id" \
		--mount type=bind,src=/vm/bin/fgpu,dst=/bin/fgpu,options=rbind:ro \
		"${options[@]}" "$IMAGE" "$id" "${command[@]}" </dev/null
}

# ctr_exec ID COMMAND...
ctr_exec() {
	local id=$1
	shift
	ctr task exec --exec-id "exec$RANDOM$RANDOM" "$id" "$@"
}

# ctr_pid ID
ctr_pid() {
	ctr task ls | awk -v id="$1" '$1 == id { print $2 }'
}

# ctr_remove ID...
ctr_remove() {
	local id
	for id; do
		ctr task delete --force "$id" >/dev/null 2>&1
		ctr container delete "$id" >/dev/null 2>&1
	done
}

# podman_run NAME [OPTION...]: by `podman run`, through gpushare-runtime; NETWORK (host) as its
# --network. With "next": ["/usr/bin/crun"] in our configuration it is crun that follows.
podman_run() {
	local name=$1 options=() command=(/bin/sleep 1000000)
	shift
	while (($# > 0)); do
		case $1 in
		--)
			shift
			command=("$@")
			break
			;;
		--mount) options+=(--volume "$2") && shift 2 ;;
		--privileged) options+=("$1") && shift ;;
		*) options+=("$1" "$2") && shift 2 ;;
		esac
	done
	podman run --detach --name "$name" --network "${NETWORK:-host}" \
		--runtime "${RUNTIME:-gpushare}" --volume /vm/bin/fgpu:/bin/fgpu:ro \
		"${options[@]}" "$IMAGE" "${command[@]}" </dev/null
}

# podman_exec NAME COMMAND...
podman_exec() {
	podman exec "$@"
}

# podman_pid NAME
podman_pid() {
	podman inspect --format '{{.State.Pid}}' "$1"
}

# podman_remove NAME...
podman_remove() {
	podman rm --force --time 0 "$@" >/dev/null
}

# ---- Containers in containers. What runs them comes from the node: its /usr is mounted into one.

# Options of a container that can run others inside, as docker's own image for that does.
# shellcheck disable=SC2034 # for those who source this
DIND_OPTIONS=(--privileged --mount /usr:/usr:ro --mount /usr/lib:/lib:ro
	--mount /usr/lib64:/lib64:ro --mount /vm/suite/dind:/dind:ro)

# dind_run EXEC... -- ID [DEVICE...]: starts a container inside the one in which EXEC
# (container_exec POD NAME, ctr_exec ID, podman_exec NAME) executes, with these cards.
# dind_exec EXEC... -- ID COMMAND...: executes there.
# dind_remove EXEC... -- ID
dind_run() {
	dind run "$@"
}

dind_exec() {
	dind exec "$@"
}

dind_remove() {
	dind remove "$@"
}

dind() {
	local verb=$1 outer=()
	shift
	while [[ $1 != -- ]]; do
		outer+=("$1")
		shift
	done
	shift
	"${outer[@]}" /bin/sh /dind "$verb" "$@"
}
