// SPDX-License-Identifier: GPL-2.0-only
/* Opening and closing, and the functions of the cards' nodes and of those beside them. */
#include <linux/compat.h>
#include <linux/module.h>
#include <linux/mount.h>
#include <linux/poll.h>
#include <linux/pseudo_fs.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>

#include "fg.h"

LIST_HEAD(fg_files);
static u64 fg_last_file; /* fg_lock */

/* ---- The one address space of all files, for shared_mapping: made as DRM makes its own. */
#define FG_FS_MAGIC 0x46475055

static struct vfsmount *fg_mount;
static int fg_mount_count;
static struct inode *fg_common_inode; /* fg_files_mutex */

static int fg_fs_init_context(struct fs_context *fc)
{
	return init_pseudo(fc, FG_FS_MAGIC) ? 0 : -ENOMEM;
}

/* Without an owner: its mount is undone by our exit, which could never run otherwise. */
static struct file_system_type fg_fs_type = {
	.name = "fakegpu",
	.init_fs_context = fg_fs_init_context,
	.kill_sb = kill_anon_super,
};

/* Holds fg_files_mutex. */
static int fg_common_inode_make(void)
{
	struct inode *inode;
	int err;

	if (fg_common_inode)
		return 0;
	err = simple_pin_fs(&fg_fs_type, &fg_mount, &fg_mount_count);
	if (err)
		return err;
	inode = alloc_anon_inode(fg_mount->mnt_sb);
	if (IS_ERR(inode)) {
		simple_release_fs(&fg_mount, &fg_mount_count);
		return PTR_ERR(inode);
	}
	fg_common_inode = inode;
	return 0;
}

void fg_files_exit(void)
{
	if (!fg_common_inode)
		return;
	iput(fg_common_inode);
	fg_common_inode = NULL;
	simple_release_fs(&fg_mount, &fg_mount_count);
}

/* ---- Opening and closing. */
static int fg_mapping_init(struct fg_file *fg, struct inode *inode)
{
	int err = 0;

	if (!READ_ONCE(fg_shared_mapping)) {
		address_space_init_once(&fg->mapping);
		fg->mapping.host = inode;
		fg->mapping.a_ops = inode->i_mapping->a_ops;
		fg->file->f_mapping = &fg->mapping;
		return 0;
	}
	mutex_lock(&fg_files_mutex);
	err = fg_common_inode_make();
	if (!err)
		fg->file->f_mapping = fg_common_inode->i_mapping;
	mutex_unlock(&fg_files_mutex);
	return err;
}

int fg_file_open(struct inode *inode, struct file *file)
{
	struct fg_node *node = fg_node_find(inode->i_rdev);
	struct fg_file *fg;
	int err;

	if (!node)
		return -ENODEV;
	err = fg_sleep(READ_ONCE(fg_open_ms),
		       READ_ONCE(fg_open_hard) ? TASK_UNINTERRUPTIBLE : TASK_KILLABLE);
	if (!err && READ_ONCE(fg_open_fail))
		err = -EIO;
	if (err)
		goto failed;

	err = -ENOMEM;
	fg = kzalloc(sizeof(*fg), GFP_KERNEL);
	if (!fg)
		goto failed;
	fg->node = node;
	fg->file = file;
	fg->tgid = task_tgid_nr(current);
	memcpy(fg->comm, current->comm, sizeof(fg->comm));
	fg->comm[sizeof(fg->comm) - 1] = '\0';
	INIT_LIST_HEAD(&fg->allocs);
	err = fg_mapping_init(fg, inode);
	if (err) {
		kfree(fg);
		goto failed;
	}
	file->private_data = fg;

	mutex_lock(&fg_files_mutex);
	spin_lock(&fg_lock);
	fg->id = ++fg_last_file;
	list_add_tail(&fg->list, &fg_files);
	node->open_now++;
	fg_log_locked(node, FG_OPEN, 0, fg->id, node->card, file->f_flags, 0);
	spin_unlock(&fg_lock);
	mutex_unlock(&fg_files_mutex);
	return 0;

failed:
	fg_log(node, FG_OPEN_FAIL, NULL, file->f_flags, err);
	return err;
}

