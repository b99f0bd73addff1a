// SPDX-License-Identifier: GPL-2.0-only
/* Compiles with every kernel: if not, the answers of the other probes mean nothing. */
#include <linux/ftrace.h>
#include <linux/module.h>

int ipmod_probe(const struct ftrace_ops *ops);

int ipmod_probe(const struct ftrace_ops *ops)
{
	return ops->func ? 1 : 0;
}
