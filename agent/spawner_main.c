// SPDX-License-Identifier: Apache-2.0
/* The spawner's own process. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/spawner.h"
#include "agent/spawner_wire.h"

static struct {
	pid_t pid; /* not reaped yet, so nobody else's; 0: free */
	uint32_t id;
} children[SPAWNER_MAX];

static void close_from(int first)
{
	if (close_range((unsigned int)first, ~0U, 0) == 0)
		return;
	for (int fd = first; fd < 1024; fd++)
		(void)close(fd);
}

static void tell_ended(int fd, uint32_t id, int status)
{
	struct spawner_msg msg = { .op = SPAWNER_ENDED, .id = id, .status = status };

	while (send(fd, &msg, SPAWNER_HEAD, MSG_NOSIGNAL) < 0 && errno == EINTR)
		;
}

/* The group has its leader's number, which is not given to others as long as we do not reap it. */
static void kill_child(pid_t pid)
{
	(void)kill(-pid, SIGKILL);
	/* it may not have made its group yet */
	(void)kill(pid, SIGKILL);
}

/* That the agent is spared when memory runs out is no reason to spare what it starts. */
static void forget_oom_score(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (write(fd, "0", 1) < 0)
		errno = 0; /* it may not be lowered: then it was above, and stays */
	(void)close(fd);
}

/*
 * Every signal as at boot; exec keeps what is ignored (execve(2)). By the system call itself: the C
 * library refuses the two that it has for its threads (32 and 33), and whoever has started us may
 * have left them ignored all the same. All zero is SIG_DFL without flags in the kernel's form.
 */
static void default_signals(void)
{
	static const unsigned char action[64];
	const size_t set_size = 8; /* of the kernel's sigset_t: 64 signals */

	for (int sig = 1; sig < NSIG; sig++)
		(void)syscall(SYS_rt_sigaction, sig, action, NULL, set_size);
}

__attribute__((noreturn)) static void exec_child(pid_t parent, char **argv, const int stdio[2])
{
	sigset_t none;
	/* Above what is overwritten, wherever they are. */
	int in = fcntl(stdio[0], F_DUPFD, 3);
	int out = fcntl(stdio[1], F_DUPFD, 3);

	if (in < 0 || out < 0 || dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0)
		_exit(127);
	close_from(3);
	(void)setsid();
	forget_oom_score();
	default_signals();
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(127);
	execv(argv[0], argv);
	_exit(127);
}

static void run_child(int fd, struct spawner_msg *msg, const int stdio[2])
{
	char *argv[sizeof(msg->args) / 2 + 1];
	pid_t pid, self = getpid();
	size_t n = 0, i = 0;

	for (char *arg = msg->args; arg < msg->args + msg->len && n < sizeof(msg->args) / 2;
	     arg += strlen(arg) + 1)
		argv[n++] = arg;
	argv[n] = NULL;
	while (i < SPAWNER_MAX && children[i].pid)
		i++;
	/* not fork(): libuv's handler would close what it thinks are its own descriptors */
	pid = i < SPAWNER_MAX && n > 0 ? _Fork() : -1;
	if (pid == 0)
		exec_child(self, argv, stdio);
	if (pid < 0) {
		tell_ended(fd, msg->id, W_EXITCODE(127, 0));
		return;
	}
	children[i].pid = pid;
	children[i].id = msg->id;
}

static void reap(int fd)
{
	siginfo_t info;
	int status;

	for (;;) {
		info.si_pid = 0;
		if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || !info.si_pid)
			return;
		/* what it left behind in its group goes with it */
		kill_child(info.si_pid);
		if (waitpid(info.si_pid, &status, 0) < 0)
			return;
		for (size_t i = 0; i < SPAWNER_MAX; i++) {
			if (children[i].pid != info.si_pid)
				continue;
			children[i].pid = 0;
			tell_ended(fd, children[i].id, status);
		}
	}
}

/* false: the agent is gone. */
static bool serve(int fd)
{
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(2 * sizeof(int))];
	} control;
	struct spawner_msg msg = { 0 };
	struct iovec iov = { .iov_base = &msg, .iov_len = sizeof(msg) };
	struct msghdr h = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = control.space,
			    .msg_controllen = sizeof(control.space) };
	struct cmsghdr *c;
	int stdio[2] = { -1, -1 };
	ssize_t n = recvmsg(fd, &h, MSG_CMSG_CLOEXEC);

	if (n <= 0)
		return n < 0 && errno == EINTR;
	c = CMSG_FIRSTHDR(&h);
	if (c && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof(stdio)))
		memcpy(stdio, CMSG_DATA(c), sizeof(stdio));
	if ((size_t)n >= SPAWNER_HEAD && msg.op == SPAWNER_RUN && stdio[0] >= 0 &&
	    msg.len == (size_t)n - SPAWNER_HEAD && msg.len > 0 && msg.args[msg.len - 1] == '\0')
		run_child(fd, &msg, stdio);
	else if ((size_t)n >= SPAWNER_HEAD && msg.op == SPAWNER_KILL)
		for (size_t i = 0; i < SPAWNER_MAX; i++)
			if (children[i].pid && children[i].id == msg.id)
				kill_child(children[i].pid);
	for (int i = 0; i < 2; i++)
		if (stdio[i] >= 0)
			(void)close(stdio[i]);
	return true;
}

/* What the agent was told as systemd's child is not for its own children. */
static void clean_environment(void)
{
	static const char *const names[] = { "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID",
					     "LISTEN_FDS",    "LISTEN_PID",    "LISTEN_FDNAMES",
					     "INVOCATION_ID", "JOURNAL_STREAM" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		(void)unsetenv(names[i]);
	(void)setenv("LC_ALL", "C", 1);
}

void spawner_main(int fd)
{
	struct pollfd p[2] = { { .events = POLLIN }, { .events = POLLIN } };
	sigset_t chld;

	(void)prctl(PR_SET_NAME, "gpushare-spawn");
	/* The agent's alone is the signal to end; we end when its socket does. */
	default_signals();
	(void)signal(SIGINT, SIG_IGN);
	(void)signal(SIGTERM, SIG_IGN);
	(void)signal(SIGHUP, SIG_IGN);
	(void)signal(SIGPIPE, SIG_IGN);
	if (fd != 3 && dup2(fd, 3) < 0)
		_exit(1);
	fd = 3;
	close_from(4);
	(void)fcntl(fd, F_SETFD, FD_CLOEXEC);
	clean_environment();
	(void)sigemptyset(&chld);
	(void)sigaddset(&chld, SIGCHLD);
	(void)sigprocmask(SIG_SETMASK, &chld, NULL);
	p[0].fd = fd;
	p[1].fd = signalfd(-1, &chld, SFD_CLOEXEC | SFD_NONBLOCK);
	if (p[1].fd < 0)
		_exit(1);
	for (;;) {
		struct signalfd_siginfo info;

		if (poll(p, 2, -1) < 0 && errno != EINTR)
			break;
		if (p[1].revents) {
			while (read(p[1].fd, &info, sizeof(info)) > 0)
				;
			reap(fd);
		}
		if (p[0].revents && !serve(fd))
			break;
	}
	for (size_t i = 0; i < SPAWNER_MAX; i++)
		if (children[i].pid)
			kill_child(children[i].pid);
	_exit(0);
}
