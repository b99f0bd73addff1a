/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * The generic netlink family of gpushare.ko.
 *
 * All commands need CAP_NET_ADMIN and a sender in the initial user, network and PID namespaces. A
 * refusal is a negative errno with an extended-ack message that names what is wrong, and changes
 * nothing. Strings are without line breaks; a name is 1 to GS_NAME_MAX bytes. Times are in
 * milliseconds, instants in nanoseconds of CLOCK_BOOTTIME. A device number is new_encode_dev()'s
 * 32 bits, which is what stat(2) gives for majors and minors that fit (see gs_dev in user space).
 *
 * Growing: new attributes and commands are added at the end and never renumbered; what an older
 * module does not know it refuses (strict validation), so user space asks GS_CMD_STATUS first.
 * GS_ABI_VERSION changes only when an old user space would misread what it is told.
 */
#ifndef _UAPI_GPUSHARE_H
#define _UAPI_GPUSHARE_H

#define GS_GENL_NAME "gpushare"
#define GS_GENL_VERSION 1
#define GS_ABI_VERSION 1

/* The multicast group that carries GS_CMD_EVENT. */
#define GS_MCGRP_EVENTS "events"

#define GS_NAME_MAX 127 /* bytes of a holding's, watch's or driver's name, without the final 0 */
#define GS_NODES_MAX 64 /* device nodes hooked at once, and nodes of one holding */
#define GS_PASSIVE_MAX 32 /* passive ioctl numbers of a node */
#define GS_LINKS_MAX 16 /* holdings of one watch */

/**
 * enum gs_cmd - requests, and the messages that dumps and events are made of
 *
 * @GS_CMD_STATUS: asks for version, features, parameters and totals.
 *	Answer: ABI, MODVERSION, FEATURES, AGENT_*, TOTAL_*, EVENT_SEQ, *_MS.
 * @GS_CMD_HEARTBEAT: the agent is alive. The port that sends it first is the agent until its
 *	socket is closed or it is silent for three seconds; another port's gets -EBUSY.
 * @GS_CMD_HOOK_ADD: FD (an open file of the node), DRIVER, optional PASSIVE, REVOCABLE. Hooks the
 *	functions of that file. The same node again replaces the list of passive calls, and the
 *	flag. -EBUSY when somebody else redirects one of the functions, -EOPNOTSUPP when one can't
 *	be hooked.
 *	Answer: one GS_CMD_NODE.
 * @GS_CMD_HOOK_DEL: DEV. -EBUSY while a holding that needs the node is lent, returning or in
 *	quarantine.
 * @GS_CMD_HOLDING_SET: NAME, DEVS, optional LEND_AFTER_MS, HOLD_MAX_MS, SETTLE_MS. Makes a holding
 *	or changes the times of one, for which DEVS may be left out; its nodes stay (-EEXIST).
 * @GS_CMD_HOLDING_DEL: NAME. -EBUSY while lent or returning, or with borrowers' files open.
 * @GS_CMD_WATCH_SET: NAME, ROLE, and PID with START_TIME (the PID namespace of that process) or
 *	CGROUP_ID with CGROUP_V1 when it is the devices hierarchy's; for a member HOLDINGS, for a
 *	borrower HOLDINGS (its lenders, each LENT) and KILL_ON_RETURN. The same watch again with
 *	more holdings makes a member join them.
 * @GS_CMD_WATCH_DEL: NAME. -EBUSY for a borrower with open files.
 * @GS_CMD_LEND: NAME, SEQ (of the IDLE event). -EAGAIN when a touch came between, -EBUSY while
 *	hooks are being changed, files of earlier borrowers are open, a member's memory is not at
 *	rest, or a mapping of his is somebody else's too or private. The members' mappings of
 *	revocable nodes are taken away: -EOPNOTSUPP where the driver's can't be (no fault function,
 *	one address space for all files).
 * @GS_CMD_WITHDRAW: NAME. Starts the return without a touch.
 * @GS_CMD_RELEASE: NAME, SEQ (of the RETURN event). -ESTALE for another return's number, -EBUSY
 *	while borrowers have files open, success when that very return is over already.
 * @GS_CMD_DUMP: NLM_F_DUMP: every node, holding and watch (GS_CMD_NODE, _HOLDING, _WATCH) and the
 *	link between them; NLM_F_DUMP_INTR when something changed meanwhile.
 * @GS_CMD_EVENT: only sent, to the multicast group.
 * @GS_CMD_NODE: only sent. DEV, DRIVER, FUNCS, MODULE, TOUCHES, PASSIVE, REVOCABLE.
 * @GS_CMD_HOLDING: only sent. NAME, STATE, SINCE, SEQ, DEVS, times, FILES, HELD, LAST_TOUCH,
 *	MAPPINGS, FAULTS.
 * @GS_CMD_WATCH: only sent. NAME, ROLE, PID and PIDNS or CGROUP_ID, HOLDINGS, COUNTS; of a borrower
 *	FILES, KILL_ON_RETURN, REVOKED, KILLED.
 * @GS_CMD_SAMPLE: NAME, SEQ (of the IDLE event). Takes the members' mappings of revocable nodes
 *	away as LEND does, but lends nothing: from now on a store is a touch like any other, and
 *	the holding stays IDLE only while nobody makes one. Refused as LEND is, and with
 *	-EOPNOTSUPP where no node is revocable.
 */
