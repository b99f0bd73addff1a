// SPDX-License-Identifier: Apache-2.0
/* Listening to the kernel module's events. */
#include <errno.h>
#include <linux/genetlink.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "common/cleanup.h"
#include "common/kevent.h"
#include "common/klink.h"
#include "common/knl.h"
#include "common/proc.h"
#include "common/xalloc.h"

#define BUFFER_DEFAULT (1024 * 1024)

/* The controller tells there which families come and go. */
#define NOTICES "notify"

struct gs_kevents {
	struct gs_knl nl;
	const struct nlmsghdr *next; /* unread messages in nl.buf */
	int left; /* their length */
	uint16_t family; /* 0: not loaded */
	bool overrun; /* the kernel dropped some, and has not seen the buffer empty since */
	uint64_t last; /* the number of the newest event seen, or that was before us */
};

static int join(struct gs_kevents *events, uint32_t group, struct gs_err *err)
{
	int n = (int)group;

	if (mnl_socket_setsockopt(events->nl.sock, NETLINK_ADD_MEMBERSHIP, &n, sizeof(n)) == 0)
		return 0;
	if (errno == EPERM)
		return gs_err_set(err, EPERM,
				  "to listen to kernel module gpushare needs CAP_NET_ADMIN in the "
				  "initial user namespace");
	return gs_err_errno(err, errno, "listen to kernel module gpushare");
}

/*
 * Looks for the module and joins its group; where there is none, that is success too. First join,
 * then ask for the last event's number: an event in between has a smaller number and is not missed.
 * Asking takes a socket of its own, for answers would wait behind events in this one.
 */
static int subscribe(struct gs_kevents *events, struct gs_err *err)
{
	cleanup_klink struct gs_klink *link = NULL;
	struct gs_kstatus status = { 0 };
	struct gs_kfamily family;
	struct gs_knl ask = { 0 };
	int r;

	events->family = 0;
	r = gs_knl_open(&ask, 0, err);
	if (r < 0)
		return r;
	r = gs_knl_family(&ask, GS_GENL_NAME, GS_MCGRP_EVENTS, &family, err);
	gs_knl_close(&ask);
	if (r == -ENOENT)
		return 0;
	if (r == 0 && !family.group)
		return gs_err_set(err, EPROTO, "kernel module gpushare has no group \"%s\"",
				  GS_MCGRP_EVENTS);
	if (r == 0)
		r = join(events, family.group, err);
	if (r == 0)
		r = gs_klink_open(&link, err);
	if (r == 0)
		r = gs_klink_status(link, &status, err);
	/* Unloaded since: its notice is on the way. */
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	events->family = family.id;
	events->last = status.event_seq;
	return 0;
}

static int join_notices(struct gs_kevents *events, struct gs_err *err)
{
	struct gs_kfamily family;
	struct gs_knl ask = { 0 };
	int r = gs_knl_open(&ask, 0, err);

	if (r < 0)
		return r;
	r = gs_knl_family(&ask, "nlctrl", NOTICES, &family, err);
	gs_knl_close(&ask);
	if (r < 0)
		return gs_err_prefix(err, "look for generic netlink's notices");
	return join(events, family.group, err);
}

int gs_kevents_open(size_t buffer, struct gs_kevents **ret, struct gs_err *err)
{
	cleanup_kevents struct gs_kevents *events = gs_calloc(1, sizeof(*events));
	int size = (int)(buffer ? buffer : BUFFER_DEFAULT);
	struct gs_err own = { 0 };
	int r;

	err = err ? err : &own;
	r = gs_knl_open(&events->nl, SOCK_NONBLOCK, err);
	if (r < 0)
		return r;
	/* Without CAP_NET_ADMIN the size stays what it is, and listening is refused below. */
	(void)setsockopt(gs_kevents_fd(events), SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size));
	r = join_notices(events, err);
	if (r == 0)
		r = subscribe(events, err);
	if (r == 0)
		*ret = gs_steal(events);
	return r;
}

void gs_kevents_close(struct gs_kevents *events)
{
	if (!events)
		return;
	gs_knl_close(&events->nl);
	free(events);
}

int gs_kevents_fd(const struct gs_kevents *events)
{
	return mnl_socket_get_fd(events->nl.sock);
}

bool gs_kevents_loaded(const struct gs_kevents *events)
{
	return events->family != 0;
}

/*
 * Anything may be missing now, also the notice of another module: the membership of a family ends
 * with it, and its number changes.
 */
static int lost(struct gs_kevents *events, enum gs_kevent_what *ret_what, struct gs_err *err)
{
	uint16_t before = events->family;
	int r = subscribe(events, err);

	if (r < 0)
		return r;
	if (events->family == before)
		*ret_what = before ? GS_KEVENT_LOST : GS_KEVENT_NONE;
	else
		*ret_what = events->family ? GS_KEVENT_LOADED : GS_KEVENT_UNLOADED;
	return 0;
}

