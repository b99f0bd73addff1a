// SPDX-License-Identifier: GPL-2.0-only
/* The commands of fakegpu.h. */
#include <linux/sched.h>
#include <linux/timekeeping.h>
#include <linux/uaccess.h>

#include "fakegpu.h"
#include "fg.h"

union fg_args {
	struct fakegpu_ping ping;
	struct fakegpu_version version;
	struct fakegpu_alloc alloc;
	struct fakegpu_free free;
	struct fakegpu_sleep sleep;
	struct fakegpu_submit submit;
	struct fakegpu_echo echo;
	struct fakegpu_revoke revoke;
	struct fakegpu_doorbell doorbell;
};

static const struct {
	unsigned int cmd;
	const char *name;
} fg_commands[FG_COMMANDS] = {
	{ FAKEGPU_PING, "PING" },	    { FAKEGPU_VERSION, "VERSION" },
	{ FAKEGPU_ALLOC, "ALLOC" },	    { FAKEGPU_FREE, "FREE" },
	{ FAKEGPU_SLEEP, "SLEEP" },	    { FAKEGPU_SUBMIT, "SUBMIT" },
	{ FAKEGPU_WORK_ECHO, "WORK_ECHO" }, { FAKEGPU_REVOKE, "REVOKE" },
	{ FAKEGPU_DOORBELL, "DOORBELL" },
};

const char *fg_command_name(u8 command)
{
	return command < FG_COMMANDS ? fg_commands[command].name : "unknown";
}

/* ---- Sleeping inside the driver. */
static DECLARE_WAIT_QUEUE_HEAD(fg_sleepers);
static unsigned int fg_wakes;

int fg_sleep(unsigned int ms, unsigned int state)
{
	unsigned int wakes = READ_ONCE(fg_wakes);
	unsigned long timeout = msecs_to_jiffies(ms);
	long left;

	if (ms == 0)
		return 0;
	if (state == TASK_INTERRUPTIBLE)
		left = wait_event_interruptible_timeout(fg_sleepers, READ_ONCE(fg_wakes) != wakes,
							timeout);
	else if (state == TASK_KILLABLE)
		left = wait_event_killable_timeout(fg_sleepers, READ_ONCE(fg_wakes) != wakes,
						   timeout);
	else
		left = wait_event_timeout(fg_sleepers, READ_ONCE(fg_wakes) != wakes, timeout);
	return left < 0 ? -EINTR : 0;
}

void fg_wake_all(void)
{
	WRITE_ONCE(fg_wakes, READ_ONCE(fg_wakes) + 1);
	wake_up_all(&fg_sleepers);
}

/* ---- Each command. All return 0 or -errno. */

/* The card that a call means: the node's own, or the one that it names. */
static struct fg_card *fg_card_named(struct fg_file *fg, u32 number)
{
	if (fg->node->kind != FG_NODE_CTL && fg->node->kind != FG_NODE_UVM)
		return fg->node->card;
	return number < fg_cards ? &fg_card_table[number] : NULL;
}

static u64 fg_record(struct fg_file *fg, enum fg_record_kind kind, u8 command, struct fg_card *card,
		     u64 arg, int err)
{
	u64 serial;

	spin_lock(&fg_lock);
	serial = fg_log_locked(fg->node, kind, command, fg->id, card ? card : fg->node->card, arg,
			       err);
	spin_unlock(&fg_lock);
	return serial;
}

static int fg_command_sleep(struct fg_file *fg, enum fg_record_kind kind,
			    const struct fakegpu_sleep *args)
{
	static const unsigned int states[] = {
		[FAKEGPU_SLEEP_INTERRUPTIBLE] = TASK_INTERRUPTIBLE,
		[FAKEGPU_SLEEP_KILLABLE] = TASK_KILLABLE,
		[FAKEGPU_SLEEP_UNINTERRUPTIBLE] = TASK_UNINTERRUPTIBLE,
	};
	struct fg_node *node = fg->node;
	int err = args->kind < ARRAY_SIZE(states) ? 0 : -EINVAL;

	spin_lock(&fg_lock);
	fg_log_locked(node, kind, _IOC_NR(FAKEGPU_SLEEP), fg->id, node->card, args->ms, err);
	if (!err)
		node->asleep_now++;
	spin_unlock(&fg_lock);
	if (err)
		return err;

	err = fg_sleep(args->ms, states[args->kind]);

	spin_lock(&fg_lock);
	node->asleep_now--;
	fg_log_locked(node, FG_WAKE, 0, fg->id, node->card, args->ms, err);
	spin_unlock(&fg_lock);
	return err;
}

