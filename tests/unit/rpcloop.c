// SPDX-License-Identifier: Apache-2.0
/* In the place of the agent's loop: waits until gRPC's thread has something to say. */
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/xalloc.h"
#include "tests/unit/rpcloop.h"

struct snapshot {
	struct plugin_snapshot base; /* first: it is found by that */
	char *text;
	struct plugin_device devices[16];
};

static atomic_int snapshots;

static void wake(void *arg)
{
	(void)eventfd_write(((struct rpcloop *)arg)->fd, 1);
}

void rpcloop_begin(struct rpcloop *loop)
{
	struct gs_err err = { 0 };

	loop->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	assert_true(loop->fd >= 0);
	if (rpc_new(wake, loop, &loop->rpc, &err) < 0)
		fail_msg("%s", err.msg);
}

void rpcloop_end(struct rpcloop *loop)
{
	assert_int_equal(rpc_free(loop->rpc), 0);
	(void)close(loop->fd);
	assert_int_equal(atomic_load(&snapshots), 0);
}

bool rpcloop_step(struct rpcloop *loop, int fd, int ms)
{
	struct pollfd fds[] = { { .fd = loop->fd, .events = POLLIN },
				{ .fd = fd, .events = POLLIN } };
	eventfd_t n;

	(void)poll(fds, 2, ms);
	if (fds[0].revents) {
		(void)eventfd_read(loop->fd, &n);
		rpc_dispatch(loop->rpc);
	}
	return fds[1].revents != 0;
}

void rpcloop_until(struct rpcloop *loop, const bool *done)
{
	for (int i = 0; !*done; i++) {
		assert_true(i < RPCLOOP_MS / 10);
		(void)rpcloop_step(loop, -1, 10);
	}
}

static void snapshot_free(struct plugin_snapshot *base)
{
	struct snapshot *s = (struct snapshot *)base;

	(void)atomic_fetch_sub(&snapshots, 1);
	free(s->text);
	free(s);
}

struct plugin_snapshot *rpcloop_snapshot(const char *devices)
{
	struct snapshot *s = gs_calloc(1, sizeof(*s));
	char *save = NULL;

	(void)atomic_fetch_add(&snapshots, 1);
	s->text = gs_strdup(devices);
	s->base.devices = s->devices;
	s->base.free = snapshot_free;
	for (char *word = strtok_r(s->text, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		struct plugin_device *device = &s->devices[s->base.n++];
		size_t end = strcspn(word, "!@");

		assert_true(s->base.n <= 16);
		device->id = word;
		device->healthy = word[end] != '!';
		device->numa = word[end] == '@' ? word[end + 1] - '0' : -1;
		word[end] = '\0';
	}
	return &s->base;
}

int rpcloop_snapshots(void)
{
	return atomic_load(&snapshots);
}