enum gs_cmd {
	GS_CMD_UNSPEC,
	GS_CMD_STATUS,
	GS_CMD_HEARTBEAT,
	GS_CMD_HOOK_ADD,
	GS_CMD_HOOK_DEL,
	GS_CMD_HOLDING_SET,
	GS_CMD_HOLDING_DEL,
	GS_CMD_WATCH_SET,
	GS_CMD_WATCH_DEL,
	GS_CMD_LEND,
	GS_CMD_WITHDRAW,
	GS_CMD_RELEASE,
	GS_CMD_DUMP,
	GS_CMD_EVENT,
	GS_CMD_NODE,
	GS_CMD_HOLDING,
	GS_CMD_WATCH,
	GS_CMD_SAMPLE,
	__GS_CMD_MAX,
};
#define GS_CMD_MAX (__GS_CMD_MAX - 1)

/**
 * enum gs_state - the states of a holding
 *
 * @GS_UNKNOWN: not every node is hooked: silence proves nothing, never lent.
 * @GS_ACTIVE: in use, or not yet silent for lend_after.
 * @GS_IDLE: no touch for lend_after.
 * @GS_LENDING: GS_CMD_LEND is on its way.
 * @GS_LENT: borrowers may be on its cards; a touch is held.
 * @GS_RETURNING: somebody is back; touches are held until the borrowers are gone.
 * @GS_QUARANTINE: the borrowers did not go in time; the user went on.
 */
enum gs_state {
	GS_UNKNOWN,
	GS_ACTIVE,
	GS_IDLE,
	GS_LENDING,
	GS_LENT,
	GS_RETURNING,
	GS_QUARANTINE,
	__GS_STATE_MAX,
};

/**
 * enum gs_cause - why a state changed, or an event was sent
 *
 * @GS_BY_NONE: no cause worth naming.
 * @GS_BY_HOOKED: every node has its hooks.
 * @GS_BY_SILENCE: lend_after is over.
 * @GS_BY_TOUCH: a member touched the card.
 * @GS_BY_LEND: GS_CMD_LEND.
 * @GS_BY_WITHDRAW: GS_CMD_WITHDRAW.
 * @GS_BY_RELEASE: GS_CMD_RELEASE.
 * @GS_BY_DRAINED: the last borrower's last close.
 * @GS_BY_SETTLED: settle_ms after that, with no agent.
 * @GS_BY_HOLD_MAX: hold_max is over.
 * @GS_BY_LOST: a hook is missing, lost or taken away.
 * @GS_BY_UNLOAD: the module is going.
 */
enum gs_cause {
	GS_BY_NONE,
	GS_BY_HOOKED,
	GS_BY_SILENCE,
	GS_BY_TOUCH,
	GS_BY_LEND,
	GS_BY_WITHDRAW,
	GS_BY_RELEASE,
	GS_BY_DRAINED,
	GS_BY_SETTLED,
	GS_BY_HOLD_MAX,
	GS_BY_LOST,
	GS_BY_UNLOAD,
	__GS_CAUSE_MAX,
};

