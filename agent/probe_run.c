// SPDX-License-Identifier: Apache-2.0
/* Runs a vendor's command: no shell, a bound on time and output, and none outlives us. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/probe.h"
#include "common/cleanup.h"
#include "common/config.h"
#include "common/file.h"
#include "common/proc.h"
#include "common/xalloc.h"

#define OUTPUT_MAX (256 * 1024)

/* Where the program is that we are to run: the root of the host (see probe_host()); NULL: here. */
static const char *root_of(const char *program)
{
	const char *host = probe_host();
	cleanup_free char *real = host ? gs_file_real_in(host, program) : NULL;

	return real && access(real, X_OK) == 0 ? host : NULL;
}

/* In the child; no error can be told but by its exit status: 127 as from a shell. */
_Noreturn static void become(const char *root, char *const *argv, int out, pid_t parent)
{
	static char *const env[] = { (char *)"PATH=" GS_SYSTEM_PATH, (char *)"LC_ALL=C",
				     (char *)"HOME=/", NULL };
	int null = open("/dev/null", O_RDWR);

	/* Its own group, so that what it starts is killed with it. */
	(void)setpgid(0, 0);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent || null < 0 || dup2(null, 0) < 0 || dup2(out, 1) < 0 ||
	    dup2(null, 2) < 0)
		_exit(127);
	/* What a library of ours opened may lack O_CLOEXEC. */
	for (int fd = 3; fd < 256; fd++)
		(void)close(fd);
	if (root && (chroot(root) < 0 || chdir("/") < 0))
		_exit(127);
	(void)execve(argv[0], argv, env);
	_exit(127);
}

/* Reads until the end of the output, the bound or the deadline. */
static int read_output(int fd, uint64_t deadline, const char *name, struct gs_buf *out,
		       struct gs_err *err)
{
	char buf[4096];

	for (;;) {
		struct pollfd p = { fd, POLLIN, 0 };
		uint64_t now = gs_boottime_ms();
		ssize_t n;

		if (now >= deadline)
			return gs_err_set(err, ETIMEDOUT, "%s takes too long", name);
		if (poll(&p, 1, (int)(deadline - now)) <= 0)
			continue;
		n = read(fd, buf, sizeof(buf));
		if (n < 0 && errno != EINTR)
			return gs_err_errno(err, errno, "read output of %s", name);
		if (n == 0)
			return 0;
		if (n > 0)
			gs_buf_add(out, buf, (size_t)n);
		if (out->len > OUTPUT_MAX)
			return gs_err_set(err, EFBIG, "%s prints more than %d bytes", name,
					  OUTPUT_MAX);
	}
}

/* It may have closed its output and go on. */
static int reap(pid_t pid, uint64_t deadline, bool dead, int *ret)
{
	for (;;) {
		pid_t r = waitpid(pid, ret, WNOHANG);

		if (r == pid)
			return 0;
		if (r < 0 && errno != EINTR)
			return -errno;
		if (!dead && gs_boottime_ms() >= deadline)
			return -ETIMEDOUT;
		(void)poll(NULL, 0, 2);
	}
}

int probe_run(const struct gs_strv *argv, unsigned int ms, struct gs_buf *out, struct gs_err *err)
{
	cleanup_free char **args = gs_calloc(argv->n + 1, sizeof(*args));
	uint64_t deadline = gs_boottime_ms() + ms;
	const char *name = argv->v[0], *root = root_of(name);
	pid_t pid, self = getpid();
	int fds[2], status = 0, r;

	if (!root && access(name, X_OK) < 0)
		return gs_err_errno(err, errno, "%s", name);
	memcpy(args, argv->v, argv->n * sizeof(*args));
	if (pipe2(fds, O_CLOEXEC) < 0)
		return gs_err_errno(err, errno, "pipe");
	pid = fork();
	if (pid == 0)
		become(root, args, fds[1], self);
	if (pid < 0) {
		r = gs_err_errno(err, errno, "fork");
		(void)close(fds[0]);
		(void)close(fds[1]);
		return r;
	}
	(void)close(fds[1]);
	r = read_output(fds[0], deadline, name, out, err);
	(void)close(fds[0]);
	if (r == 0 && reap(pid, deadline, false, &status) == -ETIMEDOUT)
		r = gs_err_set(err, ETIMEDOUT, "%s takes too long", name);
	else if (r == 0)
		pid = 0;
	if (pid) {
		/* The group, or the process alone where it had no time to make one. */
		(void)kill(-pid, SIGKILL);
		(void)kill(pid, SIGKILL);
		(void)reap(pid, deadline, true, &status);
	}
	if (r == 0 && WIFSIGNALED(status))
		return gs_err_set(err, EIO, "%s died of signal %d", name, WTERMSIG(status));
	if (r == 0 && WEXITSTATUS(status))
		return gs_err_set(err, EIO, "%s ended with status %d", name, WEXITSTATUS(status));
	return r;
}
