// SPDX-License-Identifier: GPL-2.0-only
/* The text of a module is mem[MOD_TEXT] (6.4). */
#include <linux/module.h>

void *use(struct module *mod)
{
	return mod->mem[MOD_TEXT].base;
}