/**
 * enum gs_role - what a watched container is
 *
 * @GS_MEMBER: of the holdings that it names: its touch is theirs.
 * @GS_BORROWER: from the holdings that it names.
 * @GS_EXEMPT: its calls are nobody's touch (a monitor inside a member), unless made in a borrower.
 */
enum gs_role {
	GS_MEMBER,
	GS_BORROWER,
	GS_EXEMPT,
	__GS_ROLE_MAX,
};

/**
 * enum gs_kind - the driver's functions that are hooked; bits of GS_A_FUNCS are 1 << kind
 */
enum gs_kind {
	GS_OPEN,
	GS_RELEASE,
	GS_IOCTL,
	GS_COMPAT_IOCTL,
	GS_MMAP,
	GS_FAULT, /* of a mapping: vm_ops->fault */
	GS_ACCESS, /* of a mapping, by a debugger: vm_ops->access */
	__GS_KIND_MAX,
};

/**
 * enum gs_event - GS_A_EVENT
 *
 * Every event has EVENT, EVENT_SEQ (one more than the one before), TIME and CAUSE.
 *
 * @GS_EV_STATE: holding NAME went from FROM to STATE. To IDLE and to RETURNING, the event's own
 *	EVENT_SEQ is what LEND and RELEASE ask for as SEQ. With CAUSE touch also WATCH, DEV, KIND,
 *	PID, START_TIME and PIDNS of the caller. To LENT also MAPPINGS.
 * @GS_EV_DRAINED: the last file of NAME's borrowers is closed.
 * @GS_EV_REVOKED: borrower WATCH may touch nothing any more; KILLED says that SIGKILL was sent.
 * @GS_EV_RELEASED: held callers of NAME go on: HELD (how many waited), HELD_MS (the longest),
 *	FAULTS.
 * @GS_EV_HOOKED: node DEV has its hooks.
 * @GS_EV_UNHOOKED: node DEV has lost them: CAUSE.
 * @GS_EV_AGENT: AGENT_ALIVE changed.
 * @GS_EV_STOLEN: a file of borrower WATCH was used by a process outside it after the revocation,
 *	and refused (once for each borrower).
 * @GS_EV_LOST: events before this one could not be sent; ask for a dump.
 */
enum gs_event {
	GS_EV_NONE,
	GS_EV_STATE,
	GS_EV_DRAINED,
	GS_EV_REVOKED,
	GS_EV_RELEASED,
	GS_EV_HOOKED,
	GS_EV_UNHOOKED,
	GS_EV_AGENT,
	GS_EV_STOLEN,
	GS_EV_LOST,
	__GS_EV_MAX,
};

/*
 * GS_A_FEATURES: what this kernel lets the module do. A missing one is said by name in the kernel
 * log at load time, and by `gpusharectl kmod status`.
 */
#define GS_F_HOOK_BY_ADDRESS (1 << 0) /* ftrace finds a function by its address */
#define GS_F_HOOK_NO_REGS (1 << 1) /* redirecting needs no full set of registers */
#define GS_F_HOOK_PERMANENT (1 << 2) /* ftrace can't be switched off below a hook */
#define GS_F_IO_WORKER_NS (1 << 3) /* io_uring's workers belong to their container */
#define GS_F_MCAST_CAP (1 << 4) /* the kernel itself guards the multicast group */
#define GS_F_CGROUP_V1 (1 << 5) /* the devices hierarchy of cgroup v1 can be watched */
#define GS_F_FREEZABLE (1 << 6) /* killable waits are freezable */
#define GS_F_IOCTL_COMPAT (1 << 7) /* 32-bit callers exist */
#define GS_F_REVOKE (1 << 8) /* REVOCABLE is known: mappings can be taken away */
#define GS_F_SAMPLE (1 << 9) /* GS_CMD_SAMPLE is known */

/**
 * enum gs_attr - attributes, the same numbers in every command
 *
 * The comment behind each says its type.
 */
