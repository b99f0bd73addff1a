/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generic netlink as klink and kevent need it: a request and its answers, the kernel's own words
 * for a refusal, and the lookup of a family by name.
 */
#ifndef GPUSHARE_COMMON_KNL_H
#define GPUSHARE_COMMON_KNL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <libmnl/libmnl.h>

#include "common/err.h"

/*
 * Room for one datagram of the kernel. Its dumps fill up to 32 KiB of what the caller of recvmsg(2)
 * offers, so that a large watch is not cut into the page that a smaller reader would get.
 */
#define GS_KNL_RECV_MAX 65536
/* Room for a request: a watch with GS_LINKS_MAX names of GS_NAME_MAX bytes has 2 KB. */
#define GS_KNL_SEND_MAX 16384

/* A socket, for one thread at a time. Starts as {0}. */
struct gs_knl {
	struct mnl_socket *sock;
	unsigned int seq;
	char *buf; /* GS_KNL_RECV_MAX bytes */
	bool refused; /* the last request was answered with an error by the kernel, ... */
	bool said; /* ... which said why */
	bool interrupted; /* the last dump saw a change: it is not consistent */
};

/*
 * Opens and binds a socket: extended acks, strict checking, close-on-exec, a receive timeout;
 * @flags may add SOCK_NONBLOCK. The caller closes it; nothing to close after an error.
 */
int gs_knl_open(struct gs_knl *nl, int flags, struct gs_err *err);
void gs_knl_close(struct gs_knl *nl);

/*
 * Receives one datagram that the kernel itself sent into nl->buf; gives its length. -EAGAIN: none
 * (in time); -ENOBUFS: some were lost; -EMSGSIZE: it is larger than the buffer, and gone; -EINTR.
 * Others' datagrams are passed over.
 */
int gs_knl_recv(struct gs_knl *nl, size_t *ret_len, struct gs_err *err);

/*
 * A request under construction. What does not fit any more makes gs_knl_ask() fail with -EMSGSIZE.
 */
struct gs_kreq {
	char buf[GS_KNL_SEND_MAX] __attribute__((aligned(4)));
	struct nlmsghdr *nlh; /* in buf */
	bool full;
};

/* Starts a request of the family with the number @family. */
void gs_kreq_start(struct gs_kreq *req, uint16_t family, uint8_t cmd, uint8_t version);

/* Add an attribute. */
void gs_kreq_u8(struct gs_kreq *req, uint16_t type, uint8_t value);
void gs_kreq_u32(struct gs_kreq *req, uint16_t type, uint32_t value);
void gs_kreq_u64(struct gs_kreq *req, uint16_t type, uint64_t value);
void gs_kreq_str(struct gs_kreq *req, uint16_t type, const char *value);
void gs_kreq_data(struct gs_kreq *req, uint16_t type, const void *data, size_t len);
void gs_kreq_flag(struct gs_kreq *req, uint16_t type);

/* Starts a nest, to be given to gs_kreq_nest_end() (also where it is NULL: no room). */
struct nlattr *gs_kreq_nest(struct gs_kreq *req, uint16_t type);
void gs_kreq_nest_end(struct gs_kreq *req, struct nlattr *nest);

/* Takes one message of an answer; an error is the request's, whose other messages still arrive. */
typedef int (*gs_knl_take)(const struct nlmsghdr *nlh, void *arg, struct gs_err *err);

/*
 * Sends the request and waits until the kernel said that it is done. @dump: NLM_F_DUMP; then
 * nl->interrupted tells whether the messages belong together. @take (may be NULL) gets each
 * message of the answer.
 * nl->refused: the error is the kernel's, and the message of @err its own words (nl->said), with
 * the name of the attribute that it is about, or else the text of the errno.
 * Otherwise -ETIMEDOUT; -EMSGSIZE: request or answer too large; -EPROTO: no proper message; an
 * errno of the socket. A socket with the rest of a dump in it is replaced by a new one, because
 * such a rest keeps the module from being unloaded.
 */
int gs_knl_ask(struct gs_knl *nl, struct gs_kreq *req, bool dump, gs_knl_take take, void *arg,
	       struct gs_err *err);

struct gs_kfamily {
	uint16_t id;
	uint32_t version;
	uint32_t group; /* of the multicast group asked for; 0: it has none of that name */
};

/*
 * Looks up the family @name and its multicast group @group. -ENOENT with nl->refused: there is none
 * now.
 */
int gs_knl_family(struct gs_knl *nl, const char *name, const char *group, struct gs_kfamily *ret,
		  struct gs_err *err);

/*
 * Is this a notice of the controller (GENL_ID_CTRL) about the family @name? Gives its command,
 * CTRL_CMD_NEWFAMILY or CTRL_CMD_DELFAMILY, and in @ret_id the family's number; 0: no.
 */
int gs_knl_notice(const struct nlmsghdr *nlh, const char *name, uint16_t *ret_id);

#endif
