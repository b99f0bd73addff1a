#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Completion at a prompt: every verb, and every option that a verb's --help names.
# shellcheck disable=SC2154 # what common.bash sets

load common

# completes WORD...: what bash offers for the last word, one a line.
completes() {
	(
		# shellcheck source=packaging/completion/gpusharectl.bash
		source packaging/completion/gpusharectl.bash
		COMP_WORDS=("$@")
		COMP_CWORD=$(($# - 1))
		COMPREPLY=()
		_gpusharectl "$bin/gpusharectl" "${@: -1}" "${@: -2:1}"
		((${#COMPREPLY[@]} == 0)) || printf '%s\n' "${COMPREPLY[@]}"
	)
}

@test "every verb of --help, and no other word" {
	local verbs
	verbs=$("$bin/gpusharectl" --help | sed -n 's/^  \([a-z]*\) .*/\1/p' | sort)
	[ "$(wc -l <<<"$verbs")" -ge 12 ]
	[ "$(completes gpusharectl '' | grep -v '^--' | sort)" = "$verbs" ]
	[ "$(completes gpusharectl se)" = setup ]
	[ "$(completes gpusharectl --v)" = --version ]
}

@test "every option of every verb is one that the verb takes" {
	local verb option n=0
	for verb in $("$bin/gpusharectl" --help | sed -n 's/^  \([a-z]*\) .*/\1/p'); do
		[[ $(completes gpusharectl "$verb" -) == *-[a-z]* || $verb == lend ]]
		while read -r option; do
			n=$((n + 1))
			# Whatever else is wrong with such a call, the option is known. Those of
			# kmod belong to its parts.
			[[ $verb != kmod && $verb != config ]] || continue
			# timeout: events goes on for ever where there is a module.
			run timeout 2 "$bin/gpusharectl" "$verb" "$option"
			[[ $output != *"no option $option"* ]] || {
				echo "$verb $option: $output"
				return 1
			}
		done < <(completes gpusharectl "$verb" --)
	done
	((n >= 15))
}

@test "the words behind an option" {
	[ "$(completes gpusharectl containers -o '' | sort | paste -sd' ')" = 'json wide' ]
	[ "$(completes gpusharectl status -o '')" = json ]
	[ "$(completes gpusharectl setup con)" = containerd ]
	[ "$(completes gpusharectl setup --cgroup-driver s)" = systemd ]
	[ "$(completes gpusharectl kmod w)" = watch ]
	[ "$(completes gpusharectl config check vend | head -n1)" = vendors ]
}

# zsh_completes WORD...: the same by zsh, whose own functions for the prompt are played here.
zsh_completes() {
	zsh -f -c '
		compadd() { print -rl -- ${(P)2} }
		_describe() { print -rl -- ${(P)2%%:*} }
		_files() { print files }
		program=$1; shift
		words=($program "${@:2}"); CURRENT=$#words; PREFIX=$words[-1]
		source packaging/completion/_gpusharectl' - "$bin/gpusharectl" "$@"
}

@test "zsh: the same words" {
	local word
	command -v zsh >/dev/null || skip "no zsh"
	[ "$(zsh_completes gpusharectl '')" = "$(completes gpusharectl '' | grep -v '^--')" ]
	for word in setup doctor kmod events; do
		[ "$(zsh_completes gpusharectl "$word" -)" = "$(completes gpusharectl "$word" -)" ]
	done
	[ "$(zsh_completes gpusharectl containers -o '')" = "$(printf '%s\n' json wide)" ]
	[ "$(zsh_completes gpusharectl setup --containerd '')" = "$(printf '%s\n' 1 2)" ]
	[ "$(zsh_completes gpusharectl kmod '')" = "$(printf '%s\n' status watch events)" ]
	[ "$(zsh_completes gpusharectl config check '')" = files ]
}

# asks WORD...: what kubectl is told for "kubectl gpushare WORD...", without texts beside words.
asks() {
	mkdir -p "$dir/path"
	ln -sf "$bin/gpusharectl" "$dir/path/kubectl-gpushare"
	PATH=$dir/path:$PATH packaging/completion/kubectl_complete-gpushare "$@" | cut -f1 |
		paste -sd' '
}

@test "kubectl's own completion of kubectl gpushare" {
	cat >"$dir/kubectl" <<-'EOT'
		#!/bin/sh
		echo '{"items":[{"metadata":{"name":"gpushare-node-n1"},"data":{"status.json":
		"{\"v\":1,\"cards\":[{\"card\":\"c1\"}]}"}}]}' | tr -d '\n'
	EOT
	chmod +x "$dir/kubectl"
	[ "$(asks '')" = 'inspect top :4' ]
	[ "$(asks inspect -o '')" = 'json wide yaml :4' ]
	[[ $(asks top --) == *--count*--interval*--node*' :4' ]]
	export PATH=$dir:$PATH
	[ "$(asks inspect --node '')" = 'n1 :4' ]
}