void fg_file_release(struct inode *inode, struct file *file)
{
	struct fg_file *fg = file->private_data;
	struct fg_node *node = fg->node;
	u64 bytes;

	fg_sleep(READ_ONCE(fg_close_ms), TASK_UNINTERRUPTIBLE);

	mutex_lock(&fg_files_mutex);
	spin_lock(&fg_lock);
	list_del(&fg->list);
	if (fg->busy_card && fg->busy_card->load_latch && fg->busy_until > ktime_get_boottime_ns())
		fg->busy_card->latched = true;
	spin_unlock(&fg_lock);
	mutex_unlock(&fg_files_mutex);

	bytes = fg->bytes;
	fg_mem_release(fg);
	spin_lock(&fg_lock);
	node->open_now--;
	fg_log_locked(node, FG_RELEASE, 0, fg->id, node->card, bytes, 0);
	spin_unlock(&fg_lock);
	file->f_mapping = inode->i_mapping;
	kfree(fg);
}

/* ---- The cards' own functions: each one stands at an address of its own and can be traced. */
static noinline int fg_card_open(struct inode *inode, struct file *file)
{
	return fg_file_open(inode, file);
}

static noinline int fg_card_release(struct inode *inode, struct file *file)
{
	fg_file_release(inode, file);
	return 0;
}

static noinline long fg_card_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	return fg_command(file, cmd, (void __user *)arg, FG_IOCTL);
}

#ifdef CONFIG_COMPAT
static noinline long fg_card_compat_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	return fg_command(file, cmd, compat_ptr(arg), FG_COMPAT_IOCTL);
}
#endif

static noinline int fg_card_mmap(struct file *file, struct vm_area_struct *vma)
{
	return fg_map(file, vma);
}

static noinline __poll_t fg_card_poll(struct file *file, poll_table *wait)
{
	struct fg_file *fg = file->private_data;

	fg_log(fg->node, FG_POLL, fg, 0, 0);
	return EPOLLIN | EPOLLRDNORM | EPOLLOUT | EPOLLWRNORM;
}

/* Always at the end. */
static noinline ssize_t fg_card_read(struct file *file, char __user *buf, size_t count, loff_t *pos)
{
	struct fg_file *fg = file->private_data;

	fg_log(fg->node, FG_READ, fg, count, 0);
	return 0;
}

/* Swallows all. */
static noinline ssize_t fg_card_write(struct file *file, const char __user *buf, size_t count,
				      loff_t *pos)
{
	struct fg_file *fg = file->private_data;

	fg_log(fg->node, FG_WRITE, fg, count, 0);
	return count;
}

const struct file_operations fg_card_fops = {
	.owner = THIS_MODULE,
	.open = fg_card_open,
	.release = fg_card_release,
	.unlocked_ioctl = fg_card_ioctl,
#ifdef CONFIG_COMPAT
	.compat_ioctl = fg_card_compat_ioctl,
#endif
	.mmap = fg_card_mmap,
	.poll = fg_card_poll,
	.read = fg_card_read,
	.write = fg_card_write,
};

/* ---- Two nodes whose ioctl goes through the kernel's own forwarder. */
static noinline long fg_compat_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct fg_file *fg = file->private_data;

	/* A card would do as well; this only has to be another function than the cards'. */
	if (fg->node->kind != FG_NODE_COMPAT)
		return -ENODEV;
	return fg_command(file, cmd, (void __user *)arg, FG_IOCTL);
}

/* Only to be looked at: the forwarder would call itself for ever. */
const struct file_operations fg_forwarder_fops = {
	.owner = THIS_MODULE,
	.open = fg_card_open,
	.release = fg_card_release,
	.unlocked_ioctl = compat_ptr_ioctl,
};

const struct file_operations fg_compat_fops = {
	.owner = THIS_MODULE,
	.open = fg_card_open,
	.release = fg_card_release,
	.unlocked_ioctl = fg_compat_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};
