// SPDX-License-Identifier: GPL-2.0-only
/*
 * Somebody else who may change a function's instruction pointer, as livepatch may: takes the place
 * of the one IPMODIFY user that ftrace allows, and changes nothing. Loading fails if it is taken.
 */
#include <linux/ftrace.h>
#include <linux/module.h>
#include <linux/string.h>

static char *symbol = "";
module_param(symbol, charp, 0444);
MODULE_PARM_DESC(symbol, "the function to hook");

#ifdef IPMOD_HAVE_FTRACE_REGS
#define IPMOD_REGS ftrace_regs
#else
#define IPMOD_REGS pt_regs
#endif

static void notrace ipmod_callback(unsigned long ip, unsigned long parent_ip,
				   struct ftrace_ops *ops, struct IPMOD_REGS *regs)
{
}

static struct ftrace_ops ipmod_ops = {
	.func = ipmod_callback,
	.flags = FTRACE_OPS_FL_IPMODIFY | FTRACE_OPS_FL_SAVE_REGS_IF_SUPPORTED,
};

static int __init ipmod_init(void)
{
	int err;

	if (!*symbol)
		return -EINVAL;
	err = ftrace_set_filter(&ipmod_ops, symbol, strlen(symbol), 0);
	if (err) {
		pr_err("ipmod: no function %s: %d\n", symbol, err);
		return err;
	}
	err = register_ftrace_function(&ipmod_ops);
	if (err) {
		pr_info("ipmod: %s: %d\n", symbol, err);
		ftrace_set_filter(&ipmod_ops, NULL, 0, 1);
	}
	return err;
}

static void __exit ipmod_exit(void)
{
	unregister_ftrace_function(&ipmod_ops);
	ftrace_set_filter(&ipmod_ops, NULL, 0, 1);
}

module_init(ipmod_init);
module_exit(ipmod_exit);
MODULE_DESCRIPTION("Holds the IPMODIFY place of one function, for tests");
MODULE_LICENSE("GPL");
