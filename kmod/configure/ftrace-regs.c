// SPDX-License-Identifier: GPL-2.0-only
/* Callbacks get struct ftrace_regs (5.11). */
#include <linux/ftrace.h>

static void probe(unsigned long ip, unsigned long parent, struct ftrace_ops *ops,
		  struct ftrace_regs *regs)
{
}

_Static_assert(__builtin_types_compatible_p(ftrace_func_t, typeof(&probe)), "");
