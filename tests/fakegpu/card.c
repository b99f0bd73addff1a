// SPDX-License-Identifier: GPL-2.0-only
/* What a card has: memory that belongs to open files and is freed late, load, files in sysfs. */
#include <linux/delay.h>
#include <linux/device.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>

#include "fakegpu.h"
#include "fg.h"

/* In the table behind the cards: those of nodes that are none. */
enum { FG_BEHIND_CTL, FG_BEHIND_UVM, FG_BEHIND_OTHER, FG_BEHIND_FORWARDER, FG_BEHIND };

static const char *const fg_behind_names[FG_BEHIND] = { "ctl", "uvm", "other", "fwd" };

struct fg_card *fg_card_table;
struct fg_card *fg_card_ctl, *fg_card_uvm, *fg_card_other, *fg_card_forwarder;
u64 fg_mem_total_used;
static struct workqueue_struct *fg_workqueue;

static u64 fg_mem_total(void)
{
	return (u64)fg_mem_mb << 20;
}

/* ---- Memory. */
static void fg_mem_add(struct fg_alloc *alloc)
{
	alloc->card->mem_used += alloc->bytes;
	if (alloc->card->index >= 0)
		fg_mem_total_used += alloc->bytes;
}

static void fg_mem_sub(struct fg_alloc *alloc)
{
	alloc->card->mem_used -= alloc->bytes;
	if (alloc->card->index >= 0)
		fg_mem_total_used -= alloc->bytes;
}

int fg_mem_alloc(struct fg_file *fg, struct fg_card *card, u64 bytes, u32 *ret_handle,
		 enum fg_record_kind kind)
{
	struct fg_alloc *alloc = kzalloc(sizeof(*alloc), GFP_KERNEL);
	int err = 0;

	spin_lock(&fg_lock);
	if (!alloc || bytes > fg_mem_total() - card->mem_used) {
		err = -ENOMEM;
	} else {
		alloc->card = card;
		alloc->bytes = bytes;
		alloc->file_id = fg->id;
		alloc->handle = ++fg->next_handle;
		fg_mem_add(alloc);
		fg->bytes += bytes;
		list_add_tail(&alloc->list, &fg->allocs);
		*ret_handle = alloc->handle;
		alloc = NULL;
	}
	fg_log_locked(fg->node, kind, _IOC_NR(FAKEGPU_ALLOC), fg->id, card, bytes, err);
	spin_unlock(&fg_lock);
	kfree(alloc);
	return err;
}

int fg_mem_free(struct fg_file *fg, u32 handle, enum fg_record_kind kind)
{
	struct fg_alloc *alloc, *found = NULL;

	spin_lock(&fg_lock);
	list_for_each_entry(alloc, &fg->allocs, list) {
		if (alloc->handle == handle) {
			found = alloc;
			break;
		}
	}
	if (found) {
		list_del(&found->list);
		fg->bytes -= found->bytes;
		fg_mem_sub(found);
	}
	fg_log_locked(fg->node, kind, _IOC_NR(FAKEGPU_FREE), fg->id,
		      found ? found->card : fg->node->card, handle, found ? 0 : -ENOENT);
	spin_unlock(&fg_lock);
	if (!found)
		return -ENOENT;
	kfree(found);
	return 0;
}

/* Takes it off the card; the caller frees it. Holds fg_lock. */
static void fg_mem_gone(struct fg_alloc *alloc)
{
	fg_mem_sub(alloc);
	fg_log_locked(alloc->card->node, FG_FREE, 0, alloc->file_id, alloc->card, alloc->bytes, 0);
}

/* Lets the work run when the first of the late ones is due. Holds fg_lock. */
static void fg_late_arm(struct fg_card *card, u64 now)
{
	struct fg_alloc *alloc;
	u64 first = U64_MAX;

	list_for_each_entry(alloc, &card->late, list)
		first = min(first, alloc->due);
	if (first != U64_MAX)
		mod_delayed_work(fg_workqueue, &card->late_work,
				 first > now ? nsecs_to_jiffies(first - now) + 1 : 0);
}

static void fg_late_work(struct work_struct *work)
{
	struct fg_card *card = container_of(work, struct fg_card, late_work.work);
	struct fg_alloc *alloc, *next;
	LIST_HEAD(gone);
	u64 now;

	spin_lock(&fg_lock);
	now = ktime_get_boottime_ns();
	list_for_each_entry_safe(alloc, next, &card->late, list) {
		if (alloc->due > now)
			continue;
		fg_mem_gone(alloc);
		list_move_tail(&alloc->list, &gone);
	}
	fg_late_arm(card, now);
	spin_unlock(&fg_lock);

	list_for_each_entry_safe(alloc, next, &gone, list)
		kfree(alloc);
}