/*
 * A notice may be older than the subscription that already knows what it says, so numbers count: in
 * the queue of a listener that lost some, the old module's end may stand although the new one was
 * found.
 */
static int take_notice(struct gs_kevents *events, int cmd, uint16_t id,
		       enum gs_kevent_what *ret_what, struct gs_err *err)
{
	int r;

	if (cmd == CTRL_CMD_DELFAMILY && id == events->family) {
		events->family = 0;
		*ret_what = GS_KEVENT_UNLOADED;
	}
	if (cmd == CTRL_CMD_DELFAMILY || id == events->family)
		return 0;
	r = subscribe(events, err);
	if (events->family)
		*ret_what = GS_KEVENT_LOADED;
	return r;
}

/* Takes the message that is next. */
static int take_event(struct gs_kevents *events, const struct nlmsghdr *nlh,
		      enum gs_kevent_what *ret_what, struct gs_kevent *ret, struct gs_err *err)
{
	struct gs_kevent event;

	if (gs_kmsg_cmd(nlh) != GS_CMD_EVENT)
		return 0;
	if (gs_kmsg_event(nlh, &event, err) < 0)
		return -EPROTO;
	if (event.event_seq > events->last + 1) {
		/* Say so first; the event itself comes with the next call. */
		events->last = event.event_seq - 1;
		*ret_what = GS_KEVENT_LOST;
		return 0;
	}
	if (event.event_seq > events->last)
		events->last = event.event_seq;
	*ret = event;
	*ret_what = GS_KEVENT_GOT;
	return 0;
}

/* Works off the messages that were received until one of them is worth telling. */
static int take_received(struct gs_kevents *events, enum gs_kevent_what *ret_what,
			 struct gs_kevent *ret, struct gs_err *err)
{
	*ret_what = GS_KEVENT_NONE;
	while (*ret_what == GS_KEVENT_NONE && mnl_nlmsg_ok(events->next, events->left)) {
		const struct nlmsghdr *nlh = events->next;
		uint16_t id = 0;
		int cmd = gs_knl_notice(nlh, GS_GENL_NAME, &id), r = 0;

		if (cmd)
			r = take_notice(events, cmd, id, ret_what, err);
		else if (events->family && nlh->nlmsg_type == events->family)
			r = take_event(events, nlh, ret_what, ret, err);
		if (*ret_what != GS_KEVENT_LOST)
			events->next = mnl_nlmsg_next(nlh, &events->left);
		if (r < 0)
			return r;
	}
	return 0;
}

static int receive(struct gs_kevents *events, struct gs_err *err)
{
	size_t len = 0;
	int r = gs_knl_recv(&events->nl, &len, err);

	events->next = (const void *)events->nl.buf;
	events->left = r == 0 ? (int)len : 0;
	return r;
}

/* Waits for the descriptor until CLOCK_BOOTTIME @deadline_ms; -EAGAIN: nothing came. */
static int wait_until(const struct gs_kevents *events, bool endless, uint64_t deadline_ms,
		      struct gs_err *err)
{
	struct pollfd pfd = { .fd = gs_kevents_fd(events), .events = POLLIN };
	uint64_t now = gs_boottime_ms(), rest = deadline_ms > now ? deadline_ms - now : 0;
	int n = poll(&pfd, 1, endless ? -1 : (int)rest);

	if (n < 0)
		return gs_err_errno(err, errno, "wait for kernel module gpushare");
	return n == 0 ? -EAGAIN : 0;
}

int gs_kevent_next(struct gs_kevents *events, int timeout_ms, enum gs_kevent_what *ret_what,
		   struct gs_kevent *ret, struct gs_err *err)
{
	uint64_t deadline = gs_boottime_ms() + (uint64_t)(timeout_ms > 0 ? timeout_ms : 0);
	struct gs_err own = { 0 };

	err = err ? err : &own;
	for (;;) {
		int r = take_received(events, ret_what, ret, err);

		if (r < 0 || *ret_what != GS_KEVENT_NONE)
			return r;
		r = receive(events, err);
		/*
		 * The kernel tells that it drops messages once, and not again until the buffer was
		 * empty. So when it is, what was dropped since is lost as well.
		 */
		if (r == -ENOBUFS || (r == -EAGAIN && events->overrun)) {
			events->overrun = r == -ENOBUFS;
			r = lost(events, ret_what, err);
			if (r < 0 || *ret_what != GS_KEVENT_NONE)
				return r;
		}
		if (r == -EAGAIN) {
			r = wait_until(events, timeout_ms < 0, deadline, err);
			if (r == -EAGAIN)
				return 0;
		}
		/* Too large to be one of ours that we know. */
		if (r < 0 && r != -EMSGSIZE)
			return r;
	}
}
