// SPDX-License-Identifier: GPL-2.0-only
/* Drivers may take commands by io_uring (5.19). */
#include <linux/fs.h>

void *use(struct file_operations *fops)
{
	return fops->uring_cmd;
}
