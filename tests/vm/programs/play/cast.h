/* SPDX-License-Identifier: Apache-2.0 */
/* Making actors, and giving them orders. */
#ifndef PLAY_CAST_H
#define PLAY_CAST_H

#include <sched.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <linux/sched.h>

#include "tests/vm/programs/play/actor.h"
#include "tests/vm/programs/play/tell.h"

#define HELD_MS 30
#define MAX_ACTORS 64

struct actor {
	char name[32];
	pid_t pid; /* as the host sees it */
	int sock;
	bool worker, dead, at_work;
	struct answer answer;
};

static struct actor actors[MAX_ACTORS];
static size_t n_actors;

static struct actor *actor_find(const char *name)
{
	for (size_t i = 0; i < n_actors; i++)
		if (strcmp(actors[i].name, name) == 0)
			return &actors[i];
	return NULL;
}

static struct actor *actor_new(const char *name, int sock)
{
	struct actor *a = &actors[n_actors++];

	*a = (struct actor){ .sock = sock };
	(void)snprintf(a->name, sizeof(a->name), "%s", name);
	return a;
}

/* A file in the actor's cgroup; the caller frees. */
static char *cgroup_path(const char *name, const char *file)
{
	static const char devices[] = "/sys/fs/cgroup/devices";

	return gs_asprintf("%s/play-%s%s", access(devices, F_OK) == 0 ? devices : "/sys/fs/cgroup",
			   name, file);
}

static int cgroup_write(const char *name, const char *file, const char *text)
{
	cleanup_free char *path = cgroup_path(name, file);

	return write_file(path, text);
}

/* 1: it answered, 0: not in that time, -1: it is dead. */
static int actor_answer(struct actor *a, int ms, int *ret_fd)
{
	uint64_t end = now_ms() + (uint64_t)ms;
	ssize_t n;
	int fd;

	for (;;) {
		n = wire_receive(a->sock, &a->answer, sizeof(a->answer), &fd, &a->pid,
				 MSG_DONTWAIT);
		if (n == sizeof(a->answer))
			break;
		if (n >= 0 || errno != EAGAIN) {
			a->dead = true;
			return -1;
		}
		if (now_ms() >= end)
			return 0;
		sleep_ms(1);
	}
	a->at_work = false;
	if (ret_fd)
		*ret_fd = fd;
	else if (fd >= 0)
		(void)close(fd);
	return 1;
}

static int actor_done(struct actor *a, int *ret_fd)
{
	int r = actor_answer(a, PATIENCE_MS, ret_fd);

	if (r <= 0)
		return wrong(r < 0 ? ESRCH : ETIMEDOUT, r < 0 ? "it is dead" : "not over");
	return a->answer.err ? wrong(a->answer.err, "its order") : 0;
}

static int actor_order(struct actor *a, char **argv, int fd)
{
	char order[ORDER_MAX] = "";

	for (; *argv; argv++) {
		size_t len = strlen(order);

		(void)snprintf(order + len, sizeof(order) - len, "%s%s", len ? " " : "", *argv);
	}
	if (a->at_work)
		return wrong(EBUSY, "it is at work");
	if (wire_send(a->sock, order, strlen(order), fd) < 0)
		return wrong(ESRCH, "it is dead");
	a->at_work = true;
	return 0;
}

static int actor_do(struct actor *a, char **argv)
{
	int r = actor_order(a, argv, -1);

	return r ? r : actor_done(a, NULL);
}

static int order1(struct actor *a, const char *word, int fd)
{
	char *argv[] = { (char *)(uintptr_t)word, NULL };
	int r = actor_order(a, argv, fd);

	return r ? r : actor_done(a, NULL);
}

static int new_pair(int pair[2])
{
	int on = 1;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0 ||
	    setsockopt(pair[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0)
		return wrong(errno, "socketpair");
	return 0;
}

/* In a PID namespace of its own, or in the host's; in a cgroup of its own in any case. */
static int actor_make(const char *name, bool host_pids, struct actor **ret)
{
	struct clone_args args = { .flags = host_pids ? 0 : CLONE_NEWPID, .exit_signal = SIGCHLD };
	cleanup_free char *path = cgroup_path(name, "");
	char number[16];
	int pair[2], r;
	pid_t pid;

	(void)mkdir(path, 0755);
	r = new_pair(pair);
	if (r)
		return r;
	pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		actor_run(pair[1]);
	}
	(void)close(pair[1]);
	if (pid < 0)
		return wrong(errno, "clone");
	*ret = actor_new(name, pair[0]);
	(*ret)->pid = pid;
	(void)snprintf(number, sizeof(number), "%d", pid);
	r = cgroup_write(name, "/cgroup.procs", number);
	return r ? r : order1(*ret, "pid", -1);
}

