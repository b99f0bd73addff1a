// SPDX-License-Identifier: Apache-2.0
/* Generic netlink: sockets, requests and answers. */
#include <errno.h>
#include <linux/genetlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "common/cleanup.h"
#include "common/knl.h"
#include "common/kname.h"
#include "common/xalloc.h"

/*
 * The kernel works a request off within sendmsg(2), so its answer is there at once. Only a kernel
 * that had no memory for one lets us wait.
 */
#define ANSWER_MAX_S 5

int gs_knl_open(struct gs_knl *nl, int flags, struct gs_err *err)
{
	static const int options[] = { NETLINK_EXT_ACK, NETLINK_CAP_ACK, NETLINK_GET_STRICT_CHK };
	struct timeval timeout = { .tv_sec = ANSWER_MAX_S };
	int on = 1;

	nl->sock = mnl_socket_open2(NETLINK_GENERIC, SOCK_CLOEXEC | flags);
	if (!nl->sock)
		return gs_err_errno(err, errno, "open a netlink socket");
	/* Without the kernel's words an error is still one; every kernel that we know has them. */
	for (size_t i = 0; i < GS_ARRAY_SIZE(options); i++)
		(void)mnl_socket_setsockopt(nl->sock, options[i], &on, sizeof(on));
	(void)setsockopt(mnl_socket_get_fd(nl->sock), SOL_SOCKET, SO_RCVTIMEO, &timeout,
			 sizeof(timeout));
	if (mnl_socket_bind(nl->sock, 0, MNL_SOCKET_AUTOPID) < 0) {
		int code = errno;

		gs_knl_close(nl);
		return gs_err_errno(err, code, "bind a netlink socket");
	}
	nl->buf = nl->buf ? nl->buf : gs_malloc(GS_KNL_RECV_MAX);
	return 0;
}

void gs_knl_close(struct gs_knl *nl)
{
	if (nl->sock)
		(void)mnl_socket_close(nl->sock);
	nl->sock = NULL;
	free(gs_steal(nl->buf));
}

int gs_knl_recv(struct gs_knl *nl, size_t *ret_len, struct gs_err *err)
{
	for (;;) {
		struct sockaddr_nl from = { 0 };
		struct iovec iov = { .iov_base = nl->buf, .iov_len = GS_KNL_RECV_MAX };
		struct msghdr msg = { .msg_name = &from,
				      .msg_namelen = sizeof(from),
				      .msg_iov = &iov,
				      .msg_iovlen = 1 };
		ssize_t n = recvmsg(mnl_socket_get_fd(nl->sock), &msg, 0);

		if (n < 0)
			return gs_err_errno(err, errno, "receive from the kernel");
		/* Port 0 is the kernel; whoever has CAP_NET_ADMIN here may write to us as well. */
		if (msg.msg_namelen != sizeof(from) || from.nl_pid != 0)
			continue;
		if (msg.msg_flags & MSG_TRUNC)
			return gs_err_set(err, EMSGSIZE,
					  "a message of the kernel is larger than %d bytes",
					  GS_KNL_RECV_MAX);
		*ret_len = (size_t)n;
		return 0;
	}
}

/* Attributes behind the fixed part of an answer's end. */
struct ack {
	const char *msg;
	uint32_t offset; /* in the request, of the attribute that it is about; 0: none */
};

static int take_ack(const struct nlattr *attr, void *data)
{
	struct ack *ack = data;
	unsigned int type = mnl_attr_get_type(attr);

	if (type == NLMSGERR_ATTR_MSG && mnl_attr_validate(attr, MNL_TYPE_NUL_STRING) == 0)
		ack->msg = mnl_attr_get_str(attr);
	if (type == NLMSGERR_ATTR_OFFS && mnl_attr_validate(attr, MNL_TYPE_U32) == 0)
		ack->offset = mnl_attr_get_u32(attr);
	return MNL_CB_OK;
}

/*
 * The kernel's checks of types and ranges name no attribute: they tell where in the request it
 * stands.
 */
static const char *attr_at(const struct gs_kreq *req, uint32_t offset)
{
	struct nlattr attr;

	if (req->nlh->nlmsg_type == GENL_ID_CTRL)
		return NULL;
	if (offset < NLMSG_HDRLEN + GENL_HDRLEN || offset > req->nlh->nlmsg_len - sizeof(attr))
		return NULL;
	memcpy(&attr, req->buf + offset, sizeof(attr));
	return gs_kname_attr(attr.nla_type & NLA_TYPE_MASK);
}

/* Fills @err with what the kernel says about its @code (positive); -@code. */
static int refused(struct gs_knl *nl, const struct gs_kreq *req, int code, const void *attrs,
		   size_t len, struct gs_err *err)
{
	struct ack ack = { 0 };
	const char *name;

	if (attrs)
		(void)mnl_attr_parse_payload(attrs, len, take_ack, &ack);
	nl->refused = true;
	nl->said = ack.msg && *ack.msg;
	name = ack.offset ? attr_at(req, ack.offset) : NULL;
	return gs_err_set(err, code, "%s%s%s%s", nl->said ? ack.msg : strerror(code),
			  name ? " (" : "", name ? name : "", name ? ")" : "");
}