void fg_mem_release(struct fg_file *fg)
{
	struct fg_alloc *alloc, *next;
	LIST_HEAD(gone);
	u64 now;
	u32 delay;

	spin_lock(&fg_lock);
	now = ktime_get_boottime_ns();
	list_for_each_entry_safe(alloc, next, &fg->allocs, list) {
		delay = alloc->card->free_delay_ms >= 0 ? alloc->card->free_delay_ms :
							  READ_ONCE(fg_free_delay_ms);
		if (delay == 0) {
			fg_mem_gone(alloc);
			list_move_tail(&alloc->list, &gone);
			continue;
		}
		alloc->due = now + (u64)delay * NSEC_PER_MSEC;
		list_move_tail(&alloc->list, &alloc->card->late);
		fg_late_arm(alloc->card, now);
	}
	spin_unlock(&fg_lock);

	list_for_each_entry_safe(alloc, next, &gone, list)
		kfree(alloc);
}

/* ---- Load and doorbell. */
int fg_card_load(struct fg_card *card)
{
	struct fg_file *fg;
	int load = 0;
	u64 now;

	spin_lock(&fg_lock);
	now = ktime_get_boottime_ns();
	list_for_each_entry(fg, &fg_files, list)
		if (fg->busy_card == card && fg->busy_until > now)
			load = 100;
	if (card->latched)
		load = 100;
	if (card->load_force >= 0)
		load = card->load_force;
	spin_unlock(&fg_lock);
	return load;
}

u32 fg_card_sample(struct fg_card *card)
{
	struct fg_sample *last = &card->samples[card->doorbell_seq % FG_SAMPLES];
	u32 value = READ_ONCE(card->doorbell[0]);

	lockdep_assert_held(&fg_lock);
	if (value == last->value)
		return value;
	card->doorbell_seq++;
	last = &card->samples[card->doorbell_seq % FG_SAMPLES];
	last->value = value;
	last->ns = ktime_get_boottime_ns();
	return value;
}

/* ---- sysfs: /sys/class/fakegpu/fakegpuN/. */
static struct fg_card *fg_card_of(struct device *dev)
{
	struct fg_node *node = dev_get_drvdata(dev);

	return node->card;
}

static ssize_t load_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	struct fg_card *card = fg_card_of(dev);
	u32 delay = READ_ONCE(card->load_delay_ms);

	if (delay)
		msleep(delay);
	return sysfs_emit(buf, "%d\n", fg_card_load(card));
}
static DEVICE_ATTR_RO(load);

static ssize_t load_force_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%d\n", READ_ONCE(fg_card_of(dev)->load_force));
}

static ssize_t load_force_store(struct device *dev, struct device_attribute *attr, const char *buf,
				size_t count)
{
	int value, err = kstrtoint(buf, 0, &value);

	if (err)
		return err;
	if (value < -1 || value > 100)
		return -EINVAL;
	WRITE_ONCE(fg_card_of(dev)->load_force, value);
	return count;
}
static DEVICE_ATTR_RW(load_force);

static ssize_t load_latch_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%d\n", READ_ONCE(fg_card_of(dev)->load_latch));
}

static ssize_t load_latch_store(struct device *dev, struct device_attribute *attr, const char *buf,
				size_t count)
{
	struct fg_card *card = fg_card_of(dev);
	bool value;
	int err = kstrtobool(buf, &value);

	if (err)
		return err;
	spin_lock(&fg_lock);
	card->load_latch = value;
	card->latched = false;
	spin_unlock(&fg_lock);
	return count;
}
static DEVICE_ATTR_RW(load_latch);

static ssize_t load_delay_ms_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u\n", READ_ONCE(fg_card_of(dev)->load_delay_ms));
}

static ssize_t load_delay_ms_store(struct device *dev, struct device_attribute *attr,
				   const char *buf, size_t count)
{
	u32 value;
	int err = kstrtou32(buf, 0, &value);

	if (err)
		return err;
	WRITE_ONCE(fg_card_of(dev)->load_delay_ms, value);
	return count;
}
static DEVICE_ATTR_RW(load_delay_ms);

