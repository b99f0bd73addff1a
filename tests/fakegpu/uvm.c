// SPDX-License-Identifier: GPL-2.0-only
/* /dev/fakegpu-uvm: the same commands behind functions of its own. */
#include <linux/compat.h>
#include <linux/mm.h>
#include <linux/module.h>

#include "fg.h"

/* The kind is looked at so that no compiler makes one function of these and the cards'. */
static bool fg_uvm_is(const struct file *file)
{
	const struct fg_file *fg = file->private_data;

	return fg->node->kind == FG_NODE_UVM;
}

static noinline int fg_uvm_open(struct inode *inode, struct file *file)
{
	int err = fg_file_open(inode, file);

	if (!err)
		WARN_ON_ONCE(!fg_uvm_is(file));
	return err;
}

static noinline int fg_uvm_release(struct inode *inode, struct file *file)
{
	WARN_ON_ONCE(!fg_uvm_is(file));
	fg_file_release(inode, file);
	return 0;
}

static noinline long fg_uvm_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	if (!fg_uvm_is(file))
		return -ENODEV;
	return fg_command(file, cmd, (void __user *)arg, FG_IOCTL);
}

#ifdef CONFIG_COMPAT
static noinline long fg_uvm_compat_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	if (!fg_uvm_is(file))
		return -ENODEV;
	return fg_command(file, cmd, compat_ptr(arg), FG_COMPAT_IOCTL);
}
#endif

static noinline int fg_uvm_mmap(struct file *file, struct vm_area_struct *vma)
{
	if (!fg_uvm_is(file))
		return -ENODEV;
	return fg_map(file, vma);
}

const struct file_operations fg_uvm_fops = {
	.owner = THIS_MODULE,
	.open = fg_uvm_open,
	.release = fg_uvm_release,
	.unlocked_ioctl = fg_uvm_ioctl,
#ifdef CONFIG_COMPAT
	.compat_ioctl = fg_uvm_compat_ioctl,
#endif
	.mmap = fg_uvm_mmap,
};
