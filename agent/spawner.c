// SPDX-License-Identifier: Apache-2.0
/* Starts the agent's children: the agent's side. */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/spawner.h"
#include "agent/spawner_wire.h"
#include "common/cleanup.h"
#include "common/xalloc.h"

struct spawner_child {
	struct spawner_child *next;
	uint32_t id;
	void (*ended)(int status, void *arg);
	void *arg;
};

struct spawner {
	pid_t pid; /* 0: it is dead and reaped */
	int fd;
	uint32_t last_id;
	struct spawner_child *children;
	size_t n;
	void (*died)(void *arg); /* NULL: nobody wants to know */
	void *died_arg;
	uv_poll_t poll; /* poll.data is NULL until it is attached */
};

int spawner_start(struct spawner **ret, struct gs_err *err)
{
	struct spawner *spawner;
	int fds[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
		return gs_err_errno(err, errno, "socketpair");
	pid = fork();
	if (pid < 0) {
		int code = errno;

		(void)close(fds[0]);
		(void)close(fds[1]);
		return gs_err_errno(err, code, "fork");
	}
	if (pid == 0)
		spawner_main(fds[1]);
	(void)close(fds[1]);
	spawner = gs_calloc(1, sizeof(*spawner));
	spawner->pid = pid;
	spawner->fd = fds[0];
	*ret = spawner;
	return 0;
}

static void free_now(struct spawner *spawner)
{
	(void)close(spawner->fd);
	if (spawner->pid)
		(void)waitpid(spawner->pid, NULL, 0);
	while (spawner->children) {
		struct spawner_child *child = spawner->children;

		spawner->children = child->next;
		free(child);
	}
	free(spawner);
}

static void poll_closed(uv_handle_t *handle)
{
	free_now(handle->data);
}

static void child_ended(struct spawner *spawner, struct spawner_child **at, int status)
{
	struct spawner_child *child = *at;

	*at = child->next;
	spawner->n--;
	child->ended(status, child->arg);
	free(child);
}

static void spawner_died(struct spawner *spawner)
{
	(void)uv_poll_stop(&spawner->poll);
	/* It closes the socket only by ending, one way or the other. */
	(void)waitpid(spawner->pid, NULL, 0);
	spawner->pid = 0;
	while (spawner->children && !uv_is_closing((uv_handle_t *)&spawner->poll))
		child_ended(spawner, &spawner->children, W_EXITCODE(0, SIGKILL));
	if (spawner->died && !uv_is_closing((uv_handle_t *)&spawner->poll))
		spawner->died(spawner->died_arg);
}

/* false: nothing more now. */
static bool read_one(struct spawner *spawner)
{
	struct spawner_msg msg;
	ssize_t n = recv(spawner->fd, &msg, sizeof(msg), MSG_DONTWAIT);

	if (n < 0 && errno == EINTR)
		return true;
	if (n < 0 && errno == EAGAIN)
		return false;
	if (n <= 0) {
		spawner_died(spawner);
		return false;
	}
	for (struct spawner_child **at = &spawner->children; *at; at = &(*at)->next)
		if ((*at)->id == msg.id) {
			child_ended(spawner, at, msg.status);
			break;
		}
	return true;
}

static void readable(uv_poll_t *poll, int status, int events)
{
	struct spawner *spawner = poll->data;

	(void)status;
	(void)events;
	while (!uv_is_closing((uv_handle_t *)poll) && read_one(spawner))
		;
}

void spawner_on_death(struct spawner *spawner, void (*died)(void *arg), void *arg)
{
	spawner->died = died;
	spawner->died_arg = arg;
}

int spawner_attach(struct spawner *spawner, uv_loop_t *loop, struct gs_err *err)
{
	int ret = uv_poll_init(loop, &spawner->poll, spawner->fd);

	if (ret < 0)
		return gs_err_errno(err, -ret, "watching the spawner");
	spawner->poll.data = spawner;
	ret = uv_poll_start(&spawner->poll, UV_READABLE, readable);
	if (ret < 0)
		return gs_err_errno(err, -ret, "watching the spawner");
	return 0;
}

static int tell(struct spawner *spawner, const struct spawner_msg *msg, const int stdio[2])
{
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(2 * sizeof(int))];
	} control = { .space = { 0 } };
	struct iovec iov = { .iov_base = (void *)msg, .iov_len = SPAWNER_HEAD + msg->len };
	struct msghdr h = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (stdio) {
		h.msg_control = control.space;
		h.msg_controllen = sizeof(control.space);
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		control.head.cmsg_len = CMSG_LEN(2 * sizeof(int));
		memcpy(CMSG_DATA(&control.head), stdio, 2 * sizeof(int));
	}
	return sendmsg(spawner->fd, &h, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int spawner_run(struct spawner *spawner, const char *const argv[], int in, int out,
		void (*ended)(int status, void *arg), void *arg, struct spawner_child **ret,
		struct gs_err *err)
{
	struct spawner_msg msg = { .op = SPAWNER_RUN };
	const int stdio[2] = { in, out };
	struct spawner_child *child;
	int code;

	for (size_t i = 0; argv[i]; i++) {
		size_t len = strlen(argv[i]) + 1;

		if (len > sizeof(msg.args) - msg.len)
			return gs_err_set(err, E2BIG, "too many arguments for %s", argv[0]);
		memcpy(msg.args + msg.len, argv[i], len);
		msg.len += (uint32_t)len;
	}
	if (argv[0] == NULL || argv[0][0] != '/')
		return gs_err_set(err, EINVAL, "not an absolute path of a program");
	if (spawner->pid == 0)
		return gs_err_set(err, EPIPE, "starting %s: the spawner has died", argv[0]);
	if (spawner->n >= SPAWNER_MAX)
		return gs_err_set(err, EAGAIN, "starting %s: too many children", argv[0]);
	msg.id = ++spawner->last_id;
	code = tell(spawner, &msg, stdio);
	if (code < 0)
		return gs_err_errno(err, -code, "starting %s", argv[0]);
	child = gs_calloc(1, sizeof(*child));
	*child = (struct spawner_child){
		.next = spawner->children, .id = msg.id, .ended = ended, .arg = arg
	};
	spawner->children = child;
	spawner->n++;
	*ret = child;
	return 0;
}

void spawner_kill(struct spawner *spawner, struct spawner_child *child)
{
	struct spawner_msg msg = { .op = SPAWNER_KILL, .id = child->id };

	/* It does not read? Then it goes, and every child with it. */
	if (tell(spawner, &msg, NULL) == -EAGAIN && spawner->pid)
		(void)kill(spawner->pid, SIGKILL);
}

size_t spawner_children(const struct spawner *spawner)
{
	return spawner->n;
}

void spawner_free(struct spawner *spawner)
{
	if (!spawner)
		return;
	if (spawner->poll.data)
		uv_close((uv_handle_t *)&spawner->poll, poll_closed);
	else
		free_now(spawner);
}
