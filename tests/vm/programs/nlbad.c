// SPDX-License-Identifier: Apache-2.0
/*
 * Says everything wrongly to the kernel module, one fault at a time: each request must be refused
 * with a message that names what is wrong, and nothing may have changed. The same request without
 * the fault is then taken, which shows that it was the fault.
 *
 *	nlbad NODE PID		NODE: a device node, not hooked yet; PID: a process in a container
 *
 * Prints a line for each attribute of each command.
 */
#include <fcntl.h>
#include <time.h>

#include "common/cleanup.h"
#include "tests/vm/programs/nlreq.h"

static struct nl nl;
static struct gs_klink *watching; /* another link, to see what the module keeps */
static char *before; /* what it kept */
static time_t beat;

/* ---- Trying one fault, and results for all of a kind. */

static unsigned int tries;
static struct gs_buf wrong;

static void __attribute__((format(printf, 1, 2))) complain(const char *format, ...)
{
	char line[512];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	if (wrong.len < 2000)
		gs_buf_addf(&wrong, "%s%s", wrong.len ? "\n# " : "", line);
}

/* The first line that differs. */
static void complain_change(const char *was, const char *is)
{
	size_t line = 0;

	for (size_t i = 0; was[i] == is[i] && was[i]; i++)
		if (was[i] == '\n')
			line = i + 1;
	complain("something changed, from \"%.*s\" to \"%.*s\"", (int)strcspn(was + line, "\n"),
		 was + line, (int)strcspn(is + line, "\n"), is + line);
}

static void end_kind(const char *command, const char *attr)
{
	char name[256], *now = nl_text(watching);

	if (strcmp(now, before) != 0)
		complain_change(before, now);
	free(before);
	before = now;
	(void)snprintf(name, sizeof(name), "%s, %s: refused, %u ways", command, attr, tries);
	nl_result(wrong.len == 0 && tries > 0, name, "%s", wrong.len ? wrong.data : "none tried");
	gs_buf_free(&wrong);
	tries = 0;
}

/* Without its heartbeat the module would notice that the agent is gone. */
static void stay_agent(void)
{
	struct nl_said said;
	struct nl_msg msg;
	time_t now = time(NULL);

	if (now == beat)
		return;
	beat = now;
	nl_start(&msg, nl.family, GS_CMD_HEARTBEAT);
	if (nl_ask(&nl, &msg, &said))
		nl_die("heartbeat: %s %s", strerror(said.code), said.text);
}

/* Does the message say what is wrong: in the module's own words, or by the attribute's place? */
static bool names_it(const struct nl_msg *msg, const struct nl_said *said, int about)
{
	uint16_t type;

	if (strncmp(said->text, "gpushare: ", 10) == 0 && strlen(said->text) > 15)
		return true;
	if (about < 0)
		return *said->text;
	if (!*said->text || said->offset + NLA_HDRLEN > msg->len)
		return false;
	memcpy(&type, msg->buf + said->offset + 2, sizeof(type));
	return said->offset && (type & NLA_TYPE_MASK) == about;
}

/* Sends a request that has a fault. @about: the attribute that has it, or -1. */
static void __attribute__((format(printf, 3, 4)))
try(struct nl_msg *msg, int about, const char *format, ...)
{
	struct nl_said said;
	char what[128];
	va_list args;
	int code;

	va_start(args, format);
	(void)vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	stay_agent();
	tries++;
	code = nl_ask(&nl, msg, &said);
	if (code == 0)
		complain("%s: was taken", what);
	else if (code < 0)
		complain("%s: no answer: %s", what, strerror(said.code));
	else if (!names_it(msg, &said, about))
		complain("%s: %s, the message does not say what: \"%s\" at %u", what,
			 strerrorname_np(said.code), said.text, said.offset);
}

/* ---- Faults that any attribute of a form can have. */

static char filler[60000];

static void try_length(const struct request *req, size_t i, size_t len)
{
	const struct part *part = &req->parts[i];
	struct nl_msg msg;

	memset(filler, 0, sizeof(filler));
	memcpy(filler, part->data, part->len);
	with(&msg, req, i, type_of(part), filler, len);
	try(&msg, part->type, "%zu bytes long", len);
}

