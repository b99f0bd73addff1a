// SPDX-License-Identifier: GPL-2.0-only
/*
 * Switches ftrace off for good, as the kernel itself does when it finds a call site changed: hooks
 * stand in no list any more and are never called. Only a reboot mends that.
 */
#include <linux/kallsyms.h>
#include <linux/kprobes.h>
#include <linux/module.h>

static bool go;
module_param(go, bool, 0444);
MODULE_PARM_DESC(go, "do it, instead of only finding the function");

/* ftrace_kill is not exported. A kprobe's address may be past the function's first instruction. */
static unsigned long ftkill_find(void)
{
	struct kprobe probe = { .symbol_name = "ftrace_kill" };
	char text[KSYM_SYMBOL_LEN];
	unsigned long address, offset;

	if (register_kprobe(&probe) < 0)
		return 0;
	address = (unsigned long)probe.addr;
	unregister_kprobe(&probe);
	snprintf(text, sizeof(text), "%pS", (void *)address);
	if (sscanf(text, "ftrace_kill+0x%lx/", &offset) != 1)
		return 0;
	return address - offset;
}

static int __init ftkill_init(void)
{
	unsigned long address = ftkill_find();

	if (!address)
		return -ENOENT;
	if (go)
		((void (*)(void))address)();
	return 0;
}

static void __exit ftkill_exit(void)
{
}

module_init(ftkill_init);
module_exit(ftkill_exit);
MODULE_DESCRIPTION("Kills ftrace, for tests");
MODULE_LICENSE("GPL");
