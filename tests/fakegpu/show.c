// SPDX-License-Identifier: GPL-2.0-only
/* /sys/kernel/debug/fakegpu/: what the driver saw, for tests to read. */
#include <linux/ctype.h>
#include <linux/debugfs.h>
#include <linux/module.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

#include "fakegpu.h"
#include "fg.h"

static struct dentry *fg_dir;

static const char *const fg_kind_names[FG_RECORD_KINDS] = {
	[FG_OPEN] = "open",	[FG_OPEN_FAIL] = "open-fail",
	[FG_IOCTL] = "ioctl",	[FG_COMPAT_IOCTL] = "compat-ioctl",
	[FG_MMAP] = "mmap",	[FG_FAULT] = "fault",
	[FG_ACCESS] = "access", [FG_POLL] = "poll",
	[FG_READ] = "read",	[FG_WRITE] = "write",
	[FG_WAKE] = "wake",	[FG_RELEASE] = "release",
	[FG_FREE] = "free",
};

/* A program's name as one word. */
static void fg_show_comm(struct seq_file *seq, const char *comm)
{
	for (; *comm; comm++)
		seq_putc(seq, isgraph(*comm) && isascii(*comm) ? *comm : '?');
}

/* ---- log: the position in the file is the serial number. */
static void *fg_log_start(struct seq_file *seq, loff_t *pos)
{
	u64 first, next;

	fg_log_range(&first, &next);
	if (*pos < first)
		*pos = first;
	return *pos < next ? pos : NULL;
}

static void *fg_log_step(struct seq_file *seq, void *at, loff_t *pos)
{
	++*pos;
	return fg_log_start(seq, pos);
}

static void fg_log_stop(struct seq_file *seq, void *at)
{
}

static const char *fg_record_name(const struct fg_record *record)
{
	switch (record->kind) {
	case FG_IOCTL:
	case FG_COMPAT_IOCTL:
		return fg_command_name(record->command);
	case FG_FAULT:
	case FG_ACCESS:
		return record->command ? "write" : "read";
	}
	return "-";
}

static int fg_log_show(struct seq_file *seq, void *at)
{
	struct fg_record record;

	/* Overwritten since: a gap in the serial numbers. */
	if (!fg_log_get(*(loff_t *)at, &record))
		return SEQ_SKIP;
	seq_printf(seq,
		   "serial=%llu ns=%llu kind=%s name=%s dev=%s tgid=%u tid=%u comm=", record.serial,
		   record.ns, fg_kind_names[record.kind], fg_record_name(&record),
		   record.node >= 0 ? fg_nodes[record.node].name : "-", record.tgid, record.tid);
	fg_show_comm(seq, record.comm);
	seq_printf(seq, " file=%llu arg=0x%llx mem=%llu ret=%d\n", record.file_id, record.arg,
		   record.mem, record.ret);
	return 0;
}

static const struct seq_operations fg_log_sops = {
	.start = fg_log_start,
	.next = fg_log_step,
	.stop = fg_log_stop,
	.show = fg_log_show,
};
DEFINE_SEQ_ATTRIBUTE(fg_log);

