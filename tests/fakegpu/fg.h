/* SPDX-License-Identifier: GPL-2.0-only */
/* What the files of the stand-in card share. */
#ifndef FG_H
#define FG_H

#include <linux/cdev.h>
#include <linux/fs.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/seq_file.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#define FG_MAX_CARDS 64
#define FG_CTL_MINOR 255
/* Pages that a card's mapping may have: the doorbell and others after it. */
#define FG_PAGES_ORDER 4
#define FG_PAGES (1 << FG_PAGES_ORDER)
#define FG_DOORBELL_WORDS ((u32)(PAGE_SIZE / sizeof(u32)))
#define FG_SAMPLES 64

enum fg_record_kind {
	FG_OPEN,
	FG_OPEN_FAIL,
	FG_IOCTL,
	FG_COMPAT_IOCTL,
	FG_MMAP,
	FG_FAULT,
	FG_ACCESS,
	FG_POLL,
	FG_READ,
	FG_WRITE,
	FG_WAKE,
	FG_RELEASE,
	FG_FREE,
	FG_RECORD_KINDS,
};

/* Numbers of ioctl commands, and the one that stands for all that are unknown. */
#define FG_COMMANDS 9
#define FG_UNKNOWN_COMMAND FG_COMMANDS

enum fg_node_kind {
	FG_NODE_CARD,
	FG_NODE_CTL,
	FG_NODE_UVM,
	FG_NODE_OTHER,
	FG_NODE_MISC,
	FG_NODE_FORWARDER,
	FG_NODE_COMPAT,
};

struct fg_sample {
	u64 ns; /* CLOCK_BOOTTIME */
	u32 value;
};

/*
 * A card, or what stands for one behind a node that is none (index -1): it has a page to map too.
 * From mem_used on everything is guarded by fg_lock.
 */
struct fg_card {
	int index;
	char name[16];
	struct fg_node *node;
	struct page *pages;
	u32 *doorbell;
	u64 mem_used;
	/* Allocations of released files, in no order, and what frees them when they are due. */
	struct list_head late;
	struct delayed_work late_work;
	int free_delay_ms; /* -1: what the module parameter says */
	int load_force; /* -1: what the work says */
	bool load_latch; /* a release in the middle of work leaves the load at 100 */
	bool latched;
	u32 load_delay_ms;
	u64 doorbell_seq;
	struct fg_sample samples[FG_SAMPLES];
};

/* A device node. Everything below devt is guarded by fg_lock. */
struct fg_node {
	enum fg_node_kind kind;
	char name[16];
	struct fg_card *card;
	dev_t devt;
	struct device *device;
	u64 counts[FG_RECORD_KINDS];
	u64 commands[FG_COMMANDS + 1];
	u32 open_now;
	u32 asleep_now;
	u32 mappings_now;
};

struct fg_alloc {
	struct list_head list;
	struct fg_card *card;
	u64 bytes;
	u64 file_id;
	u32 handle;
	u64 due; /* ns, CLOCK_BOOTTIME */
};

/* An open file of a node. */
struct fg_file {
	u64 id;
	struct fg_node *node;
	struct file *file;
	struct list_head list;
	/* These are guarded by fg_lock. */
	struct list_head allocs;
	u64 bytes;
	u32 next_handle;
	u64 busy_until; /* work of this file: until when (ns, CLOCK_BOOTTIME), and on which card */
	struct fg_card *busy_card;
	pid_t tgid;
	char comm[TASK_COMM_LEN];
	/* As NVIDIA's driver has it: mappings of one file can be taken away and no others. */
	struct address_space mapping;
};

/* One call as the log keeps it. */
struct fg_record {
	u64 serial;
	u64 ns;
	u64 file_id;
	u64 arg;
	u64 mem;
	u32 tgid;
	u32 tid;
	s32 ret;
	u8 kind;
	u8 command;
	s16 node;
	char comm[TASK_COMM_LEN];
};

/* ---- main.c: parameters, and what is common to all. */
extern unsigned int fg_cards;
extern unsigned int fg_mem_mb;
extern bool fg_misc;
extern bool fg_forwarder;
extern bool fg_shared_mapping;
extern bool fg_nofault;
extern bool fg_private;
extern bool fg_populate;
extern bool fg_open_fail;
extern bool fg_open_hard;
extern bool fg_record_on;
extern unsigned int fg_open_ms;
extern unsigned int fg_close_ms;
extern unsigned int fg_fault_ms;
extern unsigned int fg_free_delay_ms;
extern unsigned int fg_log_size;

