// SPDX-License-Identifier: Apache-2.0
/* A kernel that answers as tests want it. The sockets are real, what goes through them is not. */
#include <errno.h>
#include <linux/genetlink.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "common/cleanup.h"
#include "tests/unit/fakekernel.h"

#define QUEUE_MAX 256

struct fk fk;

/* What is unread, in order. */
static struct datagram {
	int fd;
	int code; /* an errno instead */
	uint32_t port; /* of the sender */
	size_t len;
	char *data;
} queue[QUEUE_MAX];
static size_t queued;

static void drop(size_t i)
{
	free(queue[i].data);
	memmove(&queue[i], &queue[i + 1], (queued - i - 1) * sizeof(queue[0]));
	queued--;
}

static void purge(int fd)
{
	for (size_t i = queued; i-- > 0;)
		if (queue[i].fd == fd)
			drop(i);
}

static struct datagram *find(int fd)
{
	for (size_t i = 0; i < queued; i++)
		if (queue[i].fd == fd)
			return &queue[i];
	return NULL;
}

static void push(struct datagram d, const void *data)
{
	if (queued == QUEUE_MAX)
		abort();
	d.data = malloc(d.len + 1);
	if (!d.data)
		abort();
	if (data && d.len)
		memcpy(d.data, data, d.len);
	queue[queued++] = d;
}

void fk_reset(void)
{
	while (queued)
		drop(0);
	fk = (struct fk){ .loaded = true, .family = 30, .group = 7, .abi = GS_ABI_VERSION };
}

void fk_start(struct fk_msg *msg, const struct nlmsghdr *req, uint16_t type, uint8_t cmd,
	      uint16_t flags)
{
	struct genlmsghdr *genl;

	msg->nlh = mnl_nlmsg_put_header(msg->buf);
	msg->nlh->nlmsg_type = type;
	msg->nlh->nlmsg_flags = flags;
	msg->nlh->nlmsg_seq = req ? req->nlmsg_seq : 0;
	genl = mnl_nlmsg_put_extra_header(msg->nlh, sizeof(*genl));
	genl->cmd = cmd;
	genl->version = GS_GENL_VERSION;
}

void fk_start_answer(struct fk_msg *msg, const struct nlmsghdr *req, uint8_t cmd)
{
	fk_start(msg, req, fk.family, cmd, 0);
}

void fk_send(int fd, const struct fk_msg *msg)
{
	fk_send_from(fd, msg, 0);
}

void fk_send_from(int fd, const struct fk_msg *msg, uint32_t port)
{
	push((struct datagram){ .fd = fd, .len = msg->nlh->nlmsg_len, .port = port }, msg->nlh);
}

void fk_send_raw(int fd, const void *data, size_t len)
{
	push((struct datagram){ .fd = fd, .len = len }, data);
}

void fk_send_errno(int fd, int code)
{
	push((struct datagram){ .fd = fd, .code = code }, NULL);
}

void fk_ack(int fd, const struct nlmsghdr *req, int code, const char *words, uint32_t offset)
{
	struct nlmsgerr error = { .error = -code, .msg = *req };
	struct fk_msg msg;

	msg.nlh = mnl_nlmsg_put_header(msg.buf);
	msg.nlh->nlmsg_type = NLMSG_ERROR;
	msg.nlh->nlmsg_flags = NLM_F_CAPPED;
	msg.nlh->nlmsg_seq = req->nlmsg_seq;
	memcpy(mnl_nlmsg_put_extra_header(msg.nlh, sizeof(error)), &error, sizeof(error));
	if (words)
		mnl_attr_put_strz(msg.nlh, NLMSGERR_ATTR_MSG, words);
	if (offset)
		mnl_attr_put_u32(msg.nlh, NLMSGERR_ATTR_OFFS, offset);
	if (words || offset)
		msg.nlh->nlmsg_flags |= NLM_F_ACK_TLVS;
	fk_send(fd, &msg);
}

