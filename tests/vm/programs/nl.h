/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For programs that say to the kernel module what no proper client would: requests byte by byte,
 * the answer as it came, and what the module keeps as text, to see that nothing has changed.
 */
#ifndef GPUSHARE_TESTS_VM_NL_H
#define GPUSHARE_TESTS_VM_NL_H

#include <errno.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/klink.h"
#include "common/kname.h"
#include "common/knl.h"
#include "common/xalloc.h"

/* Ends the program: it could not even begin. */
static inline void __attribute__((noreturn, format(printf, 1, 2))) nl_die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)fputs("# ", stdout);
	(void)vprintf(format, args);
	(void)puts("");
	va_end(args);
	(void)fflush(stdout);
	exit(3);
}

/* ---- Results: a line each, which the suite script makes a test. */

static int nl_failures;

/* One result; the format says why where it is not ok. */
static inline void __attribute__((format(printf, 3, 4)))
nl_result(bool good, const char *name, const char *format, ...)
{
	va_list args;

	printf("%s %s\n", good ? "ok" : "not ok", name);
	if (!good) {
		nl_failures++;
		va_start(args, format);
		(void)fputs("# ", stdout);
		(void)vprintf(format, args);
		(void)puts("");
		va_end(args);
	}
	(void)fflush(stdout);
}

/* ---- Requests. */

#define NL_MAX 65536

/* A message that is put together; attributes may be as wrong as one likes. */
struct nl_msg {
	char buf[NL_MAX] __attribute__((aligned(4)));
	size_t len;
};

/* The heads. */
static inline struct nlmsghdr *nl_hdr(struct nl_msg *msg)
{
	return (void *)msg->buf;
}

static inline struct genlmsghdr *nl_genl(struct nl_msg *msg)
{
	return (void *)(msg->buf + NLMSG_HDRLEN);
}

/* Starts a request. */
static inline void nl_start(struct nl_msg *msg, uint16_t family, uint8_t cmd)
{
	memset(msg->buf, 0, NLMSG_HDRLEN + GENL_HDRLEN);
	msg->len = NLMSG_HDRLEN + GENL_HDRLEN;
	nl_hdr(msg)->nlmsg_type = family;
	nl_hdr(msg)->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
	nl_genl(msg)->cmd = cmd;
	nl_genl(msg)->version = GS_GENL_VERSION;
}

/* Adds an attribute of any length; those that the message has no room for are left out. */
static inline struct nlattr *nl_put(struct nl_msg *msg, uint16_t type, const void *data, size_t len)
{
	struct nlattr *attr = (void *)(msg->buf + msg->len);

	if (msg->len + NLA_HDRLEN + NLA_ALIGN(len) > sizeof(msg->buf) || len > 65000)
		return attr;
	memset(attr, 0, NLA_HDRLEN + NLA_ALIGN(len));
	attr->nla_type = type;
	attr->nla_len = (uint16_t)(NLA_HDRLEN + len);
	if (len)
		memcpy((char *)attr + NLA_HDRLEN, data, len);
	msg->len += NLA_HDRLEN + NLA_ALIGN(len);
	return attr;
}

static inline void nl_put_str(struct nl_msg *msg, uint16_t type, const char *s)
{
	nl_put(msg, type, s, strlen(s) + 1);
}

static inline void nl_put_u32(struct nl_msg *msg, uint16_t type, uint32_t n)
{
	nl_put(msg, type, &n, sizeof(n));
}

static inline void nl_put_u64(struct nl_msg *msg, uint16_t type, uint64_t n)
{
	nl_put(msg, type, &n, sizeof(n));
}

static inline void nl_put_u8(struct nl_msg *msg, uint16_t type, uint8_t n)
{
	nl_put(msg, type, &n, sizeof(n));
}

