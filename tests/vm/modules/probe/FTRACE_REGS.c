// SPDX-License-Identifier: GPL-2.0-only
/* 5.11: d19ad0775dcd ("ftrace: Have the callbacks receive a struct ftrace_regs"). */
#include <linux/ftrace.h>

void ipmod_probe(unsigned long ip, unsigned long parent_ip, struct ftrace_ops *ops,
		 struct ftrace_regs *regs);
extern struct ftrace_ops ipmod_ops;

struct ftrace_ops ipmod_ops = {
	.func = ipmod_probe,
};