void fk_done(int fd, const struct nlmsghdr *req, int code, const char *words, uint16_t flags)
{
	struct fk_msg msg;
	int error = -code;

	msg.nlh = mnl_nlmsg_put_header(msg.buf);
	msg.nlh->nlmsg_type = NLMSG_DONE;
	msg.nlh->nlmsg_flags = NLM_F_MULTI | flags;
	msg.nlh->nlmsg_seq = req->nlmsg_seq;
	memcpy(mnl_nlmsg_put_extra_header(msg.nlh, sizeof(error)), &error, sizeof(error));
	if (words) {
		mnl_attr_put_strz(msg.nlh, NLMSGERR_ATTR_MSG, words);
		msg.nlh->nlmsg_flags |= NLM_F_ACK_TLVS;
	}
	fk_send(fd, &msg);
}

static void put_family(struct fk_msg *msg, const char *name, uint16_t family)
{
	mnl_attr_put_strz(msg->nlh, CTRL_ATTR_FAMILY_NAME, name);
	mnl_attr_put_u16(msg->nlh, CTRL_ATTR_FAMILY_ID, family);
	mnl_attr_put_u32(msg->nlh, CTRL_ATTR_VERSION, GS_GENL_VERSION);
}

static void put_group(struct fk_msg *msg, const char *name, uint32_t id)
{
	struct nlattr *groups = mnl_attr_nest_start(msg->nlh, CTRL_ATTR_MCAST_GROUPS);
	struct nlattr *group = mnl_attr_nest_start(msg->nlh, 1);

	mnl_attr_put_u32(msg->nlh, CTRL_ATTR_MCAST_GRP_ID, id);
	mnl_attr_put_strz(msg->nlh, CTRL_ATTR_MCAST_GRP_NAME, name);
	mnl_attr_nest_end(msg->nlh, group);
	mnl_attr_nest_end(msg->nlh, groups);
}

void fk_notice(int fd, uint8_t cmd, const char *name, uint16_t family)
{
	struct fk_msg msg;

	fk_start(&msg, NULL, GENL_ID_CTRL, cmd, 0);
	put_family(&msg, name, family);
	fk_send(fd, &msg);
}

void fk_start_event(struct fk_msg *msg, enum gs_event event, uint64_t seq)
{
	fk_start(msg, NULL, fk.family, GS_CMD_EVENT, 0);
	mnl_attr_put_u8(msg->nlh, GS_A_EVENT, event);
	mnl_attr_put_u64(msg->nlh, GS_A_EVENT_SEQ, seq);
}

const struct nlattr *fk_asked_attr(uint16_t type)
{
	const struct nlattr *attr, *found = NULL;

	mnl_attr_for_each(attr, fk.last.nlh, GENL_HDRLEN) {
		if (mnl_attr_get_type(attr) == type)
			found = attr;
	}
	return found;
}

size_t fk_unread(int fd)
{
	size_t sum = 0;

	for (size_t i = 0; i < queued; i++)
		if (queue[i].fd == fd)
			sum += queue[i].len;
	return sum;
}

/* The controller. */
static void look_up(int fd, const struct nlmsghdr *req)
{
	struct fk_msg msg;
	const struct nlattr *attr;
	const char *name = "";

	fk.lookups++;
	mnl_attr_for_each(attr, req, GENL_HDRLEN) {
		if (mnl_attr_get_type(attr) == CTRL_ATTR_FAMILY_NAME)
			name = mnl_attr_get_str(attr);
	}
	fk_start(&msg, req, GENL_ID_CTRL, CTRL_CMD_NEWFAMILY, 0);
	if (strcmp(name, "nlctrl") == 0) {
		put_family(&msg, name, GENL_ID_CTRL);
		put_group(&msg, "notify", GENL_ID_CTRL);
	} else if (strcmp(name, GS_GENL_NAME) == 0 && fk.loaded) {
		put_family(&msg, name, fk.family);
		put_group(&msg, GS_MCGRP_EVENTS, fk.group);
	} else {
		fk_ack(fd, req, ENOENT, NULL, 0);
		return;
	}
	fk_send(fd, &msg);
	fk_ack(fd, req, 0, NULL, 0);
}

