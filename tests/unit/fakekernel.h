/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel for klink and kevent: takes what they send to netlink and answers as the module would,
 * or as a test wants it. A test program that uses it is linked with FAKEKERNEL of flags.mk.
 */
#ifndef GPUSHARE_TESTS_FAKEKERNEL_H
#define GPUSHARE_TESTS_FAKEKERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <libmnl/libmnl.h>

#include "uapi/gpushare.h"

/* A message under construction. */
struct fk_msg {
	char buf[65536 * 2] __attribute__((aligned(8)));
	struct nlmsghdr *nlh; /* in buf */
};

extern struct fk {
	/* What the kernel is like; fk_reset() sets a loaded module of our ABI. */
	bool loaded;
	uint16_t family;
	uint32_t group, abi;
	uint64_t event_seq; /* in its status */
	int join_errno; /* answer to joining a group */

	/*
	 * Answers a request of the family to the socket @fd itself, or says false: then it is
	 * answered with a status if it asks for one, and an ack.
	 */
	bool (*answer)(int fd, const struct nlmsghdr *req);

	/* What was seen. */
	unsigned int asked[256]; /* requests of the family, by command */
	unsigned int lookups; /* of families */
	unsigned int joined; /* the group joined last */
	unsigned int polls; /* poll(2) that found nothing */
	unsigned int opened; /* sockets */
	struct fk_msg last; /* the last request of the family */
} fk;

/* To the beginning; forgets what is unread. */
void fk_reset(void);

/* Starts a message of netlink type @type with generic netlink's head; seq of @req (NULL: 0). */
void fk_start(struct fk_msg *msg, const struct nlmsghdr *req, uint16_t type, uint8_t cmd,
	      uint16_t flags);

/* A message of the family that answers @req. */
void fk_start_answer(struct fk_msg *msg, const struct nlmsghdr *req, uint8_t cmd);

/* Puts the message, or any bytes, into the queue of the socket. */
void fk_send(int fd, const struct fk_msg *msg);
void fk_send_raw(int fd, const void *data, size_t len);
/* The same from another sender than the kernel. */
void fk_send_from(int fd, const struct fk_msg *msg, uint32_t port);

/* Makes a recvmsg(2) fail. */
void fk_send_errno(int fd, int code);

/* Ends the answer to @req: an ack with an errno (0: done), words and an offset where given. */
void fk_ack(int fd, const struct nlmsghdr *req, int code, const char *words, uint32_t offset);

/* Ends a dump. */
void fk_done(int fd, const struct nlmsghdr *req, int code, const char *words, uint16_t flags);

/* A notice of the controller that the module came or went. */
void fk_notice(int fd, uint8_t cmd, const char *name, uint16_t family);

/* An event with that number and nothing but its kind; to be completed and sent. */
void fk_start_event(struct fk_msg *msg, enum gs_event event, uint64_t seq);

/* The attribute of the request in fk.last; NULL: it has none. */
const struct nlattr *fk_asked_attr(uint16_t type);

/* How many bytes are unread for the socket. */
size_t fk_unread(int fd);

#endif