static void bad_number(const struct request *req, size_t i)
{
	const struct part *part = &req->parts[i];
	struct nl_msg msg;

	for (size_t len = 0; len <= 2 * sizeof(uint64_t) + 1; len++)
		if (len != part->len)
			try_length(req, i, len);
	try_length(req, i, sizeof(filler));
	with(&msg, req, i, part->type | NLA_F_NESTED, part->data, part->len);
	try(&msg, part->type, "called nested");
}

static void bad_text(const struct request *req, size_t i)
{
	static const size_t lengths[] = { 129, 130, 200, 1000, sizeof(filler) };
	const struct part *part = &req->parts[i];
	struct nl_msg msg;

	for (size_t j = 0; j < GS_ARRAY_SIZE(lengths); j++) {
		memset(filler, 'x', sizeof(filler));
		filler[lengths[j] - 1] = '\0';
		with(&msg, req, i, part->type, filler, lengths[j]);
		try(&msg, part->type, "a text of %zu", lengths[j] - 1);
	}
	for (size_t len = 0; len <= GS_NAME_MAX + 2; len++) {
		memset(filler, 'x', len);
		with(&msg, req, i, part->type, filler, len);
		try(&msg, part->type, "%zu bytes without an end", len);
	}
	with(&msg, req, i, part->type, "", 1);
	try(&msg, part->type, "empty");
	for (int c = 1; c < 256; c = c == 31 ? 127 : c + 1) {
		if (c > 127)
			break;
		for (int at = 0; at < 3; at++) {
			(void)snprintf(filler, 4, "abc");
			filler[at] = (char)c;
			with(&msg, req, i, part->type, filler, 4);
			try(&msg, part->type, "byte %d at %d", c, at);
		}
	}
	with(&msg, req, i, part->type, "ab\0cd", 6);
	try(&msg, part->type, "with an end in the middle");
	with(&msg, req, i, part->type, "ab\0", 4);
	try(&msg, part->type, "with two ends");
	with(&msg, req, i, part->type | NLA_F_NESTED, part->data, part->len);
	try(&msg, part->type, "called nested");
}

static void bad_list(const struct request *req, size_t i)
{
	const struct part *part = &req->parts[i];
	struct nl_msg msg;
	uint32_t *v = (uint32_t *)(void *)filler;

	for (size_t len = 1; len < 10; len++)
		if (len % 4)
			try_length(req, i, len);
	try_length(req, i, part->most * 4 - 1);
	for (uint32_t n = 0; n < sizeof(filler) / 4; n++)
		v[n] = 0x10000 + n;
	for (size_t len = part->most * 4 + 1; len < part->most * 4 + 12; len++) {
		with(&msg, req, i, part->type, filler, len);
		try(&msg, part->type, "%zu bytes, too many", len);
	}
	with(&msg, req, i, part->type, filler, sizeof(filler));
	try(&msg, part->type, "far too many");
	with(&msg, req, i, part->type | NLA_F_NESTED, part->data, part->len);
	try(&msg, part->type, "called nested");
}

/* A nest with one entry that is wrong. */
static void try_entry(const struct request *req, size_t i, uint16_t type, const void *data,
		      size_t len, const char *what)
{
	const struct part *part = &req->parts[i];
	struct nl_msg msg, nest;

	nest.len = 0;
	nl_put(&nest, type, data, len);
	with(&msg, req, i, part->type | NLA_F_NESTED, nest.buf, nest.len);
	try(&msg, part->type, "%s", what);
	/* Behind a good one. */
	memcpy(filler, part->data, part->len);
	memcpy(filler + NLA_ALIGN(part->len), nest.buf, nest.len);
	with(&msg, req, i, part->type | NLA_F_NESTED, filler, NLA_ALIGN(part->len) + nest.len);
	try(&msg, part->type, "%s, as the second", what);
}

