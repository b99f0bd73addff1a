// SPDX-License-Identifier: Apache-2.0
/* Listening to the kernel module, and staying its agent. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/kernel.h"
#include "common/kevent.h"
#include "common/xalloc.h"

/* The module takes an agent that was silent for three seconds for dead. */
#define BEAT_MS 1000

/* Two thousand events wait here while the loop is at something long. */
#define EVENT_BUFFER (1024 * 1024)

/* Events handled in one turn of the loop: sockets and timers are to have theirs, too. */
#define EVENTS_A_TURN 256

/* What kernel_rest() waits; the timer's own grain is a millisecond. */
#define REST_MS 1

struct kernel {
	struct kernel_ops ops;
	struct gs_kevents *events;
	struct gs_klink *link;
	uv_poll_t poll;
	uv_timer_t beat, rest;
	bool resting;
	unsigned int open_handles;
};

static void trouble(struct kernel *k, const struct gs_err *err)
{
	k->ops.trouble(err->msg, k->ops.arg);
}

/* Opens the link if the module is there, and tells the world to ask it everything. */
static void open_link(struct kernel *k)
{
	struct gs_err err = { 0 };
	int r = gs_klink_open(&k->link, &err);

	if (r == -ENOENT)
		return;
	if (r == 0)
		r = gs_klink_heartbeat(k->link, &err);
	if (r < 0) {
		gs_klink_close(k->link);
		k->link = NULL;
		trouble(k, &err);
		return;
	}
	k->ops.resync(k->ops.arg);
}

static void close_link(struct kernel *k)
{
	if (!k->link)
		return;
	gs_klink_close(k->link);
	k->link = NULL;
	k->ops.gone(k->ops.arg);
}

static void on_beat(uv_timer_t *timer)
{
	struct kernel *k = timer->data;
	struct gs_err err = { 0 };

	if (!k->link) {
		open_link(k);
		return;
	}
	if (gs_klink_heartbeat(k->link, &err) == 0)
		return;
	if (!gs_klink_loaded(k->link))
		close_link(k);
	else
		trouble(k, &err);
}

/* One event; false: none is there. */
static bool take_event(struct kernel *k)
{
	enum gs_kevent_what what = GS_KEVENT_NONE;
	struct gs_err err = { 0 };
	struct gs_kevent event;
	int r = gs_kevent_next(k->events, 0, &what, &event, &err);

	if (r < 0) {
		if (r != -EINTR)
			trouble(k, &err);
		return r == -EINTR || r == -EPROTO;
	}
	switch (what) {
	case GS_KEVENT_GOT:
		if (k->link)
			k->ops.event(&event, k->ops.arg);
		break;
	case GS_KEVENT_LOST:
		if (k->link)
			k->ops.resync(k->ops.arg);
		break;
	case GS_KEVENT_LOADED:
		close_link(k); /* an unload that was not seen */
		open_link(k);
		break;
	case GS_KEVENT_UNLOADED:
		close_link(k);
		break;
	default:
		return false;
	}
	return true;
}

static void on_rested(uv_timer_t *timer);

static void on_events(uv_poll_t *poll, int status, int mask)
{
	struct kernel *k = poll->data;

	(void)mask;
	/* events were lost (ENOBUFS): libuv takes that for the socket's end, and looks no more */
	if (status < 0 && !k->resting)
		(void)uv_poll_start(&k->poll, UV_READABLE, on_events);
	for (unsigned int i = 0; i < EVENTS_A_TURN && !k->resting; i++)
		if (!take_event(k))
			return;
	/* a packet that was read may hold more of them, for which the socket wakes nobody */
	if (!k->resting)
		(void)uv_timer_start(&k->rest, on_rested, 0, 0);
}

static void on_rested(uv_timer_t *timer)
{
	struct kernel *k = timer->data;

	k->resting = false;
	(void)uv_poll_start(&k->poll, UV_READABLE, on_events);
	on_events(&k->poll, 0, UV_READABLE);
}

void kernel_rest(struct kernel *kernel)
{
	kernel->resting = true;
	(void)uv_poll_stop(&kernel->poll);
	(void)uv_timer_start(&kernel->rest, on_rested, REST_MS, 0);
}

int kernel_new(uv_loop_t *loop, const struct kernel_ops *ops, struct kernel **ret,
	       struct gs_err *err)
{
	struct kernel *k = gs_calloc(1, sizeof(*k));
	int r = gs_kevents_open(EVENT_BUFFER, &k->events, err);

	if (r == 0)
		r = uv_poll_init(loop, &k->poll, gs_kevents_fd(k->events));
	if (r < 0) {
		if (k->events)
			gs_err_set(err, -r, "watch netlink: %s", uv_strerror(r));
		gs_kevents_close(k->events);
		free(k);
		return r;
	}
	k->ops = *ops;
	k->open_handles = 3;
	k->poll.data = k->beat.data = k->rest.data = k;
	(void)uv_timer_init(loop, &k->beat);
	(void)uv_timer_init(loop, &k->rest);
	(void)uv_poll_start(&k->poll, UV_READABLE, on_events);
	(void)uv_timer_start(&k->beat, on_beat, 0, BEAT_MS);
	*ret = k;
	return 0;
}

static void on_close(uv_handle_t *handle)
{
	struct kernel *k = handle->data;

	if (--k->open_handles)
		return;
	gs_kevents_close(k->events);
	gs_klink_close(k->link);
	free(k);
}

void kernel_free(struct kernel *kernel)
{
	if (!kernel)
		return;
	uv_close((uv_handle_t *)&kernel->poll, on_close);
	uv_close((uv_handle_t *)&kernel->beat, on_close);
	uv_close((uv_handle_t *)&kernel->rest, on_close);
}

struct gs_klink *kernel_link(struct kernel *kernel)
{
	return kernel->link;
}
