// SPDX-License-Identifier: GPL-2.0-only
/* Workers of io_uring are threads of their process (5.12). */
#include <linux/sched/task.h>

struct task_struct *use(int (*fn)(void *), void *arg)
{
	return create_io_thread(fn, arg, 0);
}
