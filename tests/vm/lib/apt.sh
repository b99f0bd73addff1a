# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Packages of any Debian suite and architecture, from the mirror that this machine's apt uses,
# fetched and unpacked without being installed. apt's state for them is kept in the cache: nothing
# that `apt` by itself sees or does changes.

APT_KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg

# Sets APT_MAIN and APT_SECURITY, the mirror's two archives. GPUSHARE_DEBIAN_MIRROR names another
# one.
apt_find_mirror() {
	local release uri origin codename
	[[ -z ${APT_MAIN:-} ]] || return 0
	APT_MAIN=${GPUSHARE_DEBIAN_MIRROR:-} APT_SECURITY=
	codename=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
	# REPO_URI is what stands in a sources file, of either format, and RELEASE a suite's name.
	# Other vendors' archives may use the same names, but not Debian's Origin; that is known
	# where apt has lists, so a machine that has none yet is asked again without it.
	while read -r release uri origin; do
		[[ $origin == Debian || $origin == none ]] || continue
		case $release in
		*-security | */updates) APT_SECURITY=${APT_SECURITY:-$uri} ;;
		"$codename" | stable | oldstable | oldoldstable | testing)
			APT_MAIN=${APT_MAIN:-$uri}
			;;
		esac
	done < <(
		targets() {
			apt-get indextargets "$@" 'Identifier: Packages' 'Component: main'
		}
		targets --format '$(RELEASE) $(REPO_URI) $(ORIGIN)'
		targets --no-release-info --format '$(RELEASE) $(REPO_URI) none'
	)
	[[ -n $APT_MAIN ]] || die "apt on this machine has no Debian mirror;" \
		"name one in GPUSHARE_DEBIAN_MIRROR"
	APT_MAIN=${APT_MAIN%/}
	APT_SECURITY=${APT_SECURITY:-$APT_MAIN-security}
	APT_SECURITY=${APT_SECURITY%/}
}

# apt_state SUITE ARCH: sets APT_DIR, the folder with apt's state for them.
apt_state() {
	local suite=$1 arch=$2 base=${1%-backports}
	apt_find_mirror
	APT_DIR=$VM_CACHE/apt/$suite-$arch
	mkdir -p "$APT_DIR"/{lists,cache/archives}/partial "$VM_CACHE/lock"
	{
		echo "deb [signed-by=$APT_KEYRING] $APT_MAIN $suite main"
		if [[ $suite == "$base" && $suite != sid ]]; then
			echo "deb [signed-by=$APT_KEYRING] $APT_SECURITY $suite-security main"
		fi
	} >"$APT_DIR/sources.$$"
	cat >"$APT_DIR/conf.$$" <<-EOF
		APT::Architecture "$arch";
		#clear APT::Architectures;
		APT::Architectures { "$arch"; };
		#clear APT::Update::Pre-Invoke;
		#clear APT::Update::Post-Invoke;
		#clear APT::Update::Post-Invoke-Success;
		#clear DPkg::Post-Invoke;
		#clear Acquire::IndexTargets::deb::DEP-11;
		APT::Sandbox::User "root";
		Dir::Etc::sourcelist "$APT_DIR/sources";
		Dir::Etc::sourceparts "/dev/null";
		Dir::Etc::preferences "/dev/null";
		Dir::Etc::preferencesparts "/dev/null";
		Dir::State "$APT_DIR";
		Dir::State::status "/dev/null";
		Dir::State::lists "$APT_DIR/lists";
		Dir::Cache "$APT_DIR/cache";
		Dir::Cache::pkgcache "";
		Dir::Cache::srcpkgcache "";
		Acquire::Languages "none";
		Acquire::Retries "3";
		// What is pinned is old, and a suite that is no longer updated stays signed.
		Acquire::Check-Valid-Until "false";
	EOF
	mv "$APT_DIR/sources.$$" "$APT_DIR/sources"
	mv "$APT_DIR/conf.$$" "$APT_DIR/conf"
}

# apt_update: brings the lists of APT_DIR up to date, one run at a time.
apt_update() {
	say "looking what ${APT_DIR##*/} has"
	(
		flock 9
		apt-get -q -c "$APT_DIR/conf" update >"$APT_DIR/log" 2>&1 || {
			cat "$APT_DIR/log" >&2
			exit 1
		}
	) 9>"$VM_CACHE/lock/apt-${APT_DIR##*/}" || die "no package lists of ${APT_DIR##*/}"
}

# apt_versions PACKAGE: prints the versions that APT_DIR's lists have of it, newest first.
apt_versions() {
	apt-cache -c "$APT_DIR/conf" madison "$1" 2>/dev/null | awk '{ print $3 }'
}

# apt_depends PACKAGE VERSION: prints its dependencies' names, one a line.
apt_depends() {
	apt-cache -c "$APT_DIR/conf" show "$1=$2" |
		sed -n 's/^Depends: //p' | sed 's/[,|]/\n/g' | awk '{ print $1 }'
}

# apt_names PATTERN: prints the packages whose names match the extended regular expression.
apt_names() {
	apt-cache -c "$APT_DIR/conf" --names-only search "$1" | awk '{ print $1 }'
}

# apt_download FOLDER PACKAGE=VERSION...: puts the .deb files there, their signatures checked.
apt_download() {
	local folder=$1
	shift
	(cd "$folder" && apt-get -q -c "$APT_DIR/conf" download "$@" >log 2>&1) || {
		cat "$folder/log" >&2
		return 1
	}
}

# apt_download_with_depends FOLDER PACKAGE...: makes FOLDER and puts the .deb files of all that a
# machine without any package would get there.
apt_download_with_depends() {
	local folder=$1
	shift
	mkdir -p "$folder/partial"
	apt-get -q -c "$APT_DIR/conf" -o Dir::Cache::archives="$folder" --download-only -y \
		--no-install-recommends install "$@" >"$folder/log" 2>&1 || {
		cat "$folder/log" >&2
		return 1
	}
}