static int do_spawn(char **argv)
{
	char parent[32];
	struct actor *a;
	int pair[2], r;

	(void)snprintf(parent, sizeof(parent), "%.*s", (int)strcspn(argv[1], "."), argv[1]);
	a = actor_find(parent);
	if (!a)
		return wrong(EINVAL, "no actor %s", parent);
	r = new_pair(pair);
	if (r)
		return r;
	r = order1(a, "spawn", pair[1]);
	(void)close(pair[1]);
	if (r)
		return r;
	a = actor_new(argv[1], pair[0]);
	a->worker = true;
	return order1(a, "pid", -1);
}

static int do_give(char **argv)
{
	struct actor *from = actor_find(argv[1]), *to = actor_find(argv[3]);
	char *give[] = { (char *)(uintptr_t) "give", argv[2], NULL };
	char *take[] = { (char *)(uintptr_t) "take", argv[4], NULL };
	int fd = -1, r;

	if (!from || !to)
		return wrong(EINVAL, "no such actor");
	r = actor_order(from, give, -1);
	r = r ? r : actor_done(from, &fd);
	r = r ? r : actor_order(to, take, fd);
	if (fd >= 0)
		(void)close(fd);
	return r ? r : actor_done(to, NULL);
}

/* Both in the same PID namespace. */
static int do_trace(char **argv)
{
	struct actor *a = actor_find(argv[1]), *b = actor_find(argv[2]);
	char pid[16];

	if (!a || !b)
		return wrong(EINVAL, "no such actor");
	(void)snprintf(pid, sizeof(pid), "%d", b->answer.pid);
	return actor_do(a, (char *[]){ (char *)(uintptr_t) "seize", pid, NULL });
}

static int do_kill(char **argv)
{
	static const struct {
		const char *name;
		int number;
	} signals[] = {
		{ "KILL", SIGKILL }, { "STOP", SIGSTOP }, { "CONT", SIGCONT }, { "TERM", SIGTERM }
	};
	struct actor *a = actor_find(argv[1]);

	if (!a)
		return wrong(EINVAL, "no such actor");
	for (size_t i = 0; i < GS_ARRAY_SIZE(signals); i++)
		if (strcmp(argv[2] ? argv[2] : "KILL", signals[i].name) == 0)
			return kill(a->pid, signals[i].number) < 0 ? wrong(errno, "kill") : 0;
	return wrong(EINVAL, "no such signal");
}

/* Dead: its end of the socket is closed, by all who had it. */
static int do_gone(char **argv)
{
	struct actor *a = actor_find(argv[1]);
	uint64_t end = now_ms() + PATIENCE_MS;

	if (!a)
		return wrong(EINVAL, "no such actor");
	while (!a->dead && now_ms() < end)
		(void)actor_answer(a, 20, NULL);
	return a->dead ? 0 : wrong(ETIMEDOUT, "it lives");
}

/* cgroup v1 has a hierarchy of its own for that; of an actor only its first process goes there. */
static int freeze_v1(const char *name, bool freeze)
{
	cleanup_free char *path = gs_asprintf("/sys/fs/cgroup/freezer/play-%s", name);
	cleanup_free char *procs = gs_asprintf("%s/cgroup.procs", path);
	cleanup_free char *state = gs_asprintf("%s/freezer.state", path);
	const struct actor *a = actor_find(name);
	char pid[16];
	int r = 0;

	(void)mkdir(path, 0755);
	(void)snprintf(pid, sizeof(pid), "%d", a ? a->pid : 0);
	if (freeze)
		r = write_file(procs, pid);
	return r ? r : write_file(state, freeze ? "FROZEN" : "THAWED");
}

static int freeze(const char *name, bool on)
{
	if (access("/sys/fs/cgroup/freezer", F_OK) == 0)
		return freeze_v1(name, on);
	return cgroup_write(name, "/cgroup.freeze", on ? "1" : "0");
}

static int do_freeze(char **argv)
{
	return freeze(argv[1], strcmp(argv[0], "freeze") == 0);
}

#endif
