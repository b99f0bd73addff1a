# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# The agent's side for the guest: what `make install` installs, runc, and the shared libraries that
# they need. They are this machine's own, so the guest must be of its architecture.

# agent_pack FOLDER: puts them below FOLDER, where they lie on a node, without symbols.
agent_pack() {
	local root=$1 runc crun made=$VM_TOP/build/vm/agent
	[[ $K_ARCH == "$(dpkg --print-architecture)" ]] ||
		die "the agent runs in guests of this machine's architecture only"
	runc=$(command -v runc) || die "needs runc"
	crun=$(command -v crun) || die "needs crun"
	mkdir -p "$made"
	(
		flock 9
		unset MAKEFLAGS MFLAGS MAKELEVEL
		make -s --no-print-directory -C "$VM_TOP" -j"$(nproc)" WERROR=1 all \
			build/vm-kubelet build/programs/liblesscaps.so
		rm -rf "$made/root"
		make -s --no-print-directory -C "$VM_TOP" WERROR=1 DESTDIR="$made/root" \
			PREFIX=/usr install
		rm -rf "$made"/root/usr/share/{man,doc} "$made/root/usr/lib/systemd"
		cp -L "$runc" "$made/root/usr/sbin/runc"
		cp -L "$crun" "$made/root/usr/bin/crun"
		cp "$VM_TOP/tests/fakegpu/fakegpu.json" "$made/root/usr/share/gpushare/vendors.d"
		cp "$VM_TOP/build/vm-kubelet" "$made/root/usr/bin/kubelet"
		install -D -t "$made/root/usr/lib" "$VM_TOP/build/programs/liblesscaps.so"
		agent_libraries "$made/root"
		# They are unpacked into the guest's memory, and symbols are most of them.
		find "$made/root" -type f -perm /111 -exec strip {} + 2>/dev/null || true
		cp -a "$made/root/." "$root"
	) 9>"$made/lock" >&2
}

# Copies what the programs below a folder are linked with into it, and the linker.
agent_libraries() {
	local root=$1 file
	while read -r file; do
		# Where a library is a link into another folder, as on merged systems, the loader
		# looks for the name that it was asked for.
		install -D -m 0755 "$file" "$root$file"
	done < <(find "$root/usr/bin" "$root/usr/sbin" "$root/usr/libexec" -type f -perm /111 \
		-exec ldd {} + 2>/dev/null |
		sed -nE 's/^[^/]*(\/[^ ]+) \(0x.*/\1/p' | sort -u)
}
