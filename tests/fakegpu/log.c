// SPDX-License-Identifier: GPL-2.0-only
/* A ring of records: what was called, by whom, in which order. */
#include <linux/sched.h>
#include <linux/timekeeping.h>
#include <linux/vmalloc.h>

#include "fg.h"

/* Guarded by fg_lock. Serial numbers begin at 1 and go on until the module is unloaded. */
static struct fg_record *fg_ring;
static u64 fg_first = 1;
static u64 fg_next = 1;

int fg_log_init(void)
{
	fg_ring = vzalloc(array_size(fg_log_size, sizeof(*fg_ring)));
	return fg_ring ? 0 : -ENOMEM;
}

void fg_log_exit(void)
{
	vfree(fg_ring);
	fg_ring = NULL;
}

u64 fg_log_locked(struct fg_node *node, enum fg_record_kind kind, u8 command, u64 file_id,
		  struct fg_card *card, u64 arg, int ret)
{
	struct fg_record *record;
	u64 serial;

	lockdep_assert_held(&fg_lock);
	if (!fg_record_on)
		return 0;
	if (node) {
		node->counts[kind]++;
		if (kind == FG_IOCTL || kind == FG_COMPAT_IOCTL)
			node->commands[command]++;
	}

	serial = fg_next++;
	if (fg_next - fg_first > fg_log_size)
		fg_first = fg_next - fg_log_size;
	record = &fg_ring[serial % fg_log_size];
	record->serial = serial;
	record->ns = ktime_get_boottime_ns();
	record->file_id = file_id;
	record->arg = arg;
	record->mem = card && card->index >= 0 ? card->mem_used : fg_mem_total_used;
	record->tgid = task_tgid_nr(current);
	record->tid = task_pid_nr(current);
	record->ret = ret;
	record->kind = kind;
	record->command = command;
	record->node = node ? node - fg_nodes : -1;
	memcpy(record->comm, current->comm, sizeof(record->comm));
	record->comm[sizeof(record->comm) - 1] = '\0';
	return serial;
}

u64 fg_log(struct fg_node *node, enum fg_record_kind kind, struct fg_file *fg, u64 arg, int ret)
{
	u64 serial;

	spin_lock(&fg_lock);
	serial = fg_log_locked(node, kind, 0, fg ? fg->id : 0, node->card, arg, ret);
	spin_unlock(&fg_lock);
	return serial;
}

void fg_log_range(u64 *ret_first, u64 *ret_next)
{
	spin_lock(&fg_lock);
	*ret_first = fg_first;
	*ret_next = fg_next;
	spin_unlock(&fg_lock);
}

bool fg_log_get(u64 serial, struct fg_record *ret)
{
	bool kept;

	spin_lock(&fg_lock);
	kept = serial >= fg_first && serial < fg_next;
	if (kept)
		*ret = fg_ring[serial % fg_log_size];
	spin_unlock(&fg_lock);
	return kept;
}

void fg_log_clear(void)
{
	int i;

	spin_lock(&fg_lock);
	fg_first = fg_next;
	for (i = 0; i < fg_node_count; i++) {
		memset(fg_nodes[i].counts, 0, sizeof(fg_nodes[i].counts));
		memset(fg_nodes[i].commands, 0, sizeof(fg_nodes[i].commands));
	}
	spin_unlock(&fg_lock);
}