static void of_family(int fd, const struct nlmsghdr *req)
{
	const struct genlmsghdr *genl = mnl_nlmsg_get_payload(req);
	struct fk_msg msg;

	fk.asked[genl->cmd]++;
	memcpy(fk.last.buf, req, req->nlmsg_len);
	fk.last.nlh = (void *)fk.last.buf;
	if (fk.answer && fk.answer(fd, req))
		return;
	if (genl->cmd == GS_CMD_STATUS) {
		fk_start_answer(&msg, req, GS_CMD_STATUS);
		mnl_attr_put_u32(msg.nlh, GS_A_ABI, fk.abi);
		mnl_attr_put_u64(msg.nlh, GS_A_EVENT_SEQ, fk.event_seq);
		fk_send(fd, &msg);
	}
	fk_ack(fd, req, 0, NULL, 0);
}

/* ---- What stands in for the functions that klink and kevent call. */

ssize_t __wrap_mnl_socket_sendto(const struct mnl_socket *nl, const void *data, size_t len);
int __wrap_mnl_socket_bind(struct mnl_socket *nl, unsigned int groups, pid_t pid);
int __wrap_mnl_socket_setsockopt(const struct mnl_socket *nl, int type, void *buf, socklen_t len);
ssize_t __wrap_recvmsg(int fd, struct msghdr *msg, int flags);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout);

ssize_t __wrap_mnl_socket_sendto(const struct mnl_socket *nl, const void *data, size_t len)
{
	const struct nlmsghdr *req = data;
	int fd = mnl_socket_get_fd(nl);

	if (req->nlmsg_len != len || !(req->nlmsg_flags & NLM_F_REQUEST) ||
	    !(req->nlmsg_flags & NLM_F_ACK))
		abort();
	if (req->nlmsg_type == GENL_ID_CTRL)
		look_up(fd, req);
	else if (fk.loaded && req->nlmsg_type == fk.family)
		of_family(fd, req);
	else
		fk_ack(fd, req, ENOENT, NULL, 0);
	return (ssize_t)len;
}

/* A new socket has nothing to read. */
int __wrap_mnl_socket_bind(struct mnl_socket *nl, unsigned int groups, pid_t pid)
{
	purge(mnl_socket_get_fd(nl));
	fk.opened++;
	return groups || pid != MNL_SOCKET_AUTOPID ? -1 : 0;
}

int __wrap_mnl_socket_setsockopt(const struct mnl_socket *nl, int type, void *buf, socklen_t len)
{
	(void)nl;
	if (type != NETLINK_ADD_MEMBERSHIP || len != sizeof(int))
		return 0;
	if (fk.join_errno) {
		errno = fk.join_errno;
		return -1;
	}
	fk.joined = *(unsigned int *)buf;
	return 0;
}

ssize_t __wrap_recvmsg(int fd, struct msghdr *msg, int flags)
{
	struct datagram *d = find(fd);
	struct sockaddr_nl from = { .nl_family = AF_NETLINK };
	size_t len;

	if (!d || d->code || flags) {
		errno = d && d->code ? d->code : EAGAIN;
		if (d)
			drop((size_t)(d - queue));
		return -1;
	}
	from.nl_pid = d->port;
	memcpy(msg->msg_name, &from, sizeof(from));
	msg->msg_namelen = sizeof(from);
	len = d->len < msg->msg_iov[0].iov_len ? d->len : msg->msg_iov[0].iov_len;
	memcpy(msg->msg_iov[0].iov_base, d->data, len);
	msg->msg_flags = len < d->len ? MSG_TRUNC : 0;
	drop((size_t)(d - queue));
	return (ssize_t)len;
}

/* Time passes at once. */
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout)
{
	(void)timeout;
	if (n != 1)
		abort();
	if (find(fds[0].fd))
		return 1;
	fk.polls++;
	return 0;
}
