/* SPDX-License-Identifier: Apache-2.0 */
/* Proper requests as lists of attributes, so that one attribute at a time can be spoiled. */
#ifndef GPUSHARE_TESTS_VM_NLREQ_H
#define GPUSHARE_TESTS_VM_NLREQ_H

#include "tests/vm/programs/nl.h"

enum form { TEXT, LIST, NAMES, FLAG, U8, U32, U64 };

/* An attribute of a proper request. */
struct part {
	uint16_t type;
	enum form form;
	bool needed;
	unsigned int most; /* entries of a list, bytes of a text */
	char data[2400]; /* without its head */
	size_t len;
};

struct request {
	const char *name;
	uint16_t family;
	uint8_t cmd;
	bool dump;
	struct part parts[6];
	size_t n;
};

static inline struct part *add(struct request *req, uint16_t type, enum form form, bool needed,
			       unsigned int most)
{
	struct part *part = &req->parts[req->n++];

	*part = (struct part){ .type = type, .form = form, .needed = needed, .most = most };
	return part;
}

static inline void add_data(struct request *req, uint16_t type, enum form form, bool needed,
			    const void *data, size_t len)
{
	struct part *part = add(req, type, form, needed, 0);

	memcpy(part->data, data, len);
	part->len = len;
}

static inline void add_u32(struct request *req, uint16_t type, bool needed, uint32_t n)
{
	add_data(req, type, U32, needed, &n, sizeof(n));
}

static inline void add_u64(struct request *req, uint16_t type, bool needed, uint64_t n)
{
	add_data(req, type, U64, needed, &n, sizeof(n));
}

static inline void add_u8(struct request *req, uint16_t type, uint8_t n)
{
	add_data(req, type, U8, true, &n, sizeof(n));
}

static inline void add_text(struct request *req, uint16_t type, bool needed, const char *s)
{
	add_data(req, type, TEXT, needed, s, strlen(s) + 1);
	req->parts[req->n - 1].most = GS_NAME_MAX;
}

static inline void add_list(struct request *req, uint16_t type, bool needed, unsigned int most,
			    const uint32_t *v, size_t n)
{
	add_data(req, type, LIST, needed, v, n * sizeof(*v));
	req->parts[req->n - 1].most = most;
}

static inline size_t names_into(char *data, const char *const *names, size_t n)
{
	struct nl_msg msg;

	msg.len = 0;
	nl_put_names(&msg, names, n);
	memcpy(data, msg.buf + NLA_HDRLEN, msg.len - NLA_HDRLEN);
	return msg.len - NLA_HDRLEN;
}

static inline void add_names(struct request *req, const char *name)
{
	struct part *part = add(req, GS_A_HOLDINGS, NAMES, true, GS_LINKS_MAX);

	part->len = names_into(part->data, &name, 1);
}

static inline uint16_t type_of(const struct part *part)
{
	return part->form == NAMES ? part->type | NLA_F_NESTED : part->type;
}

static inline void begin(struct nl_msg *msg, const struct request *req)
{
	nl_start(msg, req->family, req->cmd);
	if (req->dump)
		nl_hdr(msg)->nlmsg_flags |= NLM_F_DUMP;
}

/* The request with another attribute in place of number @i; @data NULL with @len 0: with none. */
static inline void with(struct nl_msg *msg, const struct request *req, size_t i, uint16_t type,
			const void *data, size_t len)
{
	begin(msg, req);
	for (size_t j = 0; j < req->n; j++) {
		const struct part *part = &req->parts[j];

		if (j != i)
			nl_put(msg, type_of(part), part->data, part->len);
		else if (type)
			nl_put(msg, type, data, len);
	}
}

static inline void proper(struct nl_msg *msg, const struct request *req)
{
	with(msg, req, SIZE_MAX, 0, NULL, 0);
}

#endif
