// SPDX-License-Identifier: Apache-2.0
/* Whose process is that? */
#include <fcntl.h>
#include <linux/nsfs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/strangers.h"
#include "common/cleanup.h"
#include "common/glob.h"
#include "common/proc.h"

/* The kernel's own bound of nested PID namespaces. */
#define LEVELS_MAX 32

/* The container whose namespace that is; one that shares it with others is told by cgroup. */
static const struct container *by_namespace(const struct agent *agent, ino_t ns)
{
	for (size_t i = 0; i < agent->containers.n; i++) {
		const struct container *c = &agent->containers.v[i];

		if (c->alive && c->hook.pid && !c->rec.shared_pid && c->hook.pid_ns == ns &&
		    ns != agent->host_pid_ns)
			return c;
	}
	return NULL;
}

/* A container inside a container (docker-in-docker) is the outer one's. */
static const struct container *by_namespaces(const struct agent *agent, pid_t pid)
{
	cleanup_close int fd = -1;
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	for (int level = 0; fd >= 0 && level < LEVELS_MAX; level++) {
		const struct container *c;
		struct stat st;
		int parent;

		if (fstat(fd, &st) < 0)
			return NULL;
		c = by_namespace(agent, st.st_ino);
		if (c)
			return c;
		parent = ioctl(fd, NS_GET_PARENT);
		(void)close(fd);
		fd = parent;
	}
	return NULL;
}

static bool at_or_below(const char *path, const char *of)
{
	size_t n = strlen(of);

	return strncmp(path, of, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

const struct container *container_of_process(const struct agent *agent, pid_t pid)
{
	const struct container *c = by_namespaces(agent, pid);
	cleanup_free char *cgroup = NULL;

	if (c || gs_proc_cgroup(pid, &cgroup, NULL) < 0)
		return c;
	for (size_t i = 0; i < agent->containers.n; i++) {
		c = &agent->containers.v[i];
		if (c->alive && c->hook.cgroup && at_or_below(cgroup, c->hook.cgroup))
			return c;
	}
	return NULL;
}

/* Is it this program, or one of its probes, which look at the card? */
static bool is_ours(pid_t pid)
{
	/* the spawner stands between, and a probe may run a command */
	for (int i = 0; pid > 1 && i < 4; i++) {
		if (pid == getpid())
			return true;
		if (gs_proc_parent(pid, &pid, NULL) < 0)
			return false;
	}
	return false;
}

static bool is_exempt(const struct agent *agent, pid_t pid)
{
	const struct gs_strv *globs = &agent->settings.exempt_cgroups;
	cleanup_free char *cgroup = NULL;

	if (!globs->n || gs_proc_cgroup(pid, &cgroup, NULL) < 0)
		return false;
	return gs_glob_any_across(globs, cgroup);
}

/*
 * A list of processes that was looked through is good until there is another one, or other
 * containers: a pod may have thousands of processes on a card, which must not cost others anything.
 * A stranger is looked for again, since he may have gone.
 */
static bool is_cleared(const struct agent *agent, const struct seen_card *seen,
		       const struct load *load)
{
	return seen->cleared_ms == load->processes_at_ms &&
	       seen->cleared_by_ms == agent->registry_read_ms;
}

bool strangers_on(struct agent *agent, const char *card, const struct load *load)
{
	struct seen_card *seen = agent_card(agent, card);

	if (!load->processes_known || !load->n_processes || is_cleared(agent, seen, load))
		return false;
	for (size_t i = 0; i < load->n_processes; i++) {
		pid_t pid = load->processes[i].pid;
		const struct container *c = container_of_process(agent, pid);
		uint64_t start;

		if (c && (c->exempt || gs_strv_has(&c->cards, card)))
			continue;
		/* it may have ended since the reading */
		if (gs_proc_start(pid, &start, NULL) < 0 || is_ours(pid) || is_exempt(agent, pid))
			continue;
		return true;
	}
	seen->cleared_ms = load->processes_at_ms;
	seen->cleared_by_ms = agent->registry_read_ms;
	return false;
}

bool strangers_unseen(const struct agent *agent, const char *card, const struct load *load)
{
	for (size_t i = 0; i < agent->containers.n; i++) {
		const struct container *c = &agent->containers.v[i];

		if (!c->alive || !c->hook.cgroup || !gs_strv_has(&c->cards, card))
			continue;
		for (size_t j = 0; j < load->unseen.n; j++)
			if (at_or_below(c->hook.cgroup, load->unseen.v[j]))
				return true;
	}
	return false;
}