static void bad_names(const struct request *req, size_t i)
{
	const struct part *part = &req->parts[i];
	const char *many[GS_LINKS_MAX + 1];
	struct nl_msg msg;

	with(&msg, req, i, part->type, part->data, part->len);
	try(&msg, part->type, "not called nested");
	with(&msg, req, i, part->type | NLA_F_NESTED, NULL, 0);
	try(&msg, part->type, "no name in it");
	try_entry(req, i, GS_A_NAME, "nobody", 7, "the name of no holding");
	try_entry(req, i, GS_A_WATCH, "bad", 4, "an entry of another type");
	try_entry(req, i, GS_A_HOLDINGS | NLA_F_NESTED, part->data, part->len,
		  "a nest in the nest");
	try_entry(req, i, GS_A_NAME, "", 0, "an entry without a byte");
	try_entry(req, i, GS_A_NAME, "", 1, "an empty name");
	try_entry(req, i, GS_A_NAME, "bad", 3, "a name without an end");
	try_entry(req, i, GS_A_NAME, "b\nd", 4, "a line break");
	try_entry(req, i, GS_A_NAME, "bad\0er", 7, "a name with two ends");
	memset(filler, 'x', 300);
	filler[128] = '\0';
	try_entry(req, i, GS_A_NAME, filler, 129, "a name of 128");
	memset(filler, 'x', sizeof(filler));
	try_entry(req, i, GS_A_NAME, filler, 30000, "a name of 30000 without an end");
	for (size_t cut = 1; cut < part->len; cut++) {
		with(&msg, req, i, part->type | NLA_F_NESTED, part->data, part->len - cut);
		try(&msg, part->type, "cut off by %zu", cut);
	}
	memcpy(filler, part->data, part->len);
	memset(filler + NLA_ALIGN(part->len), 0, 8);
	for (size_t more = 1; more < 4; more++) {
		with(&msg, req, i, part->type | NLA_F_NESTED, filler, NLA_ALIGN(part->len) + more);
		try(&msg, part->type, "%zu bytes behind the last entry", more);
	}
	for (size_t j = 0; j < GS_ARRAY_SIZE(many); j++)
		many[j] = part->data + NLA_HDRLEN;
	with(&msg, req, i, part->type | NLA_F_NESTED, filler,
	     names_into(filler, many, GS_ARRAY_SIZE(many)));
	try(&msg, part->type, "%zu names", GS_ARRAY_SIZE(many));
}

static void bad_part(const struct request *req, size_t i)
{
	const struct part *part = &req->parts[i];
	struct nl_msg msg;

	switch (part->form) {
	case TEXT:
		bad_text(req, i);
		break;
	case LIST:
		bad_list(req, i);
		break;
	case NAMES:
		bad_names(req, i);
		break;
	case FLAG:
	case U8:
	case U32:
	case U64:
		bad_number(req, i);
		break;
	}
	if (part->needed) {
		with(&msg, req, i, 0, NULL, 0);
		try(&msg, -1, "missing");
	}
	proper(&msg, req);
	nl_put(&msg, type_of(part), part->data, part->len);
	try(&msg, part->type, "twice");
	/* A length that leads out of the message, or not even past its own head. */
	for (unsigned int len = 0; len < NLA_HDRLEN; len++) {
		proper(&msg, req);
		nl_put(&msg, type_of(part), part->data, part->len)->nla_len = (uint16_t)len;
		try(&msg, -1, "a length of %u at the end", len);
	}
	begin(&msg, req);
	nl_put(&msg, type_of(part), part->data, part->len)->nla_len = 0xffff;
	try(&msg, -1, "a length out of the message");
}

/* ---- Faults that any command can have. */

static bool takes(const struct request *req, unsigned int type)
{
	for (size_t i = 0; i < req->n; i++) {
		if (req->parts[i].type == type)
			return true;
		/* With this one it would be proper, if of another hierarchy. */
		if (req->parts[i].type == GS_A_CGROUP_ID && type == GS_A_CGROUP_V1)
			return true;
	}
	return false;
}

