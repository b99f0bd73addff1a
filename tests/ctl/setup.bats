#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# gpusharectl setup for containerd: configurations of its versions, judged by containerd itself.
# shellcheck disable=SC2154 # what setup.bash sets

load setup

main=/etc/containerd/config.toml
drop_in=/etc/containerd/conf.d/gpushare.toml
v2='plugins."io.containerd.grpc.v1.cri"'

debian() {
	debian_containerd | node_file $main
}

# As `containerd config default` of 2.0 prints it, in short; kubeadm's SystemdCgroup.
version_3() {
	node_file $main <<-'EOT'
		version = 3
		root = '/var/lib/containerd'
		imports = []   # none yet

		[plugins]
		  [plugins.'io.containerd.cri.v1.runtime']
		    [plugins.'io.containerd.cri.v1.runtime'.containerd]
		      default_runtime_name = 'runc'
		      [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes]
		        [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
		          runtime_type = 'io.containerd.runc.v2'
		          snapshotter = ''
		          base_runtime_spec = '/etc/containerd/base.json'
		          pod_annotations = ['nvidia.com/*']
		          [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
		            BinaryName = '/usr/sbin/runc'
		            SystemdCgroup = true
		            NoNewKeyring = true
	EOT
}

# The handler in a file of the node, by another reader of TOML than gpusharectl's.
handler() {
	toml "$1" "d['plugins']['io.containerd.$2']['containerd']['runtimes']['gpushare']"
}

refused() {
	local before
	before=$(snapshot)
	node_setup containerd
	got 1 '' "$1"
	[ "$(snapshot)" = "$before" ]
	[ ! -e "$records" ]
}

@test "a wrong call is 2 and says where help is" {
	local call
	for call in 'setup nothing' 'setup -x' 'setup --containerd 3' 'setup --root etc' \
		'setup --cgroup-driver x' 'setup -o yaml' 'setup docker docker' 'setup crio cri-o' \
		'setup --undo --default' 'setup --binary gpushare-runtime' 'setup --root'; do
		# shellcheck disable=SC2086 # words
		ctl $call
		got 2 '' '^gpusharectl: [^:]'
		[[ $said == *"Try 'gpusharectl setup --help'"* ]]
	done
}

@test "Debian's file: in place, with the runc that containerd has by itself" {
	debian
	there_and_back
	node_setup
	[ "$(handler $main grpc.v1.cri)" = "{'runtime_type': 'io.containerd.runc.v2',\
 'pod_annotations': ['gpushare.k8s.io/*'], 'container_annotations': ['gpushare.k8s.io/*'],\
 'options': {'BinaryName': '/usr/bin/gpushare-runtime', 'SystemdCgroup': False}}" ]
	[ "$(names $main grpc.v1.cri)" = "['gpushare', 'runc']" ]
	# What was there is still there, and kept besides.
	[[ $(<"$root$main") == "$(<"$root$main.before-gpushare")"* ]]
}

@test "version 3: a drop-in that takes over what the node says of runc" {
	version_3
	there_and_back
	node_setup
	[ "$(handler $drop_in cri.v1.runtime)" = "{'runtime_type': 'io.containerd.runc.v2',\
 'pod_annotations': ['nvidia.com/*', 'gpushare.k8s.io/*'],\
 'container_annotations': ['gpushare.k8s.io/*'], 'base_runtime_spec': '/etc/containerd/base.json',\
 'options': {'BinaryName': '/usr/bin/gpushare-runtime', 'SystemdCgroup': True,\
 'NoNewKeyring': True}}" ]
	[ "$(toml $main "d['imports']")" = "['/etc/containerd/conf.d/*.toml']" ]
	grep -qx 'imports = \["/etc/containerd/conf.d/\*.toml"\]   # none yet' "$root$main"
}

@test "version 3: imports that are there stay, one that fits is used" {
	local line
	version_3
	for line in "imports = ['/a', '/b/*.toml', ] # c" "imports = [
  '/a', # one
  '/b/*.toml'
]"; do
		{ echo "version = 3"; echo "$line"; } >"$root$main"
		there_and_back
		node_setup
		[ "$(toml $main "d['imports']")" = \
			"['/a', '/b/*.toml', '/etc/containerd/conf.d/*.toml']" ]
		node_setup --undo
	done
	printf '%s\n' 'version = 3' 'imports = ["/etc/containerd/conf.d/*.toml"]' >"$root$main"
	node_setup
	got 0 'conf.d/gpushare.toml' ''
	[ "$(wc -l <"$root$main")" -eq 2 ]
	[ ! -e "$root$main.before-gpushare" ]
	node_setup --undo
	# A last line without an end, and no imports.
	printf 'version = 3' >"$root$main"
	there_and_back
}

@test "no file: the version is containerd's own, or named" {
	node_setup containerd
	got 1 '' 'config.toml: no such file, and no containerd that tells.*--containerd 2'
	program containerd 'containerd github.com/containerd/containerd 1.7.24 abc'
	there_and_back
	node_setup
	[ "$(toml $main "d['version']")" = 2 ]
	[ ! -e "$root$drop_in" ]
	node_setup --undo
	program containerd 'containerd containerd.io v2.1.4 abc'
	there_and_back
	node_setup
	[ "$(toml $drop_in "d['version']")" = 3 ]
	node_setup --undo
	[ ! -e "$etc/containerd" ]
	rm "$root/usr/bin/containerd"
	node_setup --containerd 1 containerd
	got 0 'version = 2' ''
}

@test "the default runtime: an own key, a section, or none is there" {
	version_3
	there_and_back --default
	debian
	there_and_back --default
	node_setup --default
	grep -qx 'default_runtime_name = "gpushare"' "$root$main"
	# The other way round: a second call may ask for less.
	node_setup
	got 0 '^--- .*-default_runtime_name' ''
	node_setup --undo
	printf '%s\n' 'version = 2' "[$v2.containerd]" '  default_runtime_name = "nvidia" # x' \
		"[$v2.containerd.runtimes.nvidia]" '  snapshotter = "nydus"' \
		"[$v2.containerd.runtimes.nvidia.options]" 'SystemdCgroup = true' >"$root$main"
	there_and_back --default
	node_setup --default
	grep -qx '  default_runtime_name = "gpushare" # x' "$root$main"
	[[ $(handler $main grpc.v1.cri) == *nydus*"'SystemdCgroup': True"* ]]
}

@test "the cgroup driver can be named" {
	debian
	node_setup --cgroup-driver systemd
	[[ $(handler $main grpc.v1.cri) == *"'SystemdCgroup': True"* ]]
	node_setup --cgroup-driver cgroupfs
	got 0 '-.*SystemdCgroup = true' ''
	[[ $(handler $main grpc.v1.cri) == *"'SystemdCgroup': False"* ]]
	node_setup --undo
	[ ! -e "$records" ]
}

@test "what others edit since stays, or the undo is refused" {
	local edited
	debian
	node_setup
	{ echo '# mine, at the head'; cat "$root$main"; echo '[debug]'; } >"$dir/edited"
	cp "$dir/edited" "$root$main"
	node_setup --undo
	got 0 'undone' ''
	[[ $(<"$root$main") == '# mine, at the head'*'[debug]' ]]
	[[ $(<"$root$main") != *gpushare* ]]
	node_setup
	sed -i 's/SystemdCgroup = false/SystemdCgroup = true/' "$root$main"
	edited=$(snapshot)
	node_setup --undo
	got 1 '' 'was edited since in the lines that setup wrote.*config.toml.before-gpushare'
	[ "$(snapshot)" = "$edited" ]
	# Setup sees that it is still right.
	node_setup
	got 0 'nothing to change' ''
	# As somebody may do instead.
	cp "$root$main.before-gpushare" "$root$main"
	node_setup --undo
	got 0 'nothing to undo|undone' ''
	[ ! -e "$records" ]
}

@test "a drop-in that was edited since, and one that is gone" {
	version_3
	node_setup
	echo '# mine' >>"$root$drop_in"
	node_setup --undo
	got 1 '' 'gpushare.toml: setup made it, and it was edited since'
	rm "$root$drop_in"
	node_setup --undo
	got 0 'undone' ''
	[ ! -e "$etc/containerd/conf.d" ]
	node_setup
	rm "$root$main"
	node_setup --undo
	got 1 '' 'config.toml: is gone'
}

@test "a handler of somebody else: right, or not" {
	debian
	printf '%s\n' "[$v2.containerd.runtimes.gpushare]" \
		'pod_annotations = ["gpushare.k8s.io/*"]' \
		"[$v2.containerd.runtimes.gpushare.options]" \
		'BinaryName = "/usr/bin/gpushare-runtime"' >>"$root$main"
	refused 'setup did not write; container_annotations lacks .gpushare.k8s.io'
	sed -i 's/^pod_ann.*/&\ncontainer_annotations = ["*\/*"]/' "$root$main"
	node_setup
	got 0 'containerd: nothing to change' ''
	sed -i 's#"/usr/bin/gpushare-runtime#"/opt/gpushare-runtime#' "$root$main"
	refused 'its BinaryName is /opt/gpushare-runtime, not /usr/bin/gpushare-runtime'
}

@test "refused: what can't be parsed, what has no CRI, what is of version 1" {
	debian
	echo '[plugins]' >>"$root$main"
	refused 'config.toml: line 10, column 1: this was defined before'
	echo 'version = 2 # { ' >"$root$main"
	echo 'a = [' >>"$root$main"
	refused 'config.toml: line 2, column 5: the array has no end'
	printf 'version = 2\0' >"$root$main"
	refused 'config.toml: this is no UTF-8 text'
	# docker's packages of containerd have this, and no version.
	echo 'disabled_plugins = ["cri"]' >"$root$main"
	refused 'disabled_plugins switches the CRI plugin off'
	echo 'oom_score = -999' >"$root$main"
	refused 'is of version 1'
	: >"$root$main"
	refused 'is of version 1'
	printf '%s\n' 'version = 2' "$v2 = { containerd = { runtimes = {} } }" >"$root$main"
	refused 'this was defined before'
	printf '%s\n' 'version = 2' 'x = 1' "[$v2.containerd]" 'runtimes = {}' >"$root$main"
	refused 'with the handler in it.*defined before'
	printf '%s\n' 'version = 3' 'imports = "x"' >"$root$main"
	refused 'imports is no list'
}

@test "refused below 2.0: a file whose imports replace the section" {
	debian
	sed -i '1a imports = ["/etc/containerd/more/*.toml"]' "$root$main"
	printf '%s\n' 'version = 2' "[$v2]" 'sandbox_image = "x"' |
		node_file /etc/containerd/more/a.toml
	program containerd 'containerd x 1.6.20 y'
	refused 'imports /etc/containerd/more/a.toml, whose section'
	program containerd 'containerd x v2.0.1 y'
	node_setup
	got 0 'set up' ''
}

@test "links, modes and owners stay; what is no file is refused" {
	debian
	mv "$root$main" "$etc/real.toml"
	chmod 0440 "$etc/real.toml"
	ln -s /etc/real.toml "$root$main"
	there_and_back
	node_setup
	[ -L "$root$main" ]
	[ "$(stat -c %a "$etc/real.toml")" = 440 ]
	grep -q gpushare "$etc/real.toml"
	node_setup --undo
	ln -sfn /etc/none "$root$main"
	refused 'config.toml: a link that leads nowhere'
	# A link that would lead out of the root.
	ln -sfn "../../../../../../../../../../etc/passwd" "$root$main"
	refused 'config.toml: a link that leads nowhere'
	rm "$root$main"
	mkdir "$root$main"
	refused 'config.toml: not a file'
	rmdir "$root$main"
	mkfifo "$root$main"
	refused 'config.toml: not a file'
	rm "$root$main"
	head -c 1100000 /dev/zero | tr '\0' '#' >"$root$main"
	refused 'config.toml: larger than 1048576 bytes'
}

@test "a folder in the place of the drop-in" {
	version_3
	mkdir -p "$root$drop_in"
	refused 'gpushare.toml: not a file'
}

@test "where the second of two files can't be written the first is put back" {
	local before
	((EUID == 0)) || skip "only root can give up a capability"
	version_3
	mkdir -m 0555 "$etc/containerd/conf.d"
	before=$(snapshot)
	# Root to whom modes apply.
	run setpriv --bounding-set=-dac_override,-dac_read_search \
		--inh-caps=-dac_override,-dac_read_search "$bin/gpusharectl" setup --root "$root"
	[ "$status" -eq 1 ]
	[[ $output == *'gpushare.toml: Permission denied'* ]]
	[ "$(snapshot)" = "$before" ]
	[ ! -e "$records" ]
}

@test "two at once: the second is refused" {
	debian
	mkdir -p "$records"
	chmod 0700 "$records" "${records%/*}"
	exec 8<"$records"
	flock 8
	node_setup
	got 1 '' 'another gpusharectl setup is at work'
	exec 8<&-
	[[ $(<"$root$main") != *gpushare* ]]
	node_setup
	got 0 'set up' ''
}

@test "one that was killed between record and file is undone, and set up again" {
	debian
	cp "$root$main" "$dir/before"
	node_setup
	cp "$dir/before" "$root$main"
	node_setup
	got 0 'containerd: set up' ''
	cp "$dir/before" "$root$main"
	node_setup --undo
	got 0 'nothing to undo' ''
	[ ! -e "$records" ]
	cmp "$dir/before" "$root$main"
	[ ! -e "$root$main.before-gpushare" ]
}

@test "without the runtime's program nothing is set up" {
	debian
	rm "$root/usr/bin/gpushare-runtime"
	refused "$root/usr/bin/gpushare-runtime: not there, or not executable"
	program gpushare-runtime ''
	mkdir -p "$root/opt"
	mv "$root/usr/bin/gpushare-runtime" "$root/opt/"
	node_setup --binary /opt/gpushare-runtime
	got 0 'BinaryName = "/opt/gpushare-runtime"' ''
}

@test "as JSON, and what makes it effective" {
	version_3
	node_setup -o json --dry-run
	[ "$status" -eq 0 ]
	[ "$(json "[d[0][k] for k in ('runtime', 'changed', 'done')]")" = \
		"['containerd', True, False]" ]
	[ "$(json "d[0]['then'][0]")" = 'systemctl restart containerd' ]
	[ "$(json "[(f['path'], f['action']) for f in d[0]['files']]")" = \
		"[('$main', 'change'), ('$drop_in', 'create')]" ]
	node_setup -o json
	[ "$(json "d[0]['done'], d[0]['files'][1]['diff'][:13]")" = "(True, '--- /dev/null')" ]
	node_setup -o json --undo
	[ "$(json "[f['action'] for f in d[0]['files']]")" = "['remove', 'change']" ]
	node_setup -o json --undo
	got 0 '^\[\]$' ''
}

@test "the difference is one that patch takes" {
	command -v patch >/dev/null || skip "no patch"
	version_3
	cp -a "$root" "$dir/other"
	node_setup --default --dry-run
	patch -d "$dir/other" -p1 <<<"${output%%containerd: would*}"
	node_setup --default
	diff -r -x '*.before-gpushare' "$etc" "$dir/other/etc"
}
