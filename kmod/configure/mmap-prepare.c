// SPDX-License-Identifier: GPL-2.0-only
/* Drivers may map by mmap_prepare (6.16). */
#include <linux/fs.h>

void *use(struct file_operations *fops)
{
	return fops->mmap_prepare;
}
