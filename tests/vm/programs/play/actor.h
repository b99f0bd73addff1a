/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An actor of play: a process that does what it is told, one order at a time, and answers with an
 * errno. It keeps open files by names. What two of them do at once, two workers do: processes that
 * an actor has forked, with copies of its files.
 */
#ifndef PLAY_ACTOR_H
#define PLAY_ACTOR_H

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/io_uring.h>

#include "common/xalloc.h"
#include "tests/fakegpu/fakegpu.h"

#define ORDER_MAX 512
#define ACTOR_FD 200 /* where an actor that became another program finds its socket */

struct answer {
	int err; /* 0 or an errno */
	pid_t pid; /* in its own namespace */
};

/* Sends @len bytes, with a descriptor if @fd is one. Keeps it. */
static inline int wire_send(int sock, const void *data, size_t len, int fd)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec iov = { .iov_base = (void *)(uintptr_t)data, .iov_len = len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (fd >= 0) {
		struct cmsghdr *c;

		msg.msg_control = control;
		msg.msg_controllen = sizeof(control);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &fd, sizeof(int));
	}
	return sendmsg(sock, &msg, MSG_NOSIGNAL) < 0 ? -1 : 0;
}

/* Receives; @ret_fd gets a descriptor or -1, @ret_pid the sender as we see it if we may. */
static inline ssize_t wire_receive(int sock, void *data, size_t size, int *ret_fd, pid_t *ret_pid,
				   int flags)
{
	char control[CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(struct ucred))];
	struct iovec iov = { .iov_base = data, .iov_len = size };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control,
			      .msg_controllen = sizeof(control) };
	ssize_t n;

	*ret_fd = -1;
	do
		n = recvmsg(sock, &msg, flags | MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return n;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
		struct ucred cred;

		if (c->cmsg_level != SOL_SOCKET)
			continue;
		if (c->cmsg_type == SCM_RIGHTS)
			memcpy(ret_fd, CMSG_DATA(c), sizeof(int));
		if (c->cmsg_type == SCM_CREDENTIALS && ret_pid) {
			memcpy(&cred, CMSG_DATA(c), sizeof(cred));
			*ret_pid = cred.pid;
		}
	}
	return n;
}

/* ---- Its open files. */
struct slot {
	char name[16];
	int fd;
	void *map;
};

static struct slot slots[512];

static struct slot *slot_find(const char *name)
{
	for (size_t i = 0; i < sizeof(slots) / sizeof(slots[0]); i++)
		if (name && *slots[i].name && strcmp(slots[i].name, name) == 0)
			return &slots[i];
	errno = EBADF;
	return NULL;
}

/* A new name for @fd, which may be an error already. */
static int slot_put(const char *name, int fd)
{
	if (fd < 0)
		return -1;
	for (size_t i = 0; i < sizeof(slots) / sizeof(slots[0]); i++) {
		if (*slots[i].name)
			continue;
		(void)snprintf(slots[i].name, sizeof(slots[i].name), "%s", name);
		slots[i].fd = fd;
		return 0;
	}
	errno = EMFILE;
	return -1;
}

static int slot_fd(const char *name)
{
	struct slot *slot = slot_find(name);

	return slot ? slot->fd : -1;
}

static bool has_word(char **argv, const char *word)
{
	for (; *argv; argv++)
		if (strcmp(*argv, word) == 0)
			return true;
	return false;
}

static unsigned long actor_number(const char *s)
{
	return s ? strtoul(s, NULL, 0) : 0;
}

/* "0" is /dev/fakegpu0, "ctl" /dev/fakegpuctl, "uvm" /dev/fakegpu-uvm; "v0" a second driver's. */
static const char *node_path(const char *word, char *buf, size_t size)
{
	const char *driver = "fakegpu";

	if (*word == '/')
		return word;
	if (*word == 'v') {
		driver = "fakegpv";
		word++;
	}
	(void)snprintf(buf, size, "/dev/%s%s%s", driver, strcmp(word, "uvm") == 0 ? "-" : "", word);
	return buf;
}

/* ---- The orders. Each gives 0, or -1 with errno. */
static int open_node(char **argv)
{
	char buf[64];
	int flags = has_word(argv + 3, "path") ? O_PATH : O_RDWR;

	if (has_word(argv + 3, "cloexec"))
		flags |= O_CLOEXEC;
	if (has_word(argv + 3, "nonblock"))
		flags |= O_NONBLOCK;
	return open(node_path(argv[2], buf, sizeof(buf)), flags);
}