/* A list of names, as GS_A_HOLDINGS is one. */
static inline void nl_put_names(struct nl_msg *msg, const char *const *names, size_t n)
{
	size_t begin = msg->len;
	struct nlattr *nest = nl_put(msg, GS_A_HOLDINGS | NLA_F_NESTED, NULL, 0);

	for (size_t i = 0; i < n; i++)
		nl_put_str(msg, GS_A_NAME, names[i]);
	nest->nla_len = (uint16_t)(msg->len - begin);
}

/* ---- Sockets. */

struct nl {
	int fd;
	uint16_t family;
	uint32_t group;
	uint32_t seq;
};

/* What the kernel answered. */
struct nl_said {
	int code; /* 0, or the errno */
	char text[256]; /* its words, or "" */
	uint32_t offset; /* in the request, of what it is about; 0: not said */
	unsigned int messages; /* before the last one */
};

/* A socket with extended acks, bound; -1 with errno. */
static inline int nl_socket(void)
{
	static const int options[] = { NETLINK_EXT_ACK, NETLINK_CAP_ACK };
	struct sockaddr_nl address = { .nl_family = AF_NETLINK };
	struct timeval timeout = { .tv_sec = 20 };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC), on = 1;

	if (fd < 0)
		return -1;
	for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++)
		(void)setsockopt(fd, SOL_NETLINK, options[i], &on, sizeof(on));
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	if (bind(fd, (void *)&address, sizeof(address)) == 0)
		return fd;
	(void)close(fd);
	return -1;
}

/* The module's numbers, as a client looks them up; ends the program without the module. */
static inline void nl_family(struct nl *nl)
{
	struct gs_knl ask = { 0 };
	struct gs_kfamily family;
	struct gs_err err;

	if (gs_knl_open(&ask, 0, &err) < 0 ||
	    gs_knl_family(&ask, GS_GENL_NAME, GS_MCGRP_EVENTS, &family, &err) < 0)
		nl_die("%s", err.msg);
	gs_knl_close(&ask);
	nl->family = family.id;
	nl->group = family.group;
}

/* Both. */
static inline void nl_open(struct nl *nl)
{
	nl->fd = nl_socket();
	if (nl->fd < 0)
		nl_die("a netlink socket: %s", strerror(errno));
	nl_family(nl);
}

/* The extended ack behind an error or an end. */
static inline void nl_read_tlvs(const char *at, size_t len, struct nl_said *said)
{
	while (len >= NLA_HDRLEN) {
		const struct nlattr *attr = (const void *)at;
		const char *data = at + NLA_HDRLEN;
		size_t step = NLA_ALIGN((size_t)attr->nla_len);

		if (attr->nla_len < NLA_HDRLEN || attr->nla_len > len)
			return;
		if ((attr->nla_type & NLA_TYPE_MASK) == NLMSGERR_ATTR_MSG)
			(void)snprintf(said->text, sizeof(said->text), "%.*s",
				       (int)(attr->nla_len - NLA_HDRLEN), data);
		if ((attr->nla_type & NLA_TYPE_MASK) == NLMSGERR_ATTR_OFFS)
			memcpy(&said->offset, data, sizeof(said->offset));
		if (step >= len)
			return;
		at += step;
		len -= step;
	}
}

/* Is this the last message of the answer? Reads what it says. */
static inline bool nl_last(const struct nlmsghdr *nlh, struct nl_said *said)
{
	const char *payload = (const char *)nlh + NLMSG_HDRLEN;
	size_t len = nlh->nlmsg_len - NLMSG_HDRLEN, head = sizeof(int);
	int code = 0;

	if (nlh->nlmsg_type != NLMSG_ERROR && nlh->nlmsg_type != NLMSG_DONE) {
		said->messages++;
		return false;
	}
	if (len >= sizeof(code))
		memcpy(&code, payload, sizeof(code));
	said->code = -code;
	if (nlh->nlmsg_type == NLMSG_ERROR)
		head = sizeof(struct nlmsgerr);
	if ((nlh->nlmsg_flags & NLM_F_ACK_TLVS) && len > head)
		nl_read_tlvs(payload + head, len - head, said);
	return true;
}