static int fg_command_submit(struct fg_file *fg, enum fg_record_kind kind, struct fg_card *card,
			     u32 ms)
{
	spin_lock(&fg_lock);
	if (card) {
		fg->busy_card = card;
		fg->busy_until = ktime_get_boottime_ns() + (u64)ms * NSEC_PER_MSEC;
	}
	fg_log_locked(fg->node, kind, _IOC_NR(FAKEGPU_SUBMIT), fg->id, card ? card : fg->node->card,
		      ms, card ? 0 : -ENODEV);
	spin_unlock(&fg_lock);
	return card ? 0 : -ENODEV;
}

static int fg_command_doorbell(struct fg_file *fg, enum fg_record_kind kind,
			       struct fakegpu_doorbell *args)
{
	struct fg_card *card = fg_card_named(fg, args->card);
	int err = 0;

	if (!card)
		err = -ENODEV;
	else if (args->word >= FG_DOORBELL_WORDS)
		err = -EINVAL;
	else
		args->value = READ_ONCE(card->doorbell[args->word]);
	fg_record(fg, kind, _IOC_NR(FAKEGPU_DOORBELL), card, err ? 0 : args->value, err);
	return err;
}

static int fg_command_run(struct fg_file *fg, enum fg_record_kind kind, u8 command,
			  union fg_args *args)
{
	struct fg_card *card;

	switch (fg_commands[command].cmd) {
	case FAKEGPU_PING:
		args->ping.serial = fg_record(fg, kind, command, NULL, 0, 0);
		return 0;
	case FAKEGPU_VERSION:
		args->version.version = FAKEGPU_API_VERSION;
		args->version.cards = fg_cards;
		fg_record(fg, kind, command, NULL, 0, 0);
		return 0;
	case FAKEGPU_ALLOC:
		card = fg_card_named(fg, args->alloc.card);
		if (card)
			return fg_mem_alloc(fg, card, args->alloc.bytes, &args->alloc.handle, kind);
		fg_record(fg, kind, command, NULL, args->alloc.bytes, -ENODEV);
		return -ENODEV;
	case FAKEGPU_FREE:
		return fg_mem_free(fg, args->free.handle, kind);
	case FAKEGPU_SLEEP:
		return fg_command_sleep(fg, kind, &args->sleep);
	case FAKEGPU_SUBMIT:
		card = fg_card_named(fg, args->submit.card);
		return fg_command_submit(fg, kind, card, args->submit.ms);
	case FAKEGPU_WORK_ECHO:
		args->echo.serial = fg_record(fg, kind, command, NULL, args->echo.token, 0);
		return 0;
	case FAKEGPU_REVOKE:
		card = fg_card_named(fg, args->revoke.card);
		fg_record(fg, kind, command, card, 0, card ? 0 : -ENODEV);
		if (!card)
			return -ENODEV;
		args->revoke.files = fg_revoke(card);
		return 0;
	case FAKEGPU_DOORBELL:
		return fg_command_doorbell(fg, kind, &args->doorbell);
	}
	return -ENOTTY;
}

long fg_command(struct file *file, unsigned int cmd, void __user *arg, enum fg_record_kind kind)
{
	struct fg_file *fg = file->private_data;
	union fg_args args = {};
	u8 command;
	int err;

	for (command = 0; command < FG_COMMANDS; command++)
		if (fg_commands[command].cmd == cmd)
			break;
	if (command == FG_COMMANDS) {
		fg_record(fg, kind, FG_UNKNOWN_COMMAND, NULL, cmd, -ENOTTY);
		return -ENOTTY;
	}
	if ((_IOC_DIR(cmd) & _IOC_WRITE) && copy_from_user(&args, arg, _IOC_SIZE(cmd))) {
		fg_record(fg, kind, command, NULL, 0, -EFAULT);
		return -EFAULT;
	}
	err = fg_command_run(fg, kind, command, &args);
	if (!err && (_IOC_DIR(cmd) & _IOC_READ) && copy_to_user(arg, &args, _IOC_SIZE(cmd)))
		err = -EFAULT;
	return err;
}
