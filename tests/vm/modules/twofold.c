// SPDX-License-Identifier: GPL-2.0-only
/*
 * A driver whose open and release are one function, which keeps count in it: nothing that can be
 * watched, since at its entry nobody knows which of them a call is. /dev/twofold has that, and
 * /dev/twofold-ioctl one function for ioctls of 64-bit and of 32-bit callers, which is harmless.
 */
#include <linux/atomic.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>

static atomic_t twofold_calls;

static noinline int twofold_open_release(struct inode *inode, struct file *file)
{
	atomic_inc(&twofold_calls);
	return 0;
}

static noinline int twofold_release(struct inode *inode, struct file *file)
{
	atomic_dec(&twofold_calls);
	return 0;
}

static noinline long twofold_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	return atomic_read(&twofold_calls);
}

static const struct file_operations twofold_fops = {
	.owner = THIS_MODULE,
	.open = twofold_open_release,
	.release = twofold_open_release,
	.unlocked_ioctl = twofold_ioctl,
};

static const struct file_operations twofold_ioctl_fops = {
	.owner = THIS_MODULE,
	.open = twofold_open_release,
	.release = twofold_release,
	.unlocked_ioctl = twofold_ioctl,
	.compat_ioctl = twofold_ioctl,
};

static struct miscdevice twofold_devices[] = {
	{ .minor = MISC_DYNAMIC_MINOR, .name = "twofold", .fops = &twofold_fops },
	{ .minor = MISC_DYNAMIC_MINOR, .name = "twofold-ioctl", .fops = &twofold_ioctl_fops },
};

static int __init twofold_init(void)
{
	int err = misc_register(&twofold_devices[0]);

	if (err)
		return err;
	err = misc_register(&twofold_devices[1]);
	if (err)
		misc_deregister(&twofold_devices[0]);
	return err;
}

static void __exit twofold_exit(void)
{
	misc_deregister(&twofold_devices[1]);
	misc_deregister(&twofold_devices[0]);
}

module_init(twofold_init);
module_exit(twofold_exit);
MODULE_DESCRIPTION("One function for two of a driver's, for tests");
MODULE_LICENSE("GPL");
