// SPDX-License-Identifier: Apache-2.0
/* Asking the agent: a packet there, an answer back, never longer than the deadline. */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "common/agentlink.h"
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/json.h"
#include "common/proc.h"
#include "common/xalloc.h"
#include "gpushare/agent.h"

/* poll(2) does not count the time that the machine is suspended; the deadline does. */
#define POLL_MAX_MS 1000
/* Between tries to connect to an agent whose queue of callers is full. */
#define BUSY_WAIT_MS 10

static int timed_out(struct gs_err *err)
{
	return gs_err_set(err, ETIMEDOUT, "the agent did not answer in time");
}

static int no_agent(struct gs_err *err, const char *path, const char *why)
{
	return gs_err_set(err, ENOENT, "no agent at %s: %s", path, why);
}

/* How long to wait now for something before @deadline_ms; 0: it is over. */
static int wait_ms(uint64_t deadline_ms)
{
	uint64_t now = gs_boottime_ms();

	if (now >= deadline_ms)
		return 0;
	return deadline_ms - now < POLL_MAX_MS ? (int)(deadline_ms - now) : POLL_MAX_MS;
}

/* Waits until @events are there, or something is wrong with the connection. */
static int wait_for(int fd, short events, uint64_t deadline_ms, struct gs_err *err)
{
	struct pollfd pfd = { .fd = fd, .events = events };

	for (;;) {
		int ms = wait_ms(deadline_ms), n = poll(&pfd, 1, ms);

		if (n > 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return gs_err_errno(err, errno, "wait for the agent");
		if (ms == 0)
			return timed_out(err);
	}
}

/* Only root's socket, which nobody else may write to, is an agent's. */
static int check_socket(const char *path, struct gs_err *err)
{
	struct stat st;

	if (lstat(path, &st) < 0)
		return no_agent(err, path, strerror(errno));
	if (!S_ISSOCK(st.st_mode))
		return no_agent(err, path, "that is no socket");
	if (st.st_uid != 0)
		return no_agent(err, path, "the socket is not root's");
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return no_agent(err, path, "others than root may write to the socket");
	return 0;
}

/* connect(2) to a socket of this kind never waits: it succeeds, or the queue is full. */
static int connect_until(int fd, const struct sockaddr_un *addr, uint64_t deadline_ms,
			 struct gs_err *err)
{
	const struct timespec pause = { .tv_nsec = BUSY_WAIT_MS * 1000000L };

	while (connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) < 0) {
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN)
			return no_agent(err, addr->sun_path, strerror(errno));
		if (wait_ms(deadline_ms) == 0)
			return timed_out(err);
		(void)nanosleep(&pause, NULL);
	}
	return 0;
}

static int check_peer(int fd, const char *path, struct gs_err *err)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
		return no_agent(err, path, strerror(errno));
	return cred.uid == 0 ? 0 : no_agent(err, path, "its owner is not root");
}

