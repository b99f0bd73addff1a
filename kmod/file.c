// SPDX-License-Identifier: GPL-2.0-only
/* Borrowers' open files. */
#include <linux/hash.h>
#include <linux/rculist.h>
#include <linux/slab.h>

#include "event.h"
#include "file.h"
#include "holding.h"
#include "watch.h"

struct hlist_head gs_file_hash[1 << GS_FILE_BITS];
unsigned int gs_n_files;

int gs_file_opening(struct file *file, dev_t dev, struct gs_watch *watch)
{
	struct gs_file *entry;
	struct gs_link *link;
	int ret = 0;

	/* The container pays for what it makes us keep. */
	entry = kzalloc(sizeof(*entry), GFP_KERNEL_ACCOUNT);
	if (!entry) {
		gs_watch_put(watch);
		return -ENOMEM;
	}
	entry->file = file;
	entry->dev = dev;
	entry->watch = watch;

	spin_lock(&gs_lock);
	if (watch->revoked) {
		gs_totals.refused++;
		ret = -EIO;
	} else if (watch->files >= GS_FILES_MAX) {
		ret = -EMFILE;
	} else if (gs_file_lookup(file)) {
		/* A hooked open that is called by another hooked one. */
		ret = -EEXIST;
	}
	if (ret) {
		spin_unlock(&gs_lock);
		kfree(entry);
		gs_watch_put(watch);
		return ret;
	}
	watch->files++;
	list_for_each_entry(link, &watch->links, of_watch)
		link->holding->files++;
	WRITE_ONCE(gs_n_files, gs_n_files + 1);
	hlist_add_head_rcu(&entry->hash,
			   &gs_file_hash[hash_long((unsigned long)file, GS_FILE_BITS)]);
	spin_unlock(&gs_lock);
	return 0;
}

/* Takes it out of everything but memory. gs_lock held. */
static void forget(struct gs_file *entry)
{
	struct gs_link *link;

	hlist_del_rcu(&entry->hash);
	WRITE_ONCE(gs_n_files, gs_n_files - 1);
	entry->watch->files--;
	if (entry->watch->revoked)
		WRITE_ONCE(gs_special, gs_special - GS_SPECIAL);
	list_for_each_entry(link, &entry->watch->links, of_watch) {
		if (!--link->holding->files)
			gs_holding_drained(link->holding);
		else if (!entry->watch->files)
			gs_holding_hasten(link->holding);
	}
}

void gs_file_closed(struct file *file)
{
	struct gs_file *entry;

	spin_lock(&gs_lock);
	entry = gs_file_lookup(file);
	if (entry)
		forget(entry);
	spin_unlock(&gs_lock);
	if (entry) {
		gs_watch_put(entry->watch);
		kfree_rcu(entry, rcu);
	}
}

void gs_file_forget(const struct gs_watch *watch, dev_t dev)
{
	HLIST_HEAD(forgotten);
	struct hlist_node *next;
	struct gs_file *entry;
	unsigned int i;

	spin_lock(&gs_lock);
	for (i = 0; i < ARRAY_SIZE(gs_file_hash); i++) {
		hlist_for_each_entry_safe(entry, next, &gs_file_hash[i], hash) {
			if ((watch && entry->watch != watch) || (dev && entry->dev != dev))
				continue;
			forget(entry);
			hlist_add_head(&entry->forgotten, &forgotten);
		}
	}
	spin_unlock(&gs_lock);
	hlist_for_each_entry_safe(entry, next, &forgotten, forgotten) {
		gs_watch_put(entry->watch);
		kfree_rcu(entry, rcu);
	}
}

void gs_file_exit(void)
{
	struct hlist_node *next;
	struct gs_file *entry;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(gs_file_hash); i++) {
		hlist_for_each_entry_safe(entry, next, &gs_file_hash[i], hash) {
			hlist_del(&entry->hash);
			gs_watch_put(entry->watch);
			kfree(entry);
		}
	}
	gs_n_files = 0;
}