/* The length that an attribute of the contract has. */
static size_t length_of(unsigned int type)
{
	switch (type) {
	case GS_A_CGROUP_V1:
	case GS_A_KILL_ON_RETURN:
	case GS_A_REVOCABLE:
	case GS_A_REVOKED:
	case GS_A_KILLED:
		return 0;
	case GS_A_STATE:
	case GS_A_FROM:
	case GS_A_CAUSE:
	case GS_A_ROLE:
	case GS_A_KIND:
	case GS_A_EVENT:
	case GS_A_AGENT_ALIVE:
		return 1;
	case GS_A_TOUCHES:
	case GS_A_SINCE:
	case GS_A_LAST_TOUCH:
	case GS_A_SEQ:
	case GS_A_START_TIME:
	case GS_A_CGROUP_ID:
	case GS_A_EVENT_SEQ:
	case GS_A_TIME:
		return 8;
	default:
		return 4;
	}
}

/* What it does not take: of other commands, of answers, of a newer version, of nobody. */
static void foreign(const struct request *req)
{
	static const uint16_t far[] = { 100, 255, 256, 0x1000, 0x3fff };
	struct nl_msg msg;

	for (unsigned int type = 0; type <= GS_A_MAX + 3; type++) {
		if (takes(req, type))
			continue;
		proper(&msg, req);
		nl_put(&msg, type == GS_A_HOLDINGS ? type | NLA_F_NESTED : (uint16_t)type, "abc",
		       length_of(type));
		try(&msg, (int)type, "attribute %u (%s)", type,
		    type <= GS_A_MAX ? gs_kname_attr(type) : "of a newer version");
	}
	for (size_t i = 0; i < GS_ARRAY_SIZE(far); i++) {
		proper(&msg, req);
		nl_put(&msg, far[i], "abc", 4);
		try(&msg, far[i], "attribute %u", far[i]);
	}
	for (size_t more = 1; more < 4; more++) {
		proper(&msg, req);
		memset(msg.buf + msg.len, 0, 4);
		msg.len += more;
		try(&msg, -1, "%zu bytes behind the last attribute", more);
	}
	end_kind(req->name, "what it does not take");
}

/* Waits until nothing changes by itself any more. */
static void settle(void)
{
	struct timespec t = { .tv_nsec = 40 * 1000000 };
	int same = 0;

	while (same < 2) {
		char *now;

		stay_agent();
		(void)nanosleep(&t, NULL);
		now = nl_text(watching);
		same = before && strcmp(now, before) == 0 ? same + 1 : 0;
		free(before);
		before = now;
	}
}

static void every_fault(const struct request *req)
{
	settle();
	for (size_t i = 0; i < req->n; i++) {
		bad_part(req, i);
		end_kind(req->name, gs_kname_attr(req->parts[i].type));
	}
	foreign(req);
}

static void taken(const struct request *req)
{
	struct nl_said said;
	struct nl_msg msg;
	char name[128];
	int code;

	stay_agent();
	proper(&msg, req);
	code = nl_ask(&nl, &msg, &said);
	(void)snprintf(name, sizeof(name), "%s, without a fault: taken", req->name);
	nl_result(code == 0, name, "%s: %s", strerrorname_np(said.code), said.text);
	settle();
}

/* ---- Values out of range, one line for all of a command. */

/* The request with another number in place of that of @type. */
static void try_value(const struct request *req, uint16_t type, uint64_t value)
{
	struct nl_msg msg;

	for (size_t i = 0; i < req->n; i++) {
		if (req->parts[i].type != type)
			continue;
		with(&msg, req, i, type, &value, req->parts[i].len);
		try(&msg, type, "%s %llu", gs_kname_attr(type), (unsigned long long)value);
	}
}

