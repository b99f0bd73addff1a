// SPDX-License-Identifier: GPL-2.0-only
/* The stand-in card: behaves as drivers of accelerators do, on machines that have none. */
#include <linux/delay.h>
#include <linux/log2.h>
#include <linux/module.h>

#include "fg.h"

unsigned int fg_cards = 2;
module_param_named(cards, fg_cards, uint, 0444);
MODULE_PARM_DESC(cards, "how many cards (0 to 64)");

unsigned int fg_mem_mb = 1024;
module_param_named(mem_mb, fg_mem_mb, uint, 0444);
MODULE_PARM_DESC(mem_mb, "memory of a card, in MiB");

bool fg_misc;
module_param_named(misc, fg_misc, bool, 0444);
MODULE_PARM_DESC(misc, "also /dev/fakegpu-misc: card 0 as a misc device");

bool fg_forwarder;
module_param_named(forwarder, fg_forwarder, bool, 0444);
MODULE_PARM_DESC(forwarder, "also /dev/fakegpu-fwd and /dev/fakegpu-compat");

bool fg_shared_mapping;
module_param_named(shared_mapping, fg_shared_mapping, bool, 0644);
MODULE_PARM_DESC(shared_mapping, "files opened from now on share one address space");

bool fg_nofault;
module_param_named(nofault, fg_nofault, bool, 0644);
MODULE_PARM_DESC(nofault, "mappings made from now on have no fault function");

bool fg_private;
module_param_named(private, fg_private, bool, 0644);
MODULE_PARM_DESC(private, "mappings made from now on may be private");

static bool fg_init_fail;
module_param_named(init_fail, fg_init_fail, bool, 0444);
MODULE_PARM_DESC(init_fail, "loading fails with ENODEV after the nodes were there");

static unsigned int fg_init_fail_ms = 100;
module_param_named(init_fail_ms, fg_init_fail_ms, uint, 0444);
MODULE_PARM_DESC(init_fail_ms, "how long they were");

bool fg_open_fail;
module_param_named(open_fail, fg_open_fail, bool, 0644);
MODULE_PARM_DESC(open_fail, "open gives EIO");

unsigned int fg_open_ms;
module_param_named(open_ms, fg_open_ms, uint, 0644);
MODULE_PARM_DESC(open_ms, "open sleeps so long first (killable)");

bool fg_open_hard;
module_param_named(open_hard, fg_open_hard, bool, 0644);
MODULE_PARM_DESC(open_hard, "that sleep of open is in D state");

unsigned int fg_close_ms;
module_param_named(close_ms, fg_close_ms, uint, 0644);
MODULE_PARM_DESC(close_ms, "release sleeps so long first (D state)");

unsigned int fg_fault_ms;
module_param_named(fault_ms, fg_fault_ms, uint, 0644);
MODULE_PARM_DESC(fault_ms, "a fault sleeps so long before it brings its page (killable)");

bool fg_populate;
module_param_named(populate, fg_populate, bool, 0644);
MODULE_PARM_DESC(populate, "mappings have their pages at once, and a fault function as well");

unsigned int fg_free_delay_ms;
module_param_named(free_delay_ms, fg_free_delay_ms, uint, 0644);
MODULE_PARM_DESC(free_delay_ms, "how long after its release a file's memory is still in use");

unsigned int fg_log_size = 65536;
module_param_named(log_size, fg_log_size, uint, 0444);
MODULE_PARM_DESC(log_size, "records that the log keeps");

bool fg_record_on = true;
module_param_named(record, fg_record_on, bool, 0644);
MODULE_PARM_DESC(record, "calls are recorded and counted");

DEFINE_SPINLOCK(fg_lock);
DEFINE_MUTEX(fg_files_mutex);

static void fg_undo(void)
{
	fg_nodes_close();
	fg_show_exit();
	fg_nodes_exit();
	fg_cards_exit();
	fg_files_exit();
	fg_log_exit();
}

static int __init fg_init(void)
{
	int err;

	fg_cards = min_t(unsigned int, fg_cards, FG_MAX_CARDS);
	fg_log_size = clamp_t(unsigned int, fg_log_size, 16, 1 << 22);

	err = fg_log_init();
	if (!err)
		err = fg_cards_init();
	if (!err)
		err = fg_nodes_init();
	if (err) {
		fg_undo();
		return err;
	}
	fg_show_init();

	if (fg_init_fail) {
		msleep(fg_init_fail_ms);
		fg_nodes_close();
		fg_show_exit();
		/*
		 * The kernel frees a module whose init failed without a look at who uses it. Init
		 * itself holds one reference; every other one is an open file or on its way there.
		 */
		while (module_refcount(THIS_MODULE) > 1)
			msleep(10);
		fg_undo();
		return -ENODEV;
	}
	return 0;
}

static void __exit fg_exit(void)
{
	fg_undo();
}

module_init(fg_init);
module_exit(fg_exit);
MODULE_DESCRIPTION("A driver that stands in for accelerator cards in tests");
MODULE_LICENSE("GPL");
