// SPDX-License-Identifier: GPL-2.0-only
/* ftrace_regs_get_argument() reads an argument (6.2). */
#include <linux/ftrace.h>

unsigned long use(struct ftrace_regs *regs)
{
	return ftrace_regs_get_argument(regs, 0);
}