/*
 * Sends a message and reads the answer to its end: 0, or the errno that the kernel answered with;
 * -1 when there was no answer, with errno in said->code.
 */
static inline int nl_ask(struct nl *nl, struct nl_msg *msg, struct nl_said *said)
{
	static _Thread_local char buf[NL_MAX] __attribute__((aligned(4)));
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	struct iovec iov = { .iov_base = msg->buf, .iov_len = msg->len };
	struct msghdr hdr = {
		.msg_name = &kernel, .msg_namelen = sizeof(kernel), .msg_iov = &iov, .msg_iovlen = 1
	};

	*said = (struct nl_said){ 0 };
	nl_hdr(msg)->nlmsg_seq = ++nl->seq;
	if (!nl_hdr(msg)->nlmsg_len)
		nl_hdr(msg)->nlmsg_len = (uint32_t)msg->len;
	if (sendmsg(nl->fd, &hdr, 0) < 0) {
		said->code = errno;
		return -1;
	}
	for (;;) {
		ssize_t n = recv(nl->fd, buf, sizeof(buf), 0);
		const char *at = buf;

		if (n < 0) {
			said->code = errno;
			return -1;
		}
		while (n >= NLMSG_HDRLEN) {
			const struct nlmsghdr *nlh = (const void *)at;

			if (nlh->nlmsg_len < NLMSG_HDRLEN || nlh->nlmsg_len > (size_t)n)
				break;
			if (nlh->nlmsg_seq == nl->seq && nl_last(nlh, said))
				return said->code;
			at += NLMSG_ALIGN(nlh->nlmsg_len);
			n -= (ssize_t)NLMSG_ALIGN(nlh->nlmsg_len);
		}
	}
}

/* ---- What the module keeps. */

static inline void nl_text_holding(const struct gs_kholding *h, struct gs_buf *text)
{
	gs_buf_addf(text, "holding %s state=%s seq=%llu files=%u times=%u,%u,%u devs=", h->name,
		    gs_kname_state(h->state), (unsigned long long)h->seq, h->files,
		    h->lend_after_ms, h->hold_max_ms, h->settle_ms);
	for (size_t i = 0; i < h->devs.n; i++)
		gs_buf_addf(text, "%x,", h->devs.v[i]);
	gs_buf_addf(text, "\n");
}

static inline void nl_text_watch(const struct gs_kwatch *w, struct gs_buf *text)
{
	gs_buf_addf(text, "watch %s role=%u pid=%u cgroup=%llu,%d kill=%d revoked=%d files=%u in=",
		    w->name, w->role, w->pid, (unsigned long long)w->cgroup_id, w->cgroup_v1,
		    w->kill_on_return, w->revoked, w->files);
	for (size_t i = 0; i < w->holdings.n; i++)
		gs_buf_addf(text, "%s,", w->holdings.v[i]);
	gs_buf_addf(text, "\n");
}

/* All of it but counts of touches, as text that the caller frees. */
static inline char *nl_text(struct gs_klink *link)
{
	cleanup_kstate struct gs_kstate state = { 0 };
	struct gs_buf text = { 0 };
	struct gs_err err;

	if (gs_klink_dump(link, &state, &err) < 0)
		nl_die("dump: %s", err.msg);
	gs_buf_addf(&text, "agent=%d port=%u event=%llu\n", state.status.agent_alive,
		    state.status.agent_port, (unsigned long long)state.status.event_seq);
	for (size_t i = 0; i < state.n_nodes; i++)
		gs_buf_addf(&text, "node %x driver=%s funcs=%x module=%s\n", state.nodes[i].dev,
			    state.nodes[i].driver, state.nodes[i].funcs, state.nodes[i].module);
	for (size_t i = 0; i < state.n_holdings; i++)
		nl_text_holding(&state.holdings[i], &text);
	for (size_t i = 0; i < state.n_watches; i++)
		nl_text_watch(&state.watches[i], &text);
	return text.data;
}

#endif
