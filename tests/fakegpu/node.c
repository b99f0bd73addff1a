// SPDX-License-Identifier: GPL-2.0-only
/* The device nodes: their majors, their functions, and their names in /dev. */
#include <linux/device.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "compat.h"
#include "fg.h"

/* A major of its own; minors from 0 on. */
struct fg_major {
	const char *name;
	const struct file_operations *fops;
	unsigned int minors;
	dev_t first; /* 0: not there */
	struct cdev *cdev;
};

enum {
	FG_MAJOR_CARDS,
	FG_MAJOR_UVM,
	FG_MAJOR_OTHER,
	FG_MAJOR_FORWARDER,
	FG_MAJOR_COMPAT,
	FG_MAJORS,
};

static struct fg_major fg_majors[FG_MAJORS] = {
	[FG_MAJOR_CARDS] = { .name = "fakegpu", .fops = &fg_card_fops, .minors = 256 },
	[FG_MAJOR_UVM] = { .name = "fakegpu-uvm", .fops = &fg_uvm_fops, .minors = 1 },
	/* The very functions of the cards, as drm_ioctl serves many makers' devices. */
	[FG_MAJOR_OTHER] = { .name = "fakegpu-other", .fops = &fg_card_fops, .minors = 1 },
	[FG_MAJOR_FORWARDER] = { .name = "fakegpu-fwd", .fops = &fg_forwarder_fops, .minors = 1 },
	[FG_MAJOR_COMPAT] = { .name = "fakegpu-compat", .fops = &fg_compat_fops, .minors = 1 },
};

struct fg_node *fg_nodes;
int fg_node_count;

static struct miscdevice fg_miscdevice = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "fakegpu-misc",
	.fops = &fg_card_fops,
	.mode = 0666,
};
static bool fg_misc_there;

static char *fg_devnode(FG_DEVNODE_CONST struct device *dev, umode_t *mode)
{
	const struct fg_node *node = dev_get_drvdata(dev);

	/* An ioctl on the forwarder never comes back: nobody but root should run into that. */
	if (mode)
		*mode = node->kind == FG_NODE_FORWARDER ? 0600 : 0666;
	return NULL;
}

static struct class fg_class = {
	.name = "fakegpu",
	.devnode = fg_devnode,
};
static bool fg_class_there;

struct fg_node *fg_node_find(dev_t devt)
{
	int i;

	for (i = 0; i < fg_node_count; i++)
		if (fg_nodes[i].devt == devt)
			return &fg_nodes[i];
	return NULL;
}

static int fg_major_init(struct fg_major *major)
{
	dev_t first;
	int err;

	err = alloc_chrdev_region(&first, 0, major->minors, major->name);
	if (err)
		return err;
	major->first = first;
	major->cdev = cdev_alloc();
	if (!major->cdev)
		return -ENOMEM;
	major->cdev->owner = THIS_MODULE;
	major->cdev->ops = major->fops;
	err = cdev_add(major->cdev, first, major->minors);
	if (err) {
		kobject_put(&major->cdev->kobj);
		major->cdev = NULL;
	}
	return err;
}

/* The numbers stay ours until nobody can be inside any more. */
static void fg_major_close(struct fg_major *major)
{
	if (major->cdev)
		cdev_del(major->cdev);
	major->cdev = NULL;
}

static void fg_major_exit(struct fg_major *major)
{
	fg_major_close(major);
	if (major->first)
		unregister_chrdev_region(major->first, major->minors);
	major->first = 0;
}

/* Adds a node to the table; fg_node_find knows it at once. */
static struct fg_node *fg_node_add(enum fg_node_kind kind, const char *name, struct fg_card *card,
				   dev_t devt)
{
	struct fg_node *node = &fg_nodes[fg_node_count];

	node->kind = kind;
	strscpy(node->name, name, sizeof(node->name));
	node->card = card;
	node->devt = devt;
	if (kind != FG_NODE_MISC && kind != FG_NODE_COMPAT)
		card->node = node;
	smp_store_release(&fg_node_count, fg_node_count + 1);
	return node;
}

/* Makes it appear in /dev and in /sys/class/fakegpu. */
static int fg_node_show(struct fg_node *node)
{
	const struct attribute_group **groups = node->kind == FG_NODE_CARD ? fg_card_groups : NULL;
	struct device *device;

	device = device_create_with_groups(&fg_class, NULL, node->devt, node, groups, "%s",
					   node->name);
	if (IS_ERR(device))
		return PTR_ERR(device);
	node->device = device;
	return 0;
}

static int fg_misc_init(void)
{
	int err = misc_register(&fg_miscdevice);

	if (err)
		return err;
	fg_misc_there = true;
	fg_node_add(FG_NODE_MISC, "fakegpu-misc", &fg_card_table[0],
		    MKDEV(MISC_MAJOR, fg_miscdevice.minor));
	return 0;
}

int fg_nodes_init(void)
{
	dev_t first;
	char name[16];
	int i, err;

	fg_nodes = kcalloc(fg_cards + 6, sizeof(*fg_nodes), GFP_KERNEL);
	if (!fg_nodes)
		return -ENOMEM;
	err = class_register(&fg_class);
	if (err)
		return err;
	fg_class_there = true;

	for (i = 0; i < FG_MAJORS; i++) {
		if (i >= FG_MAJOR_FORWARDER && !fg_forwarder)
			continue;
		err = fg_major_init(&fg_majors[i]);
		if (err)
			return err;
	}

	first = fg_majors[FG_MAJOR_CARDS].first;
	for (i = 0; i < fg_cards; i++) {
		snprintf(name, sizeof(name), "fakegpu%d", i);
		fg_node_add(FG_NODE_CARD, name, &fg_card_table[i], first + i);
	}
	fg_node_add(FG_NODE_CTL, "fakegpuctl", fg_card_ctl, first + FG_CTL_MINOR);
	fg_node_add(FG_NODE_UVM, "fakegpu-uvm", fg_card_uvm, fg_majors[FG_MAJOR_UVM].first);
	fg_node_add(FG_NODE_OTHER, "fakegpu-other", fg_card_other, fg_majors[FG_MAJOR_OTHER].first);
	if (fg_forwarder) {
		fg_node_add(FG_NODE_FORWARDER, "fakegpu-fwd", fg_card_forwarder,
			    fg_majors[FG_MAJOR_FORWARDER].first);
		fg_node_add(FG_NODE_COMPAT, "fakegpu-compat", fg_card_forwarder,
			    fg_majors[FG_MAJOR_COMPAT].first);
	}
	for (i = 0; i < fg_node_count; i++) {
		err = fg_node_show(&fg_nodes[i]);
		if (err)
			return err;
	}
	return fg_misc && fg_cards > 0 ? fg_misc_init() : 0;
}

void fg_nodes_close(void)
{
	int i;

	if (fg_misc_there)
		misc_deregister(&fg_miscdevice);
	fg_misc_there = false;
	for (i = 0; i < fg_node_count; i++) {
		if (fg_nodes[i].device)
			device_destroy(&fg_class, fg_nodes[i].devt);
		fg_nodes[i].device = NULL;
	}
	for (i = 0; i < FG_MAJORS; i++)
		fg_major_close(&fg_majors[i]);
}

void fg_nodes_exit(void)
{
	int i;

	for (i = 0; i < FG_MAJORS; i++)
		fg_major_exit(&fg_majors[i]);
	if (fg_class_there)
		class_unregister(&fg_class);
	fg_class_there = false;
	fg_node_count = 0;
	kfree(fg_nodes);
	fg_nodes = NULL;
}
