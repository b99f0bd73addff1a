// SPDX-License-Identifier: Apache-2.0
/*
 * Tells when a device node comes or goes. By inotify itself and not by libuv's uv_fs_event, whose
 * mask has IN_MODIFY: the loop would wake at every write to /dev/null by anybody.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "agent/node_watch.h"
#include "agent/probe.h"
#include "common/cleanup.h"
#include "common/glob.h"
#include "common/xalloc.h"

#define EVENTS (IN_CREATE | IN_DELETE | IN_MOVED_TO | IN_MOVED_FROM | IN_ONLYDIR)
#define FIRST_MS 300
#define AGAIN_MS 3000

struct node_watch {
	uv_poll_t poll;
	uv_timer_t timer;
	unsigned int open; /* handles not closed yet */
	int fd;
	struct gs_strv globs;
	struct gs_strv dirs; /* the folders that nodes may be in, without the root */
	int *wds; /* of each folder; -1: it is not there */
	bool again; /* the timer's next end is the second one */
	void (*seen)(void *arg);
	void (*closed)(void *arg);
	void *arg;
};

/* The folder in which what matches a pattern must be, or below which. */
static char *folder_of(const char *glob)
{
	size_t plain = strcspn(glob, "*?[]{},\\");

	while (plain > 1 && glob[plain - 1] != '/')
		plain--;
	return gs_strndup(glob, plain > 1 ? plain - 1 : 1);
}

static void watch_folder(struct node_watch *watch, size_t i)
{
	cleanup_free char *real = probe_path(watch->dirs.v[i]);

	watch->wds[i] = inotify_add_watch(watch->fd, real, EVENTS);
}

static void second(uv_timer_t *timer);

static void first(uv_timer_t *timer)
{
	struct node_watch *watch = timer->data;

	watch->again = true;
	(void)uv_timer_start(&watch->timer, second, AGAIN_MS, 0);
	watch->seen(watch->arg);
}

static void second(uv_timer_t *timer)
{
	struct node_watch *watch = timer->data;

	watch->again = false;
	watch->seen(watch->arg);
}

/* Many come at once; the moment is counted from the first of them. */
static void seen_soon(struct node_watch *watch)
{
	if (uv_is_active((uv_handle_t *)&watch->timer) && !watch->again)
		return;
	watch->again = false;
	(void)uv_timer_start(&watch->timer, first, FIRST_MS, 0);
}

static void take_event(struct node_watch *watch, const struct inotify_event *event)
{
	cleanup_free char *path = NULL;
	size_t dir = 0;

	/* Too many to be told: any of them may have been ours. */
	if (event->mask & IN_Q_OVERFLOW)
		seen_soon(watch);
	while (dir < watch->dirs.n && watch->wds[dir] != event->wd)
		dir++;
	if (dir == watch->dirs.n)
		return;
	if (event->mask & IN_IGNORED)
		watch->wds[dir] = -1;
	if (!event->len)
		return;
	path = gs_asprintf("%s/%s", watch->dirs.v[dir], event->name);
	for (size_t i = 0; i < watch->dirs.n; i++) {
		if (strcmp(watch->dirs.v[i], path) != 0)
			continue;
		/* What is in a new folder may have come before we watch it. */
		watch_folder(watch, i);
		seen_soon(watch);
	}
	if (gs_glob_any(&watch->globs, path))
		seen_soon(watch);
}

static void readable(uv_poll_t *poll, int status, int events)
{
	struct node_watch *watch = poll->data;
	_Alignas(struct inotify_event) char buf[4096];
	ssize_t n;

	(void)status;
	(void)events;
	while ((n = read(watch->fd, buf, sizeof(buf))) > 0) {
		const struct inotify_event *event;

		for (char *p = buf; p < buf + n; p += sizeof(*event) + event->len) {
			event = (const struct inotify_event *)(const void *)p;
			take_event(watch, event);
		}
	}
}

static void handle_closed(uv_handle_t *handle)
{
	struct node_watch *watch = handle->data;

	if (--watch->open)
		return;
	(void)close(watch->fd);
	gs_strv_free(&watch->globs);
	gs_strv_free(&watch->dirs);
	free(watch->wds);
	watch->closed(watch->arg);
	free(watch);
}

int node_watch_new(uv_loop_t *loop, const struct gs_strv *globs, void (*seen)(void *arg),
		   void (*closed)(void *arg), void *arg, struct node_watch **ret,
		   struct gs_err *err)
{
	int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	struct node_watch *watch;

	if (fd < 0)
		return gs_err_errno(err, errno, "inotify");
	watch = gs_calloc(1, sizeof(*watch));
	watch->fd = fd;
	watch->seen = seen;
	watch->closed = closed;
	watch->arg = arg;
	watch->open = 2;
	/* epoll takes any inotify descriptor, so this can't fail. */
	if (uv_poll_init(loop, &watch->poll, fd) < 0 || uv_timer_init(loop, &watch->timer) < 0)
		abort();
	watch->poll.data = watch->timer.data = watch;
	/* Where all other folders come and go. */
	gs_strv_add(&watch->dirs, "/dev");
	for (size_t i = 0; i < globs->n; i++) {
		cleanup_free char *dir = folder_of(globs->v[i]);

		gs_strv_add(&watch->globs, globs->v[i]);
		gs_strv_add_once(&watch->dirs, dir);
	}
	watch->wds = gs_calloc(watch->dirs.n + 1, sizeof(*watch->wds));
	for (size_t i = 0; i < watch->dirs.n; i++)
		watch_folder(watch, i);
	(void)uv_poll_start(&watch->poll, UV_READABLE, readable);
	*ret = watch;
	return 0;
}

void node_watch_free(struct node_watch *watch)
{
	uv_close((uv_handle_t *)&watch->poll, handle_closed);
	uv_close((uv_handle_t *)&watch->timer, handle_closed);
}