static int order_open(char **argv)
{
	return slot_put(argv[1], open_node(argv));
}

static int order_close(char **argv)
{
	struct slot *slot = slot_find(argv[1]);

	if (!slot)
		return -1;
	*slot->name = 0;
	return close(slot->fd);
}

static int order_dup(char **argv)
{
	int fd = slot_fd(argv[1]);

	return fd < 0 ? -1 : slot_put(argv[2], dup(fd));
}

/* The same file of the same driver, but a new open of it. */
static int order_reopen(char **argv)
{
	char path[64];
	int fd = slot_fd(argv[1]);

	if (fd < 0)
		return -1;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return slot_put(argv[2], open(path, O_RDWR));
}

static int order_ping(char **argv)
{
	struct fakegpu_ping args = { 0 };
	int fd = slot_fd(argv[1]);

	return fd < 0 ? -1 : ioctl(fd, FAKEGPU_PING, &args);
}

static int order_echo(char **argv)
{
	struct fakegpu_echo args = { .token = actor_number(argv[2]) };
	int fd = slot_fd(argv[1]);

	return fd < 0 ? -1 : ioctl(fd, FAKEGPU_WORK_ECHO, &args);
}

static int order_version(char **argv)
{
	struct fakegpu_version args = { 0 };
	int fd = slot_fd(argv[1]);

	return fd < 0 ? -1 : ioctl(fd, FAKEGPU_VERSION, &args);
}

static int order_alloc(char **argv)
{
	struct fakegpu_alloc args = { .bytes = actor_number(argv[2]) };
	int fd = slot_fd(argv[1]);

	return fd < 0 ? -1 : ioctl(fd, FAKEGPU_ALLOC, &args);
}

/* sleep SLOT MS: in D state. */
static int order_sleep(char **argv)
{
	struct fakegpu_sleep args = { .ms = (uint32_t)actor_number(argv[2]),
				      .kind = FAKEGPU_SLEEP_UNINTERRUPTIBLE };
	int fd = slot_fd(argv[1]);

	return fd < 0 ? -1 : ioctl(fd, FAKEGPU_SLEEP, &args);
}

static int order_mmap(char **argv)
{
	struct slot *slot = slot_find(argv[1]);
	void *at;

	if (!slot)
		return -1;
	at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, slot->fd, 0);
	if (at == MAP_FAILED)
		return -1;
	slot->map = at;
	return 0;
}

/* Also after the file was closed: the mapping keeps it. */
static int order_munmap(char **argv)
{
	(void)argv;
	for (size_t i = 0; i < sizeof(slots) / sizeof(slots[0]); i++) {
		if (!slots[i].map)
			continue;
		if (munmap(slots[i].map, 4096) < 0)
			return -1;
		slots[i].map = NULL;
	}
	return 0;
}

/* Into a socket of its own, which nobody reads: the file is open without a descriptor. */
static int order_queue(char **argv)
{
	int pair[2], fd = slot_fd(argv[1]);

	if (fd < 0 || socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -1;
	if (wire_send(pair[0], "x", 1, fd) < 0 || order_close(argv) < 0)
		return -1;
	(void)slot_put("queue0", pair[0]);
	return slot_put("queue1", pair[1]);
}

/* pair A B: the two ends of a socket. */
static int order_pair(char **argv)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair) < 0 ||
	    slot_put(argv[1], pair[0]) < 0)
		return -1;
	return slot_put(argv[2], pair[1]);
}

/* push SOCKET SLOT: the file goes to whoever has the other end, and is closed here. */
static int order_push(char **argv)
{
	int sock = slot_fd(argv[1]), fd = slot_fd(argv[2]);

	if (sock < 0 || fd < 0 || wire_send(sock, "x", 1, fd) < 0)
		return -1;
	return order_close(argv + 1);
}

