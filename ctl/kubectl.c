// SPDX-License-Identifier: Apache-2.0
/* Runs kubectl. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/xalloc.h"
#include "ctl/kubectl.h"
#include "gpushare/view.h"

/* What of its complaints is kept. */
#define SAID_MAX 4096

struct child {
	pid_t pid;
	int out; /* its stdout; */
	int said; /* and its stderr, in a file; -1: it has ours */
	int failed; /* tells errno where there was nothing to be run */
};

static void close_all(struct child *child)
{
	gs_cleanup_close(&child->out);
	gs_cleanup_close(&child->said);
	gs_cleanup_close(&child->failed);
}
#define cleanup_child __attribute__((cleanup(close_all)))

/* In the child: what it does instead of coming back. */
__attribute__((noreturn)) static void become(char **argv, int out, int said, int failed)
{
	int null = said >= 0 ? open("/dev/null", O_RDONLY | O_CLOEXEC) : -1;
	int code;

	/* it has no business without us */
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (dup2(out, STDOUT_FILENO) >= 0 && (said < 0 || dup2(said, STDERR_FILENO) >= 0) &&
	    (null < 0 || dup2(null, STDIN_FILENO) >= 0))
		(void)execvp(argv[0], argv);
	code = errno;
	(void)!write(failed, &code, sizeof(code));
	_exit(127);
}

static int start(char **argv, bool quiet, struct child *ret, struct gs_err *err)
{
	int out[2], failed[2];

	if (quiet)
		ret->said = memfd_create("kubectl", MFD_CLOEXEC);
	if ((quiet && ret->said < 0) || pipe2(out, O_CLOEXEC) < 0)
		return gs_err_errno(err, errno, "run %s", argv[0]);
	ret->out = out[0];
	if (pipe2(failed, O_CLOEXEC) < 0) {
		(void)close(out[1]);
		return gs_err_errno(err, errno, "run %s", argv[0]);
	}
	ret->failed = failed[0];
	ret->pid = fork();
	if (ret->pid == 0)
		become(argv, out[1], ret->said, failed[1]);
	(void)close(out[1]);
	(void)close(failed[1]);
	return ret->pid < 0 ? gs_err_errno(err, errno, "run %s", argv[0]) : 0;
}

/* All that comes, up to @max bytes. */
static int read_all(int fd, size_t max, struct gs_buf *ret, struct gs_err *err)
{
	char buf[65536];
	ssize_t n;

	while ((n = read(fd, buf, sizeof(buf))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return gs_err_errno(err, errno, "read from kubectl");
		if (ret->len + (size_t)n > max)
			return gs_err_set(err, EFBIG, "kubectl prints more than %zu bytes", max);
		gs_buf_add(ret, buf, (size_t)n);
	}
	return 0;
}

static int wait_for(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

/* What it said last, which is why. */
static int failure(const struct child *child, int status, struct gs_err *err)
{
	cleanup_buf struct gs_buf said = { 0 };
	const char *last;

	if (child->said < 0)
		return gs_err_set(err, EIO, "kubectl failed (%s %d); what it says stands above",
				  WIFSIGNALED(status) ? "signal" : "exit status",
				  WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	if (lseek(child->said, 0, SEEK_SET) == 0)
		(void)read_all(child->said, SAID_MAX, &said, NULL);
	while (said.len && said.data[said.len - 1] == '\n')
		said.data[--said.len] = '\0';
	last = said.len ? strrchr(said.data, '\n') : NULL;
	return gs_err_set(err, EIO, "kubectl: %s",
			  last	   ? last + 1 :
			  said.len ? said.data :
				     "it failed, and did not say why");
}

static int run(char **argv, bool quiet, char **ret, size_t *ret_len, struct gs_err *err)
{
	cleanup_child struct child child = { .out = -1, .said = -1, .failed = -1 };
	cleanup_buf struct gs_buf text = { 0 };
	int r = start(argv, quiet, &child, err), status, code = 0;

	if (r < 0)
		return r;
	r = read_all(child.out, KUBECTL_MAX, &text, err);
	if (r < 0)
		(void)kill(child.pid, SIGTERM);
	status = wait_for(child.pid);
	if (read(child.failed, &code, sizeof(code)) == (ssize_t)sizeof(code) && code == ENOENT)
		return gs_err_set(err, ENOENT,
				  "there is no kubectl in PATH, by which the cluster is asked");
	if (code)
		return gs_err_errno(err, code, "run kubectl");
	if (r < 0)
		return r;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return failure(&child, status, err);
	*ret_len = text.len;
	*ret = gs_buf_steal(&text);
	return 0;
}

int kubectl_get_maps(const struct view_kubectl *kubectl, char **ret, size_t *ret_len,
		     struct gs_err *err)
{
	cleanup_strv struct gs_strv args = { 0 };
	cleanup_free char **argv = NULL;

	gs_strv_add(&args, "kubectl");
	if (kubectl->kubeconfig)
		gs_strv_take(&args, gs_asprintf("--kubeconfig=%s", kubectl->kubeconfig));
	if (kubectl->context)
		gs_strv_take(&args, gs_asprintf("--context=%s", kubectl->context));
	gs_strv_take(&args, gs_asprintf("--namespace=%s", kubectl->namespace ? kubectl->namespace :
									       GS_VIEW_NAMESPACE));
	gs_strv_add(&args, "--request-timeout=30s");
	gs_strv_add(&args, "get");
	gs_strv_add(&args, "--output=json");
	if (kubectl->node) {
		gs_strv_take(&args, gs_asprintf("configmaps/" GS_VIEW_PREFIX "%s", kubectl->node));
	} else {
		gs_strv_add(&args, "configmaps");
		gs_strv_add(&args, "--selector=" GS_VIEW_LABEL "=" GS_VIEW_LABEL_VALUE);
	}
	argv = gs_calloc(args.n + 1, sizeof(*argv));
	for (size_t i = 0; i < args.n; i++)
		argv[i] = args.v[i];
	return run(argv, kubectl->quiet, ret, ret_len, err);
}