/* ---- stats: a line for each node, each card, and the log. */
static int fg_stats_show(struct seq_file *seq, void *unused)
{
	struct fg_node *copy;
	struct fg_alloc *alloc;
	struct fg_card *card;
	u64 first, next, used, late;
	int i, j;

	copy = kmalloc(sizeof(*copy), GFP_KERNEL);
	if (!copy)
		return -ENOMEM;
	for (i = 0; i < fg_node_count; i++) {
		spin_lock(&fg_lock);
		*copy = fg_nodes[i];
		spin_unlock(&fg_lock);
		seq_printf(seq, "dev=%s number=%u:%u open_now=%u asleep_now=%u mappings_now=%u",
			   copy->name, MAJOR(copy->devt), MINOR(copy->devt), copy->open_now,
			   copy->asleep_now, copy->mappings_now);
		for (j = 0; j < FG_RECORD_KINDS; j++)
			seq_printf(seq, " %s=%llu", fg_kind_names[j], copy->counts[j]);
		for (j = 0; j <= FG_COMMANDS; j++)
			seq_printf(seq, " %s=%llu", fg_command_name(j), copy->commands[j]);
		seq_putc(seq, '\n');
	}
	kfree(copy);

	for (i = 0; i < fg_cards; i++) {
		card = &fg_card_table[i];
		late = 0;
		spin_lock(&fg_lock);
		used = card->mem_used;
		list_for_each_entry(alloc, &card->late, list)
			late += alloc->bytes;
		spin_unlock(&fg_lock);
		seq_printf(seq, "card=%s mem_used=%llu mem_late=%llu mem_total=%llu load=%d\n",
			   card->name, used, late, (u64)fg_mem_mb << 20, fg_card_load(card));
	}
	fg_log_range(&first, &next);
	seq_printf(seq, "log first=%llu next=%llu size=%u\n", first, next, fg_log_size);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(fg_stats);

/* ---- files: a line for each open file. */
static int fg_files_show(struct seq_file *seq, void *unused)
{
	struct fg_file *fg;
	u64 bytes;

	mutex_lock(&fg_files_mutex);
	list_for_each_entry(fg, &fg_files, list) {
		spin_lock(&fg_lock);
		bytes = fg->bytes;
		spin_unlock(&fg_lock);
		seq_printf(seq, "file=%llu dev=%s tgid=%d bytes=%llu comm=", fg->id, fg->node->name,
			   fg->tgid, bytes);
		fg_show_comm(seq, fg->comm);
		seq_putc(seq, '\n');
	}
	mutex_unlock(&fg_files_mutex);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(fg_files);

/* ---- doorbells: each card's first page, and what its first word has been. */
static int fg_doorbells_show(struct seq_file *seq, void *unused)
{
	struct fg_sample sample;
	struct fg_card *card;
	u64 seq_now, j;
	u32 word, value;
	int i;

	for (i = 0; i < fg_cards; i++) {
		card = &fg_card_table[i];
		spin_lock(&fg_lock);
		value = fg_card_sample(card);
		seq_now = card->doorbell_seq;
		spin_unlock(&fg_lock);
		seq_printf(seq, "card=%s doorbell=0x%x doorbell_seq=%llu\n", card->name, value,
			   seq_now);
		for (word = 1; word < FG_DOORBELL_WORDS; word++) {
			value = READ_ONCE(card->doorbell[word]);
			if (value)
				seq_printf(seq, "card=%s word=%u value=0x%x\n", card->name, word,
					   value);
		}
		for (j = seq_now > FG_SAMPLES ? seq_now - FG_SAMPLES + 1 : 1; j <= seq_now; j++) {
			spin_lock(&fg_lock);
			sample = card->samples[j % FG_SAMPLES];
			spin_unlock(&fg_lock);
			seq_printf(seq, "card=%s sample=%llu ns=%llu value=0x%x\n", card->name, j,
				   sample.ns, sample.value);
		}
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(fg_doorbells);

/* ---- clear and wake: written to with anything. */
static ssize_t fg_clear_write(struct file *file, const char __user *buf, size_t count, loff_t *pos)
{
	fg_log_clear();
	return count;
}

static const struct file_operations fg_clear_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = fg_clear_write,
};

static ssize_t fg_wake_write(struct file *file, const char __user *buf, size_t count, loff_t *pos)
{
	fg_wake_all();
	return count;
}

static const struct file_operations fg_wake_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = fg_wake_write,
};

void fg_show_init(void)
{
	fg_dir = debugfs_create_dir("fakegpu", NULL);
	debugfs_create_file("log", 0400, fg_dir, NULL, &fg_log_fops);
	debugfs_create_file("stats", 0400, fg_dir, NULL, &fg_stats_fops);
	debugfs_create_file("files", 0400, fg_dir, NULL, &fg_files_fops);
	debugfs_create_file("doorbells", 0400, fg_dir, NULL, &fg_doorbells_fops);
	debugfs_create_file("clear", 0200, fg_dir, NULL, &fg_clear_fops);
	debugfs_create_file("wake", 0200, fg_dir, NULL, &fg_wake_fops);
}

void fg_show_exit(void)
{
	debugfs_remove_recursive(fg_dir);
	fg_dir = NULL;
}