/* fill NODE N: opens it so often, for good; no slots. */
static int order_fill(char **argv)
{
	const struct rlimit files = { .rlim_cur = 100000, .rlim_max = 100000 };
	size_t n = actor_number(argv[2]);
	char path[64];

	if (setrlimit(RLIMIT_NOFILE, &files) < 0)
		return -1;
	(void)node_path(argv[1], path, sizeof(path));
	for (size_t i = 0; i < n; i++)
		if (open(path, O_RDWR) < 0)
			return -1;
	return 0;
}

/* Registered with a ring: the kernel closes it in a thread of its own, after we are gone. */
static int order_ring(char **argv)
{
	static struct io_uring_params params; /* all zero */
	int fd = slot_fd(argv[1]),
	    ring = fd < 0 ? -1 : (int)syscall(SYS_io_uring_setup, 4, &params);

	if (ring < 0 || syscall(SYS_io_uring_register, ring, IORING_REGISTER_FILES, &fd, 1) < 0 ||
	    order_close(argv) < 0)
		return -1;
	return slot_put("ring", ring);
}

static int order_exec(char **argv)
{
	char *args[sizeof(slots) / sizeof(slots[0]) + 3] = { argv[0], (char *)(uintptr_t) "actor" };
	size_t n = 2;

	for (size_t i = 0; i < sizeof(slots) / sizeof(slots[0]); i++) {
		if (*slots[i].name)
			args[n++] = gs_asprintf("%s=%d", slots[i].name, slots[i].fd);
	}
	args[n] = NULL;
	return execv("/proc/self/exe", args);
}

/* many SLOT NODE N: so many threads open it at once, as SLOT0, SLOT1... */
struct opener {
	char **argv;
	int fd, err;
};

static void *open_one(void *data)
{
	struct opener *opener = data;

	opener->fd = open_node(opener->argv);
	opener->err = errno;
	return NULL;
}

static int order_many(char **argv)
{
	static struct opener openers[256];
	pthread_t threads[256];
	size_t n = actor_number(argv[3]);
	pthread_attr_t attr;
	char name[32];

	(void)pthread_attr_init(&attr);
	(void)pthread_attr_setstacksize(&attr, 64 << 10);
	for (size_t i = 0; i < n; i++) {
		openers[i].argv = argv;
		errno = pthread_create(&threads[i], &attr, open_one, &openers[i]);
		if (errno)
			return -1;
	}
	for (size_t i = 0; i < n; i++)
		(void)pthread_join(threads[i], NULL);
	for (size_t i = 0; i < n; i++) {
		(void)snprintf(name, sizeof(name), "%.8s%zu", argv[1], i);
		errno = openers[i].err;
		if (slot_put(name, openers[i].fd) < 0)
			return -1;
	}
	return 0;
}

/* Nothing but SIGKILL and SIGSTOP reaches it. */
static int order_deaf(char **argv)
{
	sigset_t all;

	(void)argv;
	for (int sig = 1; sig < 65; sig++)
		if (sig != SIGCHLD)
			(void)signal(sig, SIG_IGN);
	(void)sigfillset(&all);
	return sigprocmask(SIG_BLOCK, &all, NULL);
}

/* Lets everybody trace it, where that is restricted. */
static int order_traceable(char **argv)
{
	(void)argv;
	(void)prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	return 0;
}

/* seize PID: from now on that process stops before it exits, until its tracer lets it go. */
static int order_seize(char **argv)
{
	return (int)ptrace(PTRACE_SEIZE, (pid_t)actor_number(argv[1]), NULL,
			   (void *)(uintptr_t)PTRACE_O_TRACEEXIT);
}

/* Four chains of processes, each of which forks the next one and ends. */
static int order_bomb(char **argv)
{
	(void)argv;
	for (int i = 0; i < 4; i++) {
		pid_t pid = fork();

		if (pid < 0)
			return -1;
		if (pid > 0)
			continue;
		for (;;) {
			pid = fork();
			if (pid > 0)
				_exit(0);
		}
	}
	return 0;
}

/* Goes on in a PID namespace of its own, below the one that it is in. */
static int order_container(char **argv)
{
	pid_t pid;

	(void)argv;
	if (unshare(CLONE_NEWPID) < 0)
		return -1;
	pid = fork();
	if (pid > 0)
		for (;;)
			(void)pause();
	return pid < 0 ? -1 : 0;
}

static int order_exit(char **argv)
{
	(void)argv;
	_exit(0);
}

static int order_pid(char **argv)
{
	(void)argv;
	return 0;
}

