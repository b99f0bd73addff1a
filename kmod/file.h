/* SPDX-License-Identifier: GPL-2.0-only */
/* Borrowers' open files: counted from before their open until after their release. */
#ifndef GS_KMOD_FILE_H
#define GS_KMOD_FILE_H

#include "gs.h"

#define GS_FILE_BITS 12
#define GS_FILES_MAX 16384 /* of one borrower: what has more makes its own end slow */

/**
 * struct gs_file - an open file of a borrower
 */
struct gs_file {
	struct hlist_node hash;
	struct file *file; /* only compared */
	dev_t dev;
	struct gs_watch *watch;
	union {
		struct hlist_node forgotten;
		struct rcu_head rcu;
	};
};

extern struct hlist_head gs_file_hash[1 << GS_FILE_BITS];
extern unsigned int gs_n_files;

/**
 * gs_file_opening() - a borrower is about to open
 * @dev: the node
 * @watch: a reference that the file keeps; dropped here on failure
 *
 * Context: process.
 * Return: 0; -EIO it was revoked; -EMFILE it has too many; -EEXIST counted already; -ENOMEM.
 */
int gs_file_opening(struct file *file, dev_t dev, struct gs_watch *watch);

/** gs_file_closed() - an open failed, or a release is over. Context: process. */
void gs_file_closed(struct file *file);

/**
 * gs_file_forget() - count files no more whose closes can't be seen
 * @watch: of this one; borrowed; NULL: of all
 * @dev: on this node; 0: on all
 *
 * Context: process.
 */
void gs_file_forget(const struct gs_watch *watch, dev_t dev);

/** gs_file_exit() - forgets all. Context: process; nobody calls any more. */
void gs_file_exit(void);

/**
 * gs_file_lookup() - is it a borrower's?
 *
 * Context: preemption off. Return: valid until preemption is on, or NULL.
 */
static __always_inline struct gs_file *gs_file_lookup(const struct file *file)
{
	struct gs_file *entry;

	hlist_for_each_entry_rcu_notrace(
		entry, &gs_file_hash[hash_long((unsigned long)file, GS_FILE_BITS)], hash)
		if (entry->file == file)
			return entry;
	return NULL;
}

#endif
