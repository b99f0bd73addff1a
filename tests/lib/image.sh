# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# The images that test containers run, made here from busybox and tests/programs/probe.c.

export IMAGE=localhost/gpushare/test:1
export IMAGE_PAUSE=localhost/gpushare/pause:1
export IMAGE_CUDA=localhost/gpushare/cuda:1
# The archive with all of them, which ctr, podman and docker load.
export IMAGE_TAR=$GS_BUILD/tests-lib/images.tar

image_busybox() {
	local path
	path=$(command -v busybox) || path=/bin/busybox
	if [[ ! -x $path ]]; then
		echo "no busybox on this machine (Debian: busybox-static)" >&2
		return 1
	fi
	printf '%s\n' "$path"
}

# Makes IMAGE_TAR unless it is newer than all that it is made of.
image_build() {
	local busybox
	busybox=$(image_busybox)
	if [[ $IMAGE_TAR -nt $busybox && $IMAGE_TAR -nt $GS_PROBE &&
		$IMAGE_TAR -nt $GS_LIB/mkimage.py ]]; then
		return 0
	fi
	mkdir -p "${IMAGE_TAR%/*}"
	"$GS_PYTHON" "$GS_LIB/mkimage.py" "$busybox" "$GS_PROBE" "$IMAGE_TAR"
}

# Writes the images' root into a folder.
image_root() {
	mkdir -p "$1"
	"$GS_PYTHON" "$GS_LIB/mkimage.py" --root "$1" "$(image_busybox)" "$GS_PROBE"
}
