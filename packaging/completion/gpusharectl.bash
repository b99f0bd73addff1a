# SPDX-License-Identifier: Apache-2.0
# Completion of gpusharectl for bash. Verbs and options are read from its own --help, so that what
# is offered is what the installed program has.
# shellcheck shell=bash

_gpusharectl_verbs() {
	"$1" --help 2>/dev/null | sed -n 's/^  \([a-z][a-z-]*\)  .*/\1/p'
}

# What the verb's --help names: -x, --long.
_gpusharectl_options() {
	"$1" "$2" --help 2>/dev/null | grep -oE '(^|[ [|])--?[a-z][a-z-]*' | tr -d ' [|' | sort -u
}

# The words that may stand behind the option or verb $3 of the verb $2.
_gpusharectl_values() {
	case $2/$3 in
	*/-o)
		# -o json, or -o json|wide
		"$1" "$2" --help 2>/dev/null | sed -n 's/.*\[-o \([a-z|]*\)\].*/\1/p' |
			tr '|' '\n' | sort -u
		;;
	setup/--containerd) printf '%s\n' 1 2 ;;
	setup/--cgroup-driver) printf '%s\n' systemd cgroupfs ;;
	config/config) echo check ;;
	kmod/kmod) printf '%s\n' status watch events ;;
	setup/*) printf '%s\n' k3s rke2 crio containerd docker podman ;;
	*/--node)
		timeout 3 "$1" inspect 2>/dev/null | awk 'NR > 1 { print $1 }' | sort -u
		;;
	inspect/* | lend/* | reclaim/* | grant/--card)
		# The agent may hang; nobody waits for it at a prompt.
		timeout 1 "$1" inspect 2>/dev/null | awk 'NR > 1 { print $1 }'
		;;
	grant/--revoke) "$1" grant --list -o json 2>/dev/null |
		sed -n 's/.*"name": "\([0-9a-f]*\).*/\1/p' ;;
	esac
}

_gpusharectl() {
	local program=$1 word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
	local verb=${COMP_WORDS[1]:-} words=

	if ((COMP_CWORD == 1)); then
		words=$(_gpusharectl_verbs "$program"; printf '%s\n' --help --version)
	elif [[ $word == -* ]]; then
		words=$(_gpusharectl_options "$program" "$verb")
	else
		words=$(_gpusharectl_values "$program" "$verb" "$before")
	fi
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
	# Files: where nothing else is known, paths of bundles, nodes and configurations.
	if ((${#COMPREPLY[@]} == 0)) && [[ $word != -* ]]; then
		mapfile -t COMPREPLY < <(compgen -f -- "$word")
	fi
}

complete -o filenames -F _gpusharectl gpusharectl kubectl-gpushare