enum gs_attr {
	GS_A_UNSPEC,
	GS_A_PAD,
	GS_A_NAME, /* string: of the holding or watch that the command is about */
	GS_A_DRIVER, /* string: the vendor's driver, as the sender calls it; only shown */
	GS_A_FD, /* s32: an open file of the sender */
	GS_A_DEV, /* u32 */
	GS_A_DEVS, /* binary: u32 each */
	GS_A_PASSIVE, /* binary: u32 each, ioctl numbers; the low 16 bits (type, number) count */
	GS_A_FUNCS, /* u32: bits 1 << enum gs_kind */
	GS_A_MODULE, /* string: kernel module of the node's driver; absent for a built-in one */
	GS_A_TOUCHES, /* u64 */
	GS_A_LEND_AFTER_MS, /* u32 */
	GS_A_HOLD_MAX_MS, /* u32 */
	GS_A_SETTLE_MS, /* u32 */
	GS_A_STATE, /* u8: enum gs_state */
	GS_A_FROM, /* u8: enum gs_state */
	GS_A_CAUSE, /* u8: enum gs_cause */
	GS_A_SINCE, /* u64: instant of the last change of state */
	GS_A_LAST_TOUCH, /* u64: instant, within a tick; 0 is never */
	GS_A_SEQ, /* u64: the number that LEND or RELEASE asks for */
	GS_A_FILES, /* u32: borrowers' open files */
	GS_A_HELD, /* u32: callers that are held at that moment */
	GS_A_HELD_MS, /* u32: the longest that one of them was held */
	GS_A_ROLE, /* u8: enum gs_role */
	GS_A_PID, /* u32: in the initial PID namespace */
	GS_A_START_TIME, /* u64: field 22 of /proc/PID/stat, clock ticks */
	GS_A_PIDNS, /* u32: inode number of the PID namespace */
	GS_A_CGROUP_ID, /* u64: inode number of the cgroup's folder */
	GS_A_CGROUP_V1, /* flag: of the devices hierarchy */
	GS_A_HOLDINGS, /* nested: GS_A_NAME each */
	GS_A_KILL_ON_RETURN, /* flag */
	GS_A_REVOKED, /* flag */
	GS_A_KILLED, /* flag */
	GS_A_WATCH, /* string: name of the watch whose process did it */
	GS_A_KIND, /* u8: enum gs_kind */
	GS_A_COUNTS, /* nested: GS_A_COUNT each, for devices with touches */
	GS_A_COUNT, /* nested: GS_A_DEV, GS_A_TOUCHES */
	GS_A_EVENT, /* u8: enum gs_event */
	GS_A_EVENT_SEQ, /* u64: of the event, or of the last one sent */
	GS_A_TIME, /* u64: instant */
	GS_A_ABI, /* u32: GS_ABI_VERSION of the module */
	GS_A_MODVERSION, /* string */
	GS_A_FEATURES, /* u32: GS_F_* */
	GS_A_AGENT_ALIVE, /* u8: 1 or 0 */
	GS_A_AGENT_PORT, /* u32: netlink port of the agent; absent without one */
	GS_A_AGENT_AGE_MS, /* u32: since its last heartbeat */
	GS_A_TOTAL_HELD, /* u64: times that a call was held; again after each signal */
	GS_A_TOTAL_RETURNS, /* u64: returns */
	GS_A_TOTAL_SETTLED, /* u64: released without the agent */
	GS_A_TOTAL_HOLD_MAX, /* u64: released because hold_max was over */
	GS_A_TOTAL_QUARANTINE, /* u64 */
	GS_A_TOTAL_KILLS, /* u64: borrowers killed by the module */
	GS_A_TOTAL_REFUSED, /* u64: calls of revoked borrowers answered with -EIO */
	GS_A_TOTAL_EVENTS_LOST, /* u64: events that could not be sent for want of memory */
	GS_A_REVOCABLE, /* flag: members' mappings of the node may be taken away, and come back */
	GS_A_MAPPINGS, /* u32: mappings that the last LEND or SAMPLE took away */
	GS_A_FAULTS, /* u64: times that one of them was touched since then, and held or told */
	GS_A_TOTAL_MAPPINGS, /* u64 */
	GS_A_TOTAL_FAULTS, /* u64 */
	__GS_A_MAX,
};
#define GS_A_MAX (__GS_A_MAX - 1)

#endif
