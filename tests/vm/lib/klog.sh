# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Looks through a kernel's messages for what no test run may leave there.

# klog_check FILE: prints each report with what follows it on stderr; status 1 if there is one.
# A line "gpushare-test: expect: REGEX", which a test writes to /dev/kmsg before it provokes a
# report, makes matching lines harmless, and their absence a failure.
klog_check() {
	awk '
	BEGIN {
		bad = "WARNING: |BUG: |BUG at |Oops|KASAN|KCSAN|UBSAN|possible recursive|" \
			"possible circular|possible deadlock|inconsistent lock|suspicious RCU|" \
			"bad unlock balance|held lock freed|INFO: task|INFO: rcu|INFO: trying|" \
			"soft lockup|hard LOCKUP|hung task|unreferenced object|" \
			"suspected memory leaks|general protection fault|Unable to handle|" \
			"Internal error|Kernel panic|list_add corruption|list_del corruption|" \
			"refcount_t:|stack-protector|scheduling while atomic|" \
			"sleeping function called|DEBUG_LOCKS_WARN_ON|page allocation failure|" \
			"Modules linked in:|call trace:|Call Trace:"
		mark = "gpushare-test: expect: "
	}
	{ line[NR] = $0 }
	(i = index($0, mark)) { expected[substr($0, i + length(mark))] = 0; next }
	/gpushare-test: / { next } # the name of a test
	$0 ~ bad { found[NR] = 1 }
	END {
		for (n = 1; n <= NR; n++) {
			for (e in expected)
				if (line[n] !~ /gpushare-test: / && line[n] ~ e) {
					expected[e]++
					# The trace that belongs to it.
					for (i = n; i < n + 60; i++) {
						if (i > n && line[i] ~ /cut here/)
							break
						ok[i] = 1
					}
				}
		}
		shown = 0
		for (n = 1; n <= NR; n++) {
			if (!(n in found) || n in ok)
				continue
			wrong = 1
			if (n < shown)
				continue
			print "--- the kernel reported:"
			shown = n + 40
			for (i = n; i < shown && i <= NR; i++)
				print line[i]
		}
		for (e in expected)
			if (!expected[e]) {
				print "--- the kernel did not report: " e
				wrong = 1
			}
		exit wrong
	}' "$1" >&2
}
