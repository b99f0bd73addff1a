// SPDX-License-Identifier: Apache-2.0
/* pidfd_open(2): readable once the whole process has ended, also if nobody has waited for it. */
#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/ends.h"
#include "common/cleanup.h"
#include "common/proc.h"
#include "common/xalloc.h"

/* A kubelet runs a few hundred containers. */
#define WATCHED_MAX 4096
/* Descriptors that are left for everything else. */
#define SPARE 256
/*
 * Looking at everything takes a while, and a borrower most often ends because a user waits for his
 * card: of that the kernel module tells, and it comes first.
 */
#define ENDED_MS 200

struct end {
	struct agent *agent;
	pid_t pid;
	uint64_t start_ticks; /* a process that has that number later is another one */
	int fd;
	uv_poll_t poll;
	bool wanted; /* it is still a container's */
};

struct ends {
	struct end **v;
	size_t n, max;
};

static void on_close(uv_handle_t *handle)
{
	struct end *end = handle->data;

	(void)close(end->fd);
	free(end);
}

static void on_end(uv_poll_t *poll, int status, int events)
{
	struct end *end = poll->data;

	(void)status, (void)events;
	/* it stays readable */
	(void)uv_poll_stop(poll);
	reconcile_soon(end->agent, ENDED_MS);
}

static struct end *find(struct ends *ends, const struct gs_hook_record *hook)
{
	for (size_t i = 0; i < ends->n; i++)
		if (ends->v[i]->pid == hook->pid && ends->v[i]->start_ticks == hook->start_ticks)
			return ends->v[i];
	return NULL;
}

/* The process of that number, if it is the one that started then. -ESRCH: it has ended. */
static int open_process(const struct gs_hook_record *hook)
{
	cleanup_close int fd = (int)syscall(SYS_pidfd_open, hook->pid, 0);
	uint64_t start;
	int r;

	if (fd < 0)
		return -errno;
	/* after the open: from here on the descriptor is that process and no other */
	r = gs_proc_start(hook->pid, &start, NULL);
	if (r < 0)
		return r;
	return start == hook->start_ticks ? gs_steal_fd(&fd) : -ESRCH;
}

static void add(struct agent *agent, const struct gs_hook_record *hook)
{
	struct ends *ends = agent->ends;
	struct end *end;
	int fd = open_process(hook);

	if (fd == -ESRCH)
		reconcile_soon(agent, ENDED_MS);
	else if (fd == -ENOSYS)
		ends->max = 0;
	if (fd < 0)
		return;
	end = gs_calloc(1, sizeof(*end));
	end->agent = agent;
	end->pid = hook->pid;
	end->start_ticks = hook->start_ticks;
	end->fd = fd;
	end->wanted = true;
	if (uv_poll_init(agent->loop, &end->poll, fd) < 0) {
		(void)close(fd);
		free(end);
		return;
	}
	end->poll.data = end;
	(void)uv_poll_start(&end->poll, UV_READABLE, on_end);
	ends->v = gs_grow(ends->v, ends->n, sizeof(void *));
	ends->v[ends->n++] = end;
}

static void drop_unwanted(struct ends *ends)
{
	size_t kept = 0;

	for (size_t i = 0; i < ends->n; i++)
		if (ends->v[i]->wanted)
			ends->v[kept++] = ends->v[i];
		else
			uv_close((uv_handle_t *)&ends->v[i]->poll, on_close);
	ends->n = kept;
}

static struct ends *ends_new(void)
{
	struct ends *ends = gs_calloc(1, sizeof(*ends));
	struct rlimit limit = { 0 };

	(void)getrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_cur > SPARE)
		ends->max = limit.rlim_cur - SPARE;
	if (ends->max > WATCHED_MAX)
		ends->max = WATCHED_MAX;
	return ends;
}

void ends_watch(struct agent *agent)
{
	struct ends *ends = agent->ends = agent->ends ?: ends_new();

	for (size_t i = 0; i < ends->n; i++)
		ends->v[i]->wanted = false;
	for (size_t i = 0; i < agent->containers.n; i++) {
		const struct container *c = &agent->containers.v[i];
		struct end *end;

		if (!c->alive || !c->hook.pid)
			continue;
		end = find(ends, &c->hook);
		if (end)
			end->wanted = true;
		else if (ends->n < ends->max)
			add(agent, &c->hook);
	}
	drop_unwanted(ends);
}

void ends_free(struct agent *agent)
{
	struct ends *ends = gs_steal(agent->ends);

	if (!ends)
		return;
	for (size_t i = 0; i < ends->n; i++)
		ends->v[i]->wanted = false;
	drop_unwanted(ends);
	free(ends->v);
	free(ends);
}