static const struct {
	const char *name;
	int (*run)(char **argv);
} orders[] = {
	{ "open", order_open },
	{ "close", order_close },
	{ "dup", order_dup },
	{ "reopen", order_reopen },
	{ "ping", order_ping },
	{ "echo", order_echo },
	{ "version", order_version },
	{ "alloc", order_alloc },
	{ "sleep", order_sleep },
	{ "mmap", order_mmap },
	{ "munmap", order_munmap },
	{ "queue", order_queue },
	{ "ring", order_ring },
	{ "exec", order_exec },
	{ "pair", order_pair },
	{ "push", order_push },
	{ "fill", order_fill },
	{ "many", order_many },
	{ "deaf", order_deaf },
	{ "seize", order_seize },
	{ "traceable", order_traceable },
	{ "bomb", order_bomb },
	{ "container", order_container },
	{ "exit", order_exit },
	{ "pid", order_pid },
};

static void __attribute__((noreturn)) actor_run(int sock);

static void *actor_run_thread(void *data)
{
	struct answer answer = { .pid = getpid() };
	int sock = (int)(intptr_t)data;

	(void)wire_send(sock, &answer, sizeof(answer), -1);
	actor_run(sock);
}

/* Goes on in another thread, which answers for us; the process's first one ends. */
static int actor_leave(int sock)
{
	pthread_t thread;

	errno = pthread_create(&thread, NULL, actor_run_thread, (void *)(intptr_t)sock);
	if (errno)
		return -1;
	pthread_exit(NULL);
}

/* spawn: a worker that listens at @fd. */
static int actor_spawn(int sock, int fd)
{
	pid_t pid = fork();

	if (pid == 0) {
		(void)close(sock);
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		actor_run(fd);
	}
	return pid < 0 ? -1 : 0;
}

static int actor_obey(int sock, char **argv, int fd, int *ret_fd)
{
	if (strcmp(argv[0], "spawn") == 0)
		return actor_spawn(sock, fd);
	if (strcmp(argv[0], "give") == 0) {
		*ret_fd = slot_fd(argv[1]);
		return *ret_fd < 0 ? -1 : 0;
	}
	if (strcmp(argv[0], "take") == 0)
		return slot_put(argv[1], dup(fd));
	if (strcmp(argv[0], "leave") == 0)
		return actor_leave(sock);
	for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++)
		if (strcmp(orders[i].name, argv[0]) == 0)
			return orders[i].run(argv);
	errno = ENOSYS;
	return -1;
}

static void __attribute__((noreturn)) actor_run(int sock)
{
	/* A first process must collect what others leave behind. */
	(void)signal(SIGCHLD, SIG_IGN);
	if (sock != ACTOR_FD) {
		(void)dup2(sock, ACTOR_FD);
		(void)close(sock);
	}
	for (;;) {
		char order[ORDER_MAX], *argv[32], *rest = NULL;
		struct answer answer = { 0 };
		int fd, give = -1, argc = 0;
		ssize_t n = wire_receive(ACTOR_FD, order, sizeof(order) - 1, &fd, NULL, 0);

		if (n <= 0)
			_exit(0);
		order[n] = 0;
		for (char *word = strtok_r(order, " ", &rest); word && argc < 31;
		     word = strtok_r(NULL, " ", &rest))
			argv[argc++] = word;
		argv[argc] = NULL;
		errno = EINVAL;
		if (argc == 0 || actor_obey(ACTOR_FD, argv, fd, &give) < 0)
			answer.err = errno;
		answer.pid = getpid();
		(void)wire_send(ACTOR_FD, &answer, sizeof(answer), give);
		if (fd >= 0)
			(void)close(fd);
	}
}

/* What order_exec() has made of the actor. */
static void __attribute__((noreturn)) actor_again(char **argv)
{
	struct answer answer = { .pid = getpid() };

	for (; *argv; argv++) {
		char *number = strchr(*argv, '=');

		if (!number)
			continue;
		*number++ = 0;
		if (fcntl((int)actor_number(number), F_GETFD) >= 0)
			(void)slot_put(*argv, (int)actor_number(number));
	}
	(void)wire_send(ACTOR_FD, &answer, sizeof(answer), -1);
	actor_run(ACTOR_FD);
}

#endif
