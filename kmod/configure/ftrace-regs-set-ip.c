// SPDX-License-Identifier: GPL-2.0-only
/* ftrace_regs_set_instruction_pointer() redirects (6.2). */
#include <linux/ftrace.h>

void use(struct ftrace_regs *regs)
{
	ftrace_regs_set_instruction_pointer(regs, 0);
}
