# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Commands that the documentation prints, so that tests run what people type.

# doc_block FILE NAME: prints the lines of the fenced block that stands below the comment
# "<!-- test: NAME -->" in FILE, perhaps indented by 3 as in a list.
doc_block() {
	awk -v mark="<!-- test: $2 -->" '
		{ sub(/^   /, "") }
		$0 == mark { found = 1; next }
		found && /^```/ { if (open) exit; open = 1; next }
		found && open { print; lines++ }
		END { exit !lines }' "$GS_TOP/$1" || {
		echo "$1 has no block \"$2\"" >&2
		return 1
	}
}