/* Gives the connected socket. */
static int open_agent(const char *run_dir, uint64_t deadline_ms, struct gs_err *err)
{
	cleanup_free char *path = gs_asprintf("%s/%s", run_dir, GS_AGENT_SOCKET);
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	cleanup_close int fd = -1;
	int r = check_socket(path, err);

	if (r < 0)
		return r;
	if (strlen(path) >= sizeof(addr.sun_path))
		return no_agent(err, path, "the path is too long for a socket");
	(void)memcpy(addr.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return gs_err_errno(err, errno, "socket");
	r = connect_until(fd, &addr, deadline_ms, err);
	if (r == 0)
		r = check_peer(fd, path, err);
	return r < 0 ? r : gs_steal_fd(&fd);
}

static int send_request(int fd, const char *text, size_t len, uint64_t deadline_ms,
			struct gs_err *err)
{
	for (;;) {
		int r;

		if (send(fd, text, len, MSG_NOSIGNAL) >= 0)
			return 0;
		if (errno == EINTR)
			continue;
		if (errno == EPIPE || errno == ECONNRESET)
			return gs_err_set(err, EPROTO, "the agent hung up");
		if (errno != EAGAIN)
			return gs_err_errno(err, errno, "send to the agent");
		r = wait_for(fd, POLLOUT, deadline_ms, err);
		if (r < 0)
			return r;
	}
}

/* Gives the bytes of one packet in @buf, which has room for GS_AGENT_PACKET_MAX. */
static int receive_packet(int fd, char *buf, size_t *ret_len, uint64_t deadline_ms,
			  struct gs_err *err)
{
	for (;;) {
		int r = wait_for(fd, POLLIN, deadline_ms, err);
		ssize_t n;

		if (r < 0)
			return r;
		/* MSG_TRUNC: the packet's length, also where it is more than fits. */
		n = recv(fd, buf, GS_AGENT_PACKET_MAX, MSG_TRUNC);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n == 0 || (n < 0 && errno == ECONNRESET))
			return gs_err_set(err, EPROTO, "the agent hung up without an answer");
		if (n < 0)
			return gs_err_errno(err, errno, "receive from the agent");
		if (n > GS_AGENT_PACKET_MAX)
			return gs_err_set(err, EPROTO, "the agent's packet is larger than %d bytes",
					  GS_AGENT_PACKET_MAX);
		*ret_len = (size_t)n;
		return 0;
	}
}

/* Gives the bytes of the answer: of packets up to the first that is not full. */
static int receive(int fd, struct gs_buf *answer, uint64_t deadline_ms, struct gs_err *err)
{
	cleanup_free char *packet = gs_malloc(GS_AGENT_PACKET_MAX);
	size_t n;

	do {
		int r = receive_packet(fd, packet, &n, deadline_ms, err);

		if (r < 0)
			return r;
		if (answer->len + n > GS_AGENT_ANSWER_MAX)
			return gs_err_set(err, EPROTO, "the agent's answer is larger than %d bytes",
					  GS_AGENT_ANSWER_MAX);
		gs_buf_add(answer, packet, n);
	} while (n == GS_AGENT_PACKET_MAX);
	return 0;
}

static int judge(json_t *answer, struct gs_err *err)
{
	json_t *v = json_object_get(answer, "v"), *ok = json_object_get(answer, "ok");
	const char *why = json_string_value(json_object_get(answer, "error"));

	if (!json_is_integer(v) || json_integer_value(v) != GS_AGENT_VERSION)
		return gs_err_set(err, EPROTO, "the agent's answer is not of version %d",
				  GS_AGENT_VERSION);
	if (!json_is_boolean(ok))
		return gs_err_set(err, EPROTO, "the agent's answer has no \"ok\"");
	if (json_is_true(ok))
		return 0;
	return gs_err_set(err, EREMOTEIO, "%s",
			  why && *why ? why : "the agent refused without a reason");
}

int gs_agent_ask(const char *run_dir, json_t *request, uint64_t deadline_ms, json_t **ret,
		 struct gs_err *err)
{
	cleanup_free char *text = json_dumps(request, JSON_COMPACT);
	cleanup_json json_t *answer = NULL;
	cleanup_buf struct gs_buf got = { 0 };
	cleanup_close int fd = -1;
	struct gs_err why;
	int r;

	if (!text || strlen(text) > GS_AGENT_PACKET_MAX)
		return gs_err_set(err, EINVAL, "the request is no packet for the agent");
	fd = open_agent(run_dir, deadline_ms, err);
	if (fd < 0)
		return fd;
	r = send_request(fd, text, strlen(text), deadline_ms, err);
	if (r == 0)
		r = receive(fd, &got, deadline_ms, err);
	if (r < 0)
		return r;
	r = gs_json_parse("the agent's answer", got.data, got.len, &answer, &why);
	if (r < 0)
		return gs_err_set(err, EPROTO, "%s", why.msg);
	r = judge(answer, err);
	if (r == 0 && ret)
		*ret = gs_steal(answer);
	return r;
}