static ssize_t free_delay_ms_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%d\n", READ_ONCE(fg_card_of(dev)->free_delay_ms));
}

static ssize_t free_delay_ms_store(struct device *dev, struct device_attribute *attr,
				   const char *buf, size_t count)
{
	int value, err = kstrtoint(buf, 0, &value);

	if (err)
		return err;
	if (value < -1)
		return -EINVAL;
	WRITE_ONCE(fg_card_of(dev)->free_delay_ms, value);
	return count;
}
static DEVICE_ATTR_RW(free_delay_ms);

static ssize_t mem_used_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	struct fg_card *card = fg_card_of(dev);
	u64 used;

	spin_lock(&fg_lock);
	used = card->mem_used;
	spin_unlock(&fg_lock);
	return sysfs_emit(buf, "%llu\n", used);
}
static DEVICE_ATTR_RO(mem_used);

static ssize_t mem_total_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%llu\n", fg_mem_total());
}
static DEVICE_ATTR_RO(mem_total);

static ssize_t uuid_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "FGPU-f4ce0000-0000-4000-8000-%012x\n", fg_card_of(dev)->index);
}
static DEVICE_ATTR_RO(uuid);

static ssize_t index_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%d\n", fg_card_of(dev)->index);
}
static DEVICE_ATTR_RO(index);

static struct attribute *fg_card_attrs[] = {
	&dev_attr_load.attr,	      &dev_attr_load_force.attr,
	&dev_attr_load_latch.attr,    &dev_attr_load_delay_ms.attr,
	&dev_attr_mem_used.attr,      &dev_attr_mem_total.attr,
	&dev_attr_free_delay_ms.attr, &dev_attr_uuid.attr,
	&dev_attr_index.attr,	      NULL,
};

static const struct attribute_group fg_card_group = {
	.attrs = fg_card_attrs,
};

const struct attribute_group *fg_card_groups[] = { &fg_card_group, NULL };

/* ---- Making and unmaking. */
static int fg_card_init(struct fg_card *card, int index, const char *name)
{
	card->index = index;
	if (index >= 0)
		snprintf(card->name, sizeof(card->name), "%d", index);
	else
		strscpy(card->name, name, sizeof(card->name));
	INIT_LIST_HEAD(&card->late);
	INIT_DELAYED_WORK(&card->late_work, fg_late_work);
	card->free_delay_ms = -1;
	card->load_force = -1;
	/* One block: a mapping without a fault function is made of it at one go. */
	card->pages = alloc_pages(GFP_KERNEL | __GFP_ZERO, FG_PAGES_ORDER);
	if (!card->pages)
		return -ENOMEM;
	card->doorbell = page_address(card->pages);
	return 0;
}

int fg_cards_init(void)
{
	int i, err;

	fg_workqueue = alloc_workqueue("fakegpu", WQ_UNBOUND, 0);
	if (!fg_workqueue)
		return -ENOMEM;
	fg_card_table = kcalloc(fg_cards + FG_BEHIND, sizeof(*fg_card_table), GFP_KERNEL);
	if (!fg_card_table)
		return -ENOMEM;
	for (i = 0; i < fg_cards + FG_BEHIND; i++) {
		err = fg_card_init(&fg_card_table[i], i < fg_cards ? i : -1,
				   i < fg_cards ? NULL : fg_behind_names[i - fg_cards]);
		if (err)
			return err;
	}
	fg_card_ctl = &fg_card_table[fg_cards + FG_BEHIND_CTL];
	fg_card_uvm = &fg_card_table[fg_cards + FG_BEHIND_UVM];
	fg_card_other = &fg_card_table[fg_cards + FG_BEHIND_OTHER];
	fg_card_forwarder = &fg_card_table[fg_cards + FG_BEHIND_FORWARDER];
	return 0;
}

void fg_cards_exit(void)
{
	struct fg_alloc *alloc, *next;
	struct fg_card *card;
	int i;

	for (i = 0; fg_card_table && i < fg_cards + FG_BEHIND; i++) {
		card = &fg_card_table[i];
		if (!card->pages)
			break;
		cancel_delayed_work_sync(&card->late_work);
		list_for_each_entry_safe(alloc, next, &card->late, list)
			kfree(alloc);
		__free_pages(card->pages, FG_PAGES_ORDER);
	}
	kfree(fg_card_table);
	fg_card_table = NULL;
	if (fg_workqueue)
		destroy_workqueue(fg_workqueue);
	fg_workqueue = NULL;
}
