// SPDX-License-Identifier: GPL-2.0-only
/* ftrace_instruction_pointer_set() redirects (x86, up to 6.1). */
#include <linux/ftrace.h>

void use(struct ftrace_regs *regs)
{
	ftrace_instruction_pointer_set(regs, 0);
}