/* NLMSG_ERROR: an errno or 0, the request or its head, attributes. */
static int read_error(struct gs_knl *nl, const struct gs_kreq *req, const struct nlmsghdr *nlh,
		      struct gs_err *err)
{
	const struct nlmsgerr *e = mnl_nlmsg_get_payload(nlh);
	size_t len = mnl_nlmsg_get_payload_len(nlh), head = sizeof(*e);
	bool has_attrs = nlh->nlmsg_flags & NLM_F_ACK_TLVS;

	if (len < head)
		return gs_err_set(err, EPROTO, "an answer of the kernel is cut short");
	if (e->error == 0)
		return 0;
	if (!(nlh->nlmsg_flags & NLM_F_CAPPED))
		head += MNL_ALIGN(e->msg.nlmsg_len) - sizeof(e->msg);
	if (head > len)
		has_attrs = false;
	return refused(nl, req, e->error < 0 ? -e->error : EPROTO,
		       has_attrs ? (const char *)e + head : NULL, has_attrs ? len - head : 0, err);
}

/* NLMSG_DONE: an errno or 0, attributes. */
static int read_done(struct gs_knl *nl, const struct gs_kreq *req, const struct nlmsghdr *nlh,
		     struct gs_err *err)
{
	const char *p = mnl_nlmsg_get_payload(nlh);
	size_t len = mnl_nlmsg_get_payload_len(nlh);
	bool has_attrs = nlh->nlmsg_flags & NLM_F_ACK_TLVS;
	int code = 0;

	if (len >= sizeof(code))
		memcpy(&code, p, sizeof(code));
	if (code >= 0)
		return 0;
	return refused(nl, req, -code, has_attrs ? p + sizeof(code) : NULL,
		       has_attrs ? len - sizeof(code) : 0, err);
}

/* One request's progress. */
struct asking {
	struct gs_knl *nl;
	const struct gs_kreq *req;
	gs_knl_take take;
	void *arg;
	bool done; /* the kernel has said its last word */
	int ret; /* the first error */
	struct gs_err *err;
};

static void one_message(struct asking *a, const struct nlmsghdr *nlh)
{
	struct gs_err err = { 0 };
	int r = 0;

	/* The rest of an answer that somebody gave up waiting for. */
	if (nlh->nlmsg_seq != a->nl->seq)
		return;
	if (nlh->nlmsg_flags & NLM_F_DUMP_INTR)
		a->nl->interrupted = true;
	if (nlh->nlmsg_type == NLMSG_ERROR) {
		a->done = true;
		r = read_error(a->nl, a->req, nlh, &err);
	} else if (nlh->nlmsg_type == NLMSG_DONE) {
		a->done = true;
		r = read_done(a->nl, a->req, nlh, &err);
	} else if (nlh->nlmsg_type >= NLMSG_MIN_TYPE && a->take) {
		r = a->take(nlh, a->arg, &err);
	}
	if (r < 0 && a->ret == 0) {
		a->ret = r;
		if (a->err)
			*a->err = err;
	}
}

/* Walks the messages in the buffer; -EPROTO where they don't fill it. */
static int walk(struct asking *a, size_t len)
{
	const struct nlmsghdr *nlh = (const void *)a->nl->buf;
	int left = (int)len;

	for (; !a->done && mnl_nlmsg_ok(nlh, left); nlh = mnl_nlmsg_next(nlh, &left))
		one_message(a, nlh);
	if (a->done || left <= 0)
		return 0;
	return gs_err_set(a->ret ? NULL : a->err, EPROTO, "a message of the kernel is cut short");
}

static int send_request(struct gs_knl *nl, const struct gs_kreq *req, struct gs_err *err)
{
	for (;;) {
		if (mnl_socket_sendto(nl->sock, req->nlh, req->nlh->nlmsg_len) >= 0)
			return 0;
		if (errno != EINTR)
			return gs_err_errno(err, errno, "send to the kernel");
	}
}

/* Reads until the kernel is done. An error that comes from the socket ends it before. */
static int read_answer(struct asking *a)
{
	while (!a->done) {
		struct gs_err err;
		size_t len = 0;
		int r = gs_knl_recv(a->nl, &len, &err);

		if (r == -EINTR)
			continue;
		if (r == -EAGAIN)
			r = gs_err_set(&err, ETIMEDOUT, "the kernel did not answer");
		if (r == 0)
			r = walk(a, len);
		else if (a->ret == 0 && a->err)
			*a->err = err;
		if (r < 0)
			return a->ret ? a->ret : r;
	}
	return a->ret;
}

int gs_knl_ask(struct gs_knl *nl, struct gs_kreq *req, bool dump, gs_knl_take take, void *arg,
	       struct gs_err *err)
{
	struct asking a = { .nl = nl, .req = req, .take = take, .arg = arg, .err = err };
	int r;

	nl->refused = nl->said = nl->interrupted = false;
	if (req->full)
		return gs_err_set(err, EMSGSIZE, "the request is larger than %d bytes",
				  GS_KNL_SEND_MAX);
	if (!nl->sock) {
		r = gs_knl_open(nl, 0, err);
		if (r < 0)
			return r;
	}
	req->nlh->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | (dump ? NLM_F_DUMP : 0);
	req->nlh->nlmsg_seq = ++nl->seq;
	r = send_request(nl, req, err);
	if (r == 0)
		r = read_answer(&a);
	if (dump && !a.done)
		gs_knl_close(nl);
	return r;
}
