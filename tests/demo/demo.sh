#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The whole story on a node in QEMU (tests/node): a card is lent while its user is away, and is his
# again the moment he touches it. Nothing of this machine is touched.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
kernel=${KERNEL:-6.1}

echo "demo: kernel, node, story: a quarter of an hour the first time, one minute later"
echo "demo: building the node: Linux $kernel, systemd, containerd, two stand-in cards"
# Compiling says nothing for minutes.
while sleep 60 >/dev/null 2>&1; do
	echo "demo: still building, after $((SECONDS / 60)) min"
done &
ticker=$!
trap 'kill "$ticker"' EXIT
tests/node/build.sh "$kernel" "build/node/$kernel" 2>&1 |
	sed -uE '/^  [A-Z]+\t/d; s/^/demo: /' # without make's line for each file
kill "$ticker"
trap - EXIT
echo "demo: booting it (no KVM is needed: everything takes its time)"
export COLOR=
[[ ! -t 1 ]] || COLOR=1
exec tests/node/boot.sh "$kernel" --extra tests/demo/story.sh --extra tests/demo/timeline.py \
	--timeout 900 -- env "COLOR=$COLOR" bash /vm/extra/story.sh