static void try_values(const struct request *req, uint16_t type, const uint64_t *values, size_t n)
{
	for (size_t i = 0; i < n; i++)
		try_value(req, type, values[i]);
}
#define TRY_VALUES(req, type, ...)                               \
	try_values(req, type, (const uint64_t[]){ __VA_ARGS__ }, \
		   sizeof((const uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t))

/* ---- The commands, in an order in which each finds what it needs. */

static const char *node;
static uint32_t node_dev;
static struct gs_kwho who;

static void hook_add(void)
{
	static const uint32_t passive[] = { 1, 2, 3 };
	struct request req = { .name = "HOOK_ADD", .family = nl.family, .cmd = GS_CMD_HOOK_ADD };
	int fd = open(node, O_RDWR | O_CLOEXEC), null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int folder = open("/", O_RDONLY | O_CLOEXEC), path = open(node, O_PATH | O_CLOEXEC);

	if (fd < 0)
		nl_die("%s: %s", node, strerror(errno));
	add_u32(&req, GS_A_FD, true, (uint32_t)fd);
	add_text(&req, GS_A_DRIVER, false, "fake");
	add_list(&req, GS_A_PASSIVE, false, GS_PASSIVE_MAX, passive, GS_ARRAY_SIZE(passive));
	add(&req, GS_A_REVOCABLE, FLAG, false, 0);
	every_fault(&req);
	TRY_VALUES(&req, GS_A_FD, 9999, 0x7fffffff, 0x80000000, 0xffffffff, (uint64_t)null,
		   (uint64_t)folder, (uint64_t)path, (uint64_t)nl.fd);
	end_kind(req.name, "descriptors of no device");
	taken(&req);
	(void)close(fd);
	(void)close(null);
	(void)close(folder);
	(void)close(path);
}

static void holding_set(void)
{
	const uint32_t devs[] = { node_dev }, same[] = { node_dev, 77, node_dev };
	const uint32_t other[] = { node_dev + 1 }, more[] = { node_dev, node_dev + 1 };
	struct request req = { .name = "HOLDING_SET",
			       .family = nl.family,
			       .cmd = GS_CMD_HOLDING_SET };
	struct nl_msg msg;

	add_text(&req, GS_A_NAME, true, "bad");
	add_list(&req, GS_A_DEVS, true, GS_NODES_MAX, devs, 1);
	add_u32(&req, GS_A_LEND_AFTER_MS, false, 1);
	add_u32(&req, GS_A_HOLD_MAX_MS, false, 60000);
	add_u32(&req, GS_A_SETTLE_MS, false, 60000);
	every_fault(&req);
	TRY_VALUES(&req, GS_A_LEND_AFTER_MS, 0, 7 * 24 * 3600 * 1000U + 1, 0xffffffff);
	TRY_VALUES(&req, GS_A_HOLD_MAX_MS, 0, 10 * 60 * 1000U + 1, 0xffffffff);
	TRY_VALUES(&req, GS_A_SETTLE_MS, 60 * 1000U + 1, 0xffffffff);
	with(&msg, &req, 1, GS_A_DEVS, same, sizeof(same));
	try(&msg, GS_A_DEVS, "a device twice");
	end_kind(req.name, "values out of range");
	taken(&req);
	with(&msg, &req, 1, GS_A_DEVS, other, sizeof(other));
	try(&msg, -1, "other nodes");
	with(&msg, &req, 1, GS_A_DEVS, more, sizeof(more));
	try(&msg, -1, "more nodes");
	end_kind(req.name, "of one that has other nodes");
}

static void by_pid(struct request *req, uint8_t role)
{
	*req = (struct request){ .name = "WATCH_SET",
				 .family = nl.family,
				 .cmd = GS_CMD_WATCH_SET };
	add_text(req, GS_A_NAME, true, role == GS_BORROWER ? "borrower" : "member");
	add_u8(req, GS_A_ROLE, role);
	add_u32(req, GS_A_PID, true, (uint32_t)who.pid);
	add_u64(req, GS_A_START_TIME, true, who.start_time);
	add_names(req, "bad");
}

static void by_cgroup(struct request *req, uint8_t role)
{
	*req = (struct request){ .name = "WATCH_SET by cgroup",
				 .family = nl.family,
				 .cmd = GS_CMD_WATCH_SET };
	add_text(req, GS_A_NAME, true, role == GS_BORROWER ? "borrower" : "cgroup");
	add_u8(req, GS_A_ROLE, role);
	add_u64(req, GS_A_CGROUP_ID, true, 0x1234567);
	add_names(req, "bad");
	if (role == GS_BORROWER)
		add(req, GS_A_KILL_ON_RETURN, FLAG, false, 0);
}

static void watch_set(void)
{
	struct request req;
	struct nl_msg msg;

	by_pid(&req, GS_MEMBER);
	every_fault(&req);
	TRY_VALUES(&req, GS_A_ROLE, __GS_ROLE_MAX, 100, 255);
	TRY_VALUES(&req, GS_A_PID, 0, 1, (uint64_t)getpid(), 0x7ffffffe, 0x80000000, 0xffffffff);
	TRY_VALUES(&req, GS_A_START_TIME, 0, who.start_time - 1, who.start_time + 1, UINT64_MAX);
	end_kind(req.name, "values out of range");
	proper(&msg, &req);
	nl_put_u64(&msg, GS_A_CGROUP_ID, 0x1234567);
	try(&msg, -1, "by both");
	end_kind(req.name, "of two kinds");
	taken(&req);

	by_cgroup(&req, GS_MEMBER);
	every_fault(&req);
	TRY_VALUES(&req, GS_A_CGROUP_ID, 0, 1);
	end_kind(req.name, "the root cgroup");
	taken(&req);
	req.parts[2].data[0]++;
	proper(&msg, &req);
	try(&msg, -1, "another container");
	req.parts[2].data[0]--;
	req.parts[0].data[0]++;
	proper(&msg, &req);
	try(&msg, -1, "another watch has it");
	end_kind(req.name, "of what is another's");

	by_cgroup(&req, GS_EXEMPT);
	req.parts[2].data[0]++;
	req.parts[0].data[0]++;
	proper(&msg, &req);
	try(&msg, -1, "exempt with holdings");
	by_cgroup(&req, GS_BORROWER);
	req.parts[2].data[0]++;
	proper(&msg, &req);
	try(&msg, -1, "nothing is lent");
	end_kind(req.name, "what does not fit together");
}

static const struct gs_kholding *find(struct gs_kstate *state)
{
	const struct gs_kholding *holding;
	struct gs_err err;

	if (gs_klink_dump(watching, state, &err) < 0)
		nl_die("dump: %s", err.msg);
	holding = gs_kstate_holding(state, "bad");
	return holding ? holding : (nl_die("the holding is gone"), NULL);
}

/* LEND and RELEASE. */
static void by_seq(const char *name, uint8_t cmd, bool alive)
{
	struct request req = { .name = name, .family = nl.family, .cmd = cmd };
	cleanup_kstate struct gs_kstate state = { 0 };
	uint64_t seq = find(&state)->seq;

	add_text(&req, GS_A_NAME, true, "bad");
	add_u64(&req, GS_A_SEQ, true, seq);
	if (!alive) {
		struct nl_msg msg;

		settle();
		proper(&msg, &req);
		try(&msg, -1, "at the wrong time");
		end_kind(name, "at the wrong time");
		return;
	}
	every_fault(&req);
	TRY_VALUES(&req, GS_A_SEQ, 0, seq - 1, seq + 1, ~seq, UINT64_MAX);
	end_kind(name, "of another number");
	taken(&req);
}

/* Commands that take a name alone. */
static void by_name(const char *name, uint8_t cmd, const char *object, bool del)
{
	struct request req = { .name = name, .family = nl.family, .cmd = cmd };
	struct nl_msg msg;

	add_text(&req, GS_A_NAME, true, object);
	every_fault(&req);
	taken(&req);
	proper(&msg, &req);
	if (del) {
		try(&msg, -1, "what is gone");
		end_kind(name, "what is gone");
	}
}

static void hook_del(void)
{
	struct request req = { .name = "HOOK_DEL", .family = nl.family, .cmd = GS_CMD_HOOK_DEL };

	add_u32(&req, GS_A_DEV, true, node_dev);
	every_fault(&req);
	TRY_VALUES(&req, GS_A_DEV, 0, node_dev + 100, 0xffffffff);
	end_kind(req.name, "a node that is not hooked");
	taken(&req);
}

static void bare(const char *name, uint8_t cmd, bool dump)
{
	struct request req = { .name = name, .family = nl.family, .cmd = cmd, .dump = dump };

	settle();
	foreign(&req);
	taken(&req);
}

/* Faults above the attributes; what generic netlink itself refuses has no words. */
static void heads(void)
{
	struct request req = { .name = "a head", .family = nl.family, .cmd = GS_CMD_HOLDING_SET };
	const uint32_t dev = node_dev;
	unsigned int silent = 0, n = 0;
	struct nl_said said;
	struct nl_msg msg;

	add_text(&req, GS_A_NAME, true, "head");
	add_list(&req, GS_A_DEVS, true, GS_NODES_MAX, &dev, 1);
	settle();
	proper(&msg, &req);
	nl_genl(&msg)->reserved = 1;
	try(&msg, -1, "reserved bits");
	proper(&msg, &req);
	nl_hdr(&msg)->nlmsg_flags |= NLM_F_CREATE | NLM_F_EXCL;
	try(&msg, -1, "flags that mean nothing");
	end_kind(req.name, "reserved bits");

	for (unsigned int cmd = 0; cmd < 256; cmd++) {
		bool command = (cmd >= GS_CMD_STATUS && cmd <= GS_CMD_RELEASE) ||
			       cmd == GS_CMD_SAMPLE;

		/* A command as a dump, the dump as a command, and what is none. */
		proper(&msg, &req);
		nl_genl(&msg)->cmd = (uint8_t)cmd;
		if (command)
			nl_hdr(&msg)->nlmsg_flags |= NLM_F_DUMP;
		n++;
		silent += nl_ask(&nl, &msg, &said) == EOPNOTSUPP;
		if (cmd == GS_CMD_DUMP || command)
			continue;
		nl_hdr(&msg)->nlmsg_flags |= NLM_F_DUMP;
		n++;
		silent += nl_ask(&nl, &msg, &said) == EOPNOTSUPP;
	}
	nl_result(silent == n, "commands that there are not: refused", "%u of %u", silent, n);

	/* Too short for the head of a generic message. */
	nl_start(&msg, nl.family, GS_CMD_STATUS);
	msg.len = NLMSG_HDRLEN;
	nl_result(nl_ask(&nl, &msg, &said) == EINVAL, "a message without a head: refused", "%s",
		  strerrorname_np(said.code));
	tries = 1;
	free(before);
	before = nl_text(watching);
	settle();
}

int main(int argc, char **argv)
{
	cleanup_kstate struct gs_kstate state = { 0 };
	struct gs_err err;
	struct request req;

	if (argc != 3)
		nl_die("nlbad NODE PID");
	node = argv[1];
	nl_open(&nl);
	if (gs_klink_open(&watching, &err) < 0 ||
	    gs_kwho_pid((pid_t)strtoul(argv[2], NULL, 10), &who, &err) < 0)
		nl_die("%s", err.msg);

	hook_add();
	if (gs_klink_dump(watching, &state, &err) < 0 || state.n_nodes != 1)
		nl_die("the node is not hooked");
	node_dev = state.nodes[0].dev;
	heads();
	holding_set();
	watch_set();
	by_seq("RELEASE", GS_CMD_RELEASE, false);
	by_seq("SAMPLE", GS_CMD_SAMPLE, true);
	by_seq("LEND", GS_CMD_LEND, true);
	by_seq("LEND", GS_CMD_LEND, false);
	by_cgroup(&req, GS_BORROWER);
	req.parts[2].data[0]++;
	req.name = "WATCH_SET, a borrower";
	every_fault(&req);
	taken(&req);
	by_name("WITHDRAW", GS_CMD_WITHDRAW, "bad", false);
	by_seq("RELEASE", GS_CMD_RELEASE, true);
	by_name("WATCH_DEL", GS_CMD_WATCH_DEL, "borrower", true);
	by_name("HOLDING_DEL", GS_CMD_HOLDING_DEL, "bad", true);
	hook_del();
	bare("STATUS", GS_CMD_STATUS, false);
	bare("HEARTBEAT", GS_CMD_HEARTBEAT, false);
	bare("DUMP", GS_CMD_DUMP, true);
	gs_klink_close(watching);
	return nl_failures != 0;
}