/* Guards what the structures above say. The innermost lock of all, never taken in interrupts. */
extern spinlock_t fg_lock;
/* Guards the lists of open files for those who sleep while they walk them. Outside fg_lock. */
extern struct mutex fg_files_mutex;
/* Every open file. Changed under both; who walks it needs one of them. */
extern struct list_head fg_files;

/* ---- node.c: device nodes. */
extern struct fg_node *fg_nodes;
extern int fg_node_count;

/* The node with this device number, or NULL. */
struct fg_node *fg_node_find(dev_t devt);
/* Makes all nodes that the parameters ask for; undone by fg_nodes_exit also after a failure. */
int fg_nodes_init(void);
void fg_nodes_exit(void);
/* No new file can be opened from here on; those that are open stay. */
void fg_nodes_close(void);

/* ---- log.c: what was seen. */
int fg_log_init(void);
void fg_log_exit(void);
/* Each writes one record and returns its number; the second is for holders of fg_lock. */
u64 fg_log(struct fg_node *node, enum fg_record_kind kind, struct fg_file *fg, u64 arg, int ret);
u64 fg_log_locked(struct fg_node *node, enum fg_record_kind kind, u8 command, u64 file_id,
		  struct fg_card *card, u64 arg, int ret);
/* Numbers of the oldest record that is kept and of the next one. */
void fg_log_range(u64 *ret_first, u64 *ret_next);
/* False: that record is not kept (any more). */
bool fg_log_get(u64 serial, struct fg_record *ret);
void fg_log_clear(void);

/* ---- show.c: debugfs. */
void fg_show_init(void);
void fg_show_exit(void);

/* ---- card.c: memory, load, sysfs. */
extern struct fg_card *fg_card_table;
extern u64 fg_mem_total_used; /* of all cards; fg_lock */
/* Behind the nodes that are no cards. */
extern struct fg_card *fg_card_ctl, *fg_card_uvm, *fg_card_other, *fg_card_forwarder;
extern const struct attribute_group *fg_card_groups[];

/* Makes the table, and frees it also after a failure; no file may be open then. */
int fg_cards_init(void);
void fg_cards_exit(void);
/* How busy it is, in percent. Takes fg_lock. */
int fg_card_load(struct fg_card *card);
/* Notes the doorbell's first word if it has changed, and returns it. Holds fg_lock. */
u32 fg_card_sample(struct fg_card *card);
/*
 * Memory for an open file: 0, or -ENOMEM with nothing changed; or free some of it: 0 or -ENOENT.
 * Both take fg_lock and write the call's record (kind: FG_IOCTL or FG_COMPAT_IOCTL) under it.
 */
int fg_mem_alloc(struct fg_file *fg, struct fg_card *card, u64 bytes, u32 *ret_handle,
		 enum fg_record_kind kind);
int fg_mem_free(struct fg_file *fg, u32 handle, enum fg_record_kind kind);
/* What a file that is released still had is freed, now or late. Takes fg_lock. */
void fg_mem_release(struct fg_file *fg);

/* ---- file.c: opening and closing. */
extern const struct file_operations fg_card_fops;
extern const struct file_operations fg_forwarder_fops;
extern const struct file_operations fg_compat_fops;

/* Makes and ends what is kept for an open file of any node, in file->private_data. */
int fg_file_open(struct inode *inode, struct file *file);
void fg_file_release(struct inode *inode, struct file *file);
void fg_files_exit(void);

/* ---- ioctl.c: commands. */
/* What the debugfs files call them. */
const char *fg_command_name(u8 command);
/* Serves one call of either kind (FG_IOCTL, FG_COMPAT_IOCTL). */
long fg_command(struct file *file, unsigned int cmd, void __user *arg, enum fg_record_kind kind);
/* Sleeps up to ms; state is TASK_*. -EINTR if a signal ended it. fg_wake_all ends it too. */
int fg_sleep(unsigned int ms, unsigned int state);
void fg_wake_all(void);

/* ---- mmap.c: mappings. */
int fg_map(struct file *file, struct vm_area_struct *vma);
/* Takes all mappings of a card away, and returns of how many files. May sleep. */
u32 fg_revoke(struct fg_card *card);

/* ---- uvm.c: the node with functions of its own. */
extern const struct file_operations fg_uvm_fops;

#endif
