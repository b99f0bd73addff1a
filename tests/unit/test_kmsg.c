// SPDX-License-Identifier: Apache-2.0
/* Messages of the kernel module: whole, cut short, of wrong types, and of a newer module. */
#include <errno.h>
#include <linux/genetlink.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "common/kmsg.h"
#include "common/kname.h"
#include "common/xalloc.h"
#include "tests/unit/fakekernel.h"

static struct fk_msg msg;
static struct gs_err err;

static void start(uint8_t cmd)
{
	fk_reset();
	fk_start(&msg, NULL, fk.family, cmd, 0);
}

static void put_names(const char *const *names, size_t n)
{
	struct nlattr *nest = mnl_attr_nest_start(msg.nlh, GS_A_HOLDINGS);

	for (size_t i = 0; i < n; i++)
		mnl_attr_put_strz(msg.nlh, GS_A_NAME, names[i]);
	mnl_attr_nest_end(msg.nlh, nest);
}

static void put_count(uint32_t dev, uint64_t touches)
{
	struct nlattr *nest = mnl_attr_nest_start(msg.nlh, GS_A_COUNT);

	mnl_attr_put_u32(msg.nlh, GS_A_DEV, dev);
	mnl_attr_put_u64(msg.nlh, GS_A_TOUCHES, touches);
	mnl_attr_nest_end(msg.nlh, nest);
}

static void make_watch(void)
{
	static const char *const holdings[] = { "a", "h" };
	struct nlattr *counts;

	start(GS_CMD_WATCH);
	mnl_attr_put_strz(msg.nlh, GS_A_NAME, "w");
	mnl_attr_put_u8(msg.nlh, GS_A_ROLE, GS_BORROWER);
	mnl_attr_put_u32(msg.nlh, GS_A_PID, 77);
	mnl_attr_put_u32(msg.nlh, GS_A_PIDNS, UINT32_MAX);
	put_names(holdings, 2);
	mnl_attr_put(msg.nlh, GS_A_KILL_ON_RETURN, 0, NULL);
	mnl_attr_put(msg.nlh, GS_A_REVOKED, 0, NULL);
	mnl_attr_put(msg.nlh, GS_A_KILLED, 0, NULL);
	mnl_attr_put_u32(msg.nlh, GS_A_FILES, 3);
	counts = mnl_attr_nest_start(msg.nlh, GS_A_COUNTS);
	put_count(gs_kdev(195, 0), 5);
	put_count(gs_kdev(195, 255), 1ULL << 33);
	mnl_attr_nest_end(msg.nlh, counts);
}

static void make_holding(void)
{
	static const uint32_t devs[] = { 0xc300, 0xc301, 0xc3ff };

	start(GS_CMD_HOLDING);
	mnl_attr_put_strz(msg.nlh, GS_A_NAME, "h");
	mnl_attr_put_u8(msg.nlh, GS_A_STATE, GS_RETURNING);
	mnl_attr_put_u64(msg.nlh, GS_A_SINCE, 11);
	mnl_attr_put_u64(msg.nlh, GS_A_SEQ, 12);
	mnl_attr_put(msg.nlh, GS_A_DEVS, sizeof(devs), devs);
	mnl_attr_put_u32(msg.nlh, GS_A_LEND_AFTER_MS, 13);
	mnl_attr_put_u32(msg.nlh, GS_A_HOLD_MAX_MS, 14);
	mnl_attr_put_u32(msg.nlh, GS_A_SETTLE_MS, 15);
	mnl_attr_put_u32(msg.nlh, GS_A_FILES, 16);
	mnl_attr_put_u32(msg.nlh, GS_A_HELD, 17);
	mnl_attr_put_u32(msg.nlh, GS_A_MAPPINGS, 38);
	mnl_attr_put_u64(msg.nlh, GS_A_FAULTS, 39);
	mnl_attr_put_u64(msg.nlh, GS_A_LAST_TOUCH, 18);
}

static void make_node(void)
{
	start(GS_CMD_NODE);
	mnl_attr_put_u32(msg.nlh, GS_A_DEV, 0xc3ff);
	mnl_attr_put_strz(msg.nlh, GS_A_DRIVER, "nvidia");
	mnl_attr_put_u32(msg.nlh, GS_A_FUNCS, 1 << GS_OPEN | 1 << GS_IOCTL);
	mnl_attr_put_strz(msg.nlh, GS_A_MODULE, "nvidia_module");
	mnl_attr_put_u64(msg.nlh, GS_A_TOUCHES, UINT64_MAX);
}

static void make_event(void)
{
	start(GS_CMD_EVENT);
	mnl_attr_put_u8(msg.nlh, GS_A_EVENT, GS_EV_STATE);
	mnl_attr_put_u64(msg.nlh, GS_A_EVENT_SEQ, 21);
	mnl_attr_put_u64(msg.nlh, GS_A_TIME, 22);
	mnl_attr_put_strz(msg.nlh, GS_A_NAME, "h");
	mnl_attr_put_strz(msg.nlh, GS_A_WATCH, "w");
	mnl_attr_put_u8(msg.nlh, GS_A_STATE, GS_RETURNING);
	mnl_attr_put_u8(msg.nlh, GS_A_FROM, GS_LENT);
	mnl_attr_put_u8(msg.nlh, GS_A_CAUSE, GS_BY_TOUCH);
	mnl_attr_put_u32(msg.nlh, GS_A_DEV, 0xc300);
	mnl_attr_put_u8(msg.nlh, GS_A_KIND, GS_IOCTL);
	mnl_attr_put_u32(msg.nlh, GS_A_PID, 23);
	mnl_attr_put_u64(msg.nlh, GS_A_START_TIME, 24);
	mnl_attr_put_u32(msg.nlh, GS_A_PIDNS, 25);
	mnl_attr_put_u32(msg.nlh, GS_A_FILES, 26);
	mnl_attr_put_u32(msg.nlh, GS_A_HELD, 27);
	mnl_attr_put_u32(msg.nlh, GS_A_HELD_MS, 28);
	mnl_attr_put_u32(msg.nlh, GS_A_MAPPINGS, 36);
	mnl_attr_put_u64(msg.nlh, GS_A_FAULTS, 37);
	mnl_attr_put(msg.nlh, GS_A_KILLED, 0, NULL);
	mnl_attr_put_u8(msg.nlh, GS_A_AGENT_ALIVE, 1);
}

static void make_status(void)
{
	start(GS_CMD_STATUS);
	mnl_attr_put_u32(msg.nlh, GS_A_ABI, 1);
	mnl_attr_put_strz(msg.nlh, GS_A_MODVERSION, "1.2.3");
	mnl_attr_put_u32(msg.nlh, GS_A_FEATURES, 0x81);
	mnl_attr_put_u8(msg.nlh, GS_A_AGENT_ALIVE, 1);
	mnl_attr_put_u32(msg.nlh, GS_A_AGENT_PORT, 30);
	mnl_attr_put_u32(msg.nlh, GS_A_AGENT_AGE_MS, 31);
	for (int type = GS_A_TOTAL_HELD; type <= GS_A_TOTAL_EVENTS_LOST; type++)
		mnl_attr_put_u64(msg.nlh, (uint16_t)type, (uint64_t)type);
	mnl_attr_put_u64(msg.nlh, GS_A_TOTAL_MAPPINGS, GS_A_TOTAL_MAPPINGS);
	mnl_attr_put_u64(msg.nlh, GS_A_TOTAL_FAULTS, GS_A_TOTAL_FAULTS);
	mnl_attr_put_u64(msg.nlh, GS_A_EVENT_SEQ, 32);
	mnl_attr_put_u32(msg.nlh, GS_A_LEND_AFTER_MS, 33);
	mnl_attr_put_u32(msg.nlh, GS_A_HOLD_MAX_MS, 34);
	mnl_attr_put_u32(msg.nlh, GS_A_SETTLE_MS, 35);
}

static void test_watch(void **state)
{
	struct gs_kwatch w;

	make_watch();
	assert_int_equal(gs_kmsg_watch(msg.nlh, &w, &err), 0);
	assert_string_equal(w.name, "w");
	assert_int_equal(w.role, GS_BORROWER);
	assert_int_equal(w.pid, 77);
	assert_true(w.pidns == UINT32_MAX);
	assert_int_equal(w.cgroup_id, 0);
	assert_false(w.cgroup_v1);
	assert_true(w.kill_on_return);
	assert_true(w.revoked);
	assert_true(w.killed);
	assert_int_equal(w.files, 3);
	assert_int_equal(w.holdings.n, 2);
	assert_string_equal(w.holdings.v[0], "a");
	assert_string_equal(w.holdings.v[1], "h");
	assert_int_equal(w.n_counts, 2);
	assert_int_equal(w.counts[0].dev, gs_kdev(195, 0));
	assert_int_equal(w.counts[0].touches, 5);
	assert_true(w.counts[1].touches == 1ULL << 33);
	gs_kwatch_free(&w);
	assert_null(w.counts);

	start(GS_CMD_WATCH);
	mnl_attr_put_strz(msg.nlh, GS_A_NAME, "");
	mnl_attr_put_u8(msg.nlh, GS_A_ROLE, GS_MEMBER);
	mnl_attr_put_u64(msg.nlh, GS_A_CGROUP_ID, 9);
	mnl_attr_put(msg.nlh, GS_A_CGROUP_V1, 0, NULL);
	assert_int_equal(gs_kmsg_watch(msg.nlh, &w, &err), 0);
	assert_string_equal(w.name, "");
	assert_int_equal(w.pid, 0);
	assert_int_equal(w.cgroup_id, 9);
	assert_true(w.cgroup_v1);
	assert_false(w.kill_on_return || w.revoked || w.killed);
	assert_int_equal(w.holdings.n + w.n_counts, 0);
	gs_kwatch_free(&w);
}

static void test_holding(void **state)
{
	struct gs_kholding h;

	make_holding();
	assert_int_equal(gs_kmsg_holding(msg.nlh, &h, &err), 0);
	assert_string_equal(h.name, "h");
	assert_int_equal(h.state, GS_RETURNING);
	assert_int_equal(h.since_ns, 11);
	assert_int_equal(h.seq, 12);
	assert_int_equal(h.lend_after_ms, 13);
	assert_int_equal(h.hold_max_ms, 14);
	assert_int_equal(h.settle_ms, 15);
	assert_int_equal(h.files, 16);
	assert_int_equal(h.held, 17);
	assert_int_equal(h.mappings, 38);
	assert_int_equal(h.faults, 39);
	assert_int_equal(h.last_touch_ns, 18);
	assert_int_equal(h.devs.n, 3);
	assert_int_equal(gs_kdev_major(h.devs.v[2]), 195);
	assert_int_equal(gs_kdev_minor(h.devs.v[2]), 255);
	gs_kholding_free(&h);
	assert_null(h.devs.v);

	/* Not a whole number of devices. */
	start(GS_CMD_HOLDING);
	mnl_attr_put_strz(msg.nlh, GS_A_NAME, "h");
	mnl_attr_put_u8(msg.nlh, GS_A_STATE, GS_ACTIVE);
	mnl_attr_put(msg.nlh, GS_A_DEVS, 6, "123456");
	assert_int_equal(gs_kmsg_holding(msg.nlh, &h, &err), -EPROTO);
	assert_non_null(strstr(err.msg, "devs"));
}

static void test_node(void **state)
{
	struct gs_knode n;

	make_node();
	assert_int_equal(gs_kmsg_node(msg.nlh, &n, &err), 0);
	assert_int_equal(n.dev, 0xc3ff);
	assert_string_equal(n.driver, "nvidia");
	assert_string_equal(n.module, "nvidia_module");
	assert_int_equal(n.funcs, 1 << GS_OPEN | 1 << GS_IOCTL);
	assert_true(n.touches == UINT64_MAX);
	assert_false(n.revocable);
	mnl_attr_put(msg.nlh, GS_A_REVOCABLE, 0, NULL);
	assert_int_equal(gs_kmsg_node(msg.nlh, &n, &err), 0);
	assert_true(n.revocable);
}

static void test_event(void **state)
{
	struct gs_kevent e;

	make_event();
	assert_int_equal(gs_kmsg_event(msg.nlh, &e, &err), 0);
	assert_int_equal(e.event, GS_EV_STATE);
	assert_int_equal(e.event_seq, 21);
	assert_int_equal(e.time_ns, 22);
	assert_string_equal(e.name, "h");
	assert_string_equal(e.watch, "w");
	assert_int_equal(e.state, GS_RETURNING);
	assert_int_equal(e.from, GS_LENT);
	assert_int_equal(e.cause, GS_BY_TOUCH);
	assert_true(e.has_dev);
	assert_int_equal(e.dev, 0xc300);
	assert_true(e.has_kind);
	assert_int_equal(e.kind, GS_IOCTL);
	assert_int_equal(e.pid, 23);
	assert_int_equal(e.start_time, 24);
	assert_int_equal(e.pidns, 25);
	assert_int_equal(e.files, 26);
	assert_int_equal(e.held, 27);
	assert_int_equal(e.held_ms, 28);
	assert_int_equal(e.mappings, 36);
	assert_int_equal(e.faults, 37);
	assert_true(e.killed);
	assert_true(e.agent_alive);

	start(GS_CMD_EVENT);
	mnl_attr_put_u8(msg.nlh, GS_A_EVENT, 200); /* a newer module's */
	mnl_attr_put_u64(msg.nlh, GS_A_EVENT_SEQ, 1);
	assert_int_equal(gs_kmsg_event(msg.nlh, &e, &err), 0);
	assert_int_equal(e.event, 200);
	assert_string_equal(gs_kname_event(e.event), "?");
	assert_false(e.has_dev || e.has_kind || e.killed || e.agent_alive);
	assert_string_equal(e.name, "");
}

static void test_status(void **state)
{
	struct gs_kstatus s;

	make_status();
	assert_int_equal(gs_kmsg_status(msg.nlh, &s, &err), 0);
	assert_int_equal(s.abi, 1);
	assert_string_equal(s.version, "1.2.3");
	assert_int_equal(s.features, 0x81);
	assert_true(s.agent_alive && s.has_agent);
	assert_int_equal(s.agent_port, 30);
	assert_int_equal(s.agent_age_ms, 31);
	assert_int_equal(s.held, GS_A_TOTAL_HELD);
	assert_int_equal(s.returns, GS_A_TOTAL_RETURNS);
	assert_int_equal(s.settled, GS_A_TOTAL_SETTLED);
	assert_int_equal(s.hold_max, GS_A_TOTAL_HOLD_MAX);
	assert_int_equal(s.quarantine, GS_A_TOTAL_QUARANTINE);
	assert_int_equal(s.kills, GS_A_TOTAL_KILLS);
	assert_int_equal(s.refused, GS_A_TOTAL_REFUSED);
	assert_int_equal(s.events_lost, GS_A_TOTAL_EVENTS_LOST);
	assert_int_equal(s.mappings, GS_A_TOTAL_MAPPINGS);
	assert_int_equal(s.faults, GS_A_TOTAL_FAULTS);
	assert_int_equal(s.event_seq, 32);
	assert_int_equal(s.lend_after_ms, 33);
	assert_int_equal(s.hold_max_ms, 34);
	assert_int_equal(s.settle_ms, 35);

	start(GS_CMD_STATUS);
	mnl_attr_put_u32(msg.nlh, GS_A_ABI, 1);
	assert_int_equal(gs_kmsg_status(msg.nlh, &s, &err), 0);
	assert_false(s.agent_alive || s.has_agent);
}

/* ---- Every kind of message through the same mistreatment. */

static int decode_status(const struct nlmsghdr *nlh)
{
	struct gs_kstatus s;

	return gs_kmsg_status(nlh, &s, &err);
}

static int decode_node(const struct nlmsghdr *nlh)
{
	struct gs_knode n;

	return gs_kmsg_node(nlh, &n, &err);
}

static int decode_holding(const struct nlmsghdr *nlh)
{
	struct gs_kholding h;
	int r = gs_kmsg_holding(nlh, &h, &err);

	if (r == 0)
		gs_kholding_free(&h);
	return r;
}

static int decode_watch(const struct nlmsghdr *nlh)
{
	struct gs_kwatch w;
	int r = gs_kmsg_watch(nlh, &w, &err);

	if (r == 0)
		gs_kwatch_free(&w);
	return r;
}

static int decode_event(const struct nlmsghdr *nlh)
{
	struct gs_kevent e;

	return gs_kmsg_event(nlh, &e, &err);
}

static const struct {
	void (*make)(void);
	int (*decode)(const struct nlmsghdr *nlh);
	uint16_t needs[3]; /* its mandatory attributes, 0 at the end */
} all[] = {
	{ make_status, decode_status, { GS_A_ABI } },
	{ make_node, decode_node, { GS_A_DEV } },
	{ make_holding, decode_holding, { GS_A_NAME, GS_A_STATE } },
	{ make_watch, decode_watch, { GS_A_NAME, GS_A_ROLE } },
	{ make_event, decode_event, { GS_A_EVENT, GS_A_EVENT_SEQ } },
};

/* A copy of just that length, so that a sanitizer sees a read beyond. */
static int decode_copy(int (*decode)(const struct nlmsghdr *nlh), const void *data, size_t len)
{
	struct nlmsghdr *copy = malloc(len);
	int r;

	assert_non_null(copy);
	memcpy(copy, data, len);
	copy->nlmsg_len = (uint32_t)len;
	r = decode(copy);
	free(copy);
	assert_true(r == 0 || r == -EPROTO);
	return r;
}

static void test_cut_short(void **state)
{
	for (size_t i = 0; i < GS_ARRAY_SIZE(all); i++) {
		size_t good = 0;

		all[i].make();
		for (size_t len = NLMSG_HDRLEN; len < msg.nlh->nlmsg_len; len++)
			good += decode_copy(all[i].decode, msg.nlh, len) == 0;
		/* Only between two attributes, or within padding, does it look like a whole one. */
		assert_true(good < msg.nlh->nlmsg_len / 4);
		assert_int_equal(decode_copy(all[i].decode, msg.nlh, msg.nlh->nlmsg_len), 0);
		assert_int_equal(decode_copy(all[i].decode, msg.nlh, NLMSG_HDRLEN + 2), -EPROTO);
		assert_non_null(strstr(err.msg, "cut short"));
	}
}

static void test_missing(void **state)
{
	for (size_t i = 0; i < GS_ARRAY_SIZE(all); i++) {
		for (size_t k = 0; all[i].needs[k]; k++) {
			struct nlattr *attr;

			all[i].make();
			/* Becomes one of a newer module. */
			mnl_attr_for_each(attr, msg.nlh, GENL_HDRLEN) {
				if (mnl_attr_get_type(attr) == all[i].needs[k])
					attr->nla_type = GS_A_MAX + 1;
			}
			assert_int_equal(all[i].decode(msg.nlh), -EPROTO);
			assert_non_null(strstr(err.msg, gs_kname_attr(all[i].needs[k])));
		}
	}
}

/* Each attribute one byte longer than it was, and without its last byte. */
static void test_wrong_length(void **state)
{
	for (size_t i = 0; i < GS_ARRAY_SIZE(all); i++) {
		struct fk_msg *good = gs_malloc(sizeof(*good));
		const struct nlattr *attr;

		all[i].make();
		memcpy(good, &msg, sizeof(*good));
		good->nlh = (void *)good->buf;
		mnl_attr_for_each(attr, good->nlh, GENL_HDRLEN) {
			uint16_t type = attr->nla_type, len = mnl_attr_get_payload_len(attr);
			char data[256];

			if (type & NLA_F_NESTED)
				continue;
			/* 0 - 1 is too large for @data. */
			for (int by = -1; by <= 1; by += 2) {
				size_t wrong = len + (size_t)by;

				if (wrong > sizeof(data))
					continue;
				memset(data, 'x', sizeof(data));
				all[i].make();
				mnl_attr_put(msg.nlh, type, wrong, data);
				assert_int_equal(all[i].decode(msg.nlh), -EPROTO);
				assert_non_null(strstr(err.msg, gs_kname_attr(type)));
			}
		}
		free(good);
	}
}

static void test_newer(void **state)
{
	for (size_t i = 0; i < GS_ARRAY_SIZE(all); i++) {
		struct nlattr *nest;

		all[i].make();
		mnl_attr_put(msg.nlh, GS_A_MAX + 1, 0, NULL);
		mnl_attr_put(msg.nlh, GS_A_MAX + 2, 5, "12345");
		mnl_attr_put(msg.nlh, 0x3fff, 3, "123");
		nest = mnl_attr_nest_start(msg.nlh, GS_A_MAX + 3);
		mnl_attr_put_u32(msg.nlh, 1, 1);
		mnl_attr_nest_end(msg.nlh, nest);
		/* What only requests have. */
		mnl_attr_put(msg.nlh, GS_A_PASSIVE, 3, "123");
		mnl_attr_put(msg.nlh, GS_A_PAD, 0, NULL);
		assert_int_equal(all[i].decode(msg.nlh), 0);
	}
}

static void test_long_names(void **state)
{
	char name[GS_NAME_MAX + 2];
	struct gs_knode n;

	memset(name, 'n', sizeof(name));
	name[GS_NAME_MAX] = '\0';
	start(GS_CMD_NODE);
	mnl_attr_put_u32(msg.nlh, GS_A_DEV, 1);
	mnl_attr_put_strz(msg.nlh, GS_A_DRIVER, name);
	assert_int_equal(gs_kmsg_node(msg.nlh, &n, &err), 0);
	assert_string_equal(n.driver, name);

	name[GS_NAME_MAX] = 'n';
	name[GS_NAME_MAX + 1] = '\0';
	mnl_attr_put_strz(msg.nlh, GS_A_DRIVER, name);
	assert_int_equal(gs_kmsg_node(msg.nlh, &n, &err), -EPROTO);
	/* @ret is as it was. */
	assert_int_equal(strlen(n.driver), GS_NAME_MAX);

	start(GS_CMD_NODE);
	mnl_attr_put_u32(msg.nlh, GS_A_DEV, 1);
	mnl_attr_put(msg.nlh, GS_A_DRIVER, 3, "abc"); /* no NUL */
	assert_int_equal(gs_kmsg_node(msg.nlh, &n, &err), -EPROTO);
}

static void test_bad_nests(void **state)
{
	struct nlattr *counts, *count;
	struct gs_kwatch w;

	/* A name that is none inside the list. */
	make_watch();
	counts = mnl_attr_nest_start(msg.nlh, GS_A_HOLDINGS);
	mnl_attr_put_strz(msg.nlh, GS_A_NAME, "good");
	mnl_attr_put(msg.nlh, GS_A_NAME, 0, NULL);
	mnl_attr_nest_end(msg.nlh, counts);
	assert_int_equal(gs_kmsg_watch(msg.nlh, &w, &err), -EPROTO);

	/* A count without its device. */
	make_watch();
	counts = mnl_attr_nest_start(msg.nlh, GS_A_COUNTS);
	put_count(1, 1);
	count = mnl_attr_nest_start(msg.nlh, GS_A_COUNT);
	mnl_attr_put_u64(msg.nlh, GS_A_TOUCHES, 1);
	mnl_attr_nest_end(msg.nlh, count);
	mnl_attr_nest_end(msg.nlh, counts);
	assert_int_equal(gs_kmsg_watch(msg.nlh, &w, &err), -EPROTO);
	assert_non_null(strstr(err.msg, "dev"));

	/* Bytes that are no attributes. */
	make_watch();
	mnl_attr_put(msg.nlh, GS_A_COUNTS | NLA_F_NESTED, 8, "\3\0\0\0abcd");
	assert_int_equal(gs_kmsg_watch(msg.nlh, &w, &err), -EPROTO);
	assert_non_null(strstr(err.msg, "cut short"));

	/* An inner one that claims to be longer than the nest. */
	make_watch();
	mnl_attr_put(msg.nlh, GS_A_HOLDINGS | NLA_F_NESTED, 8, "\377\0\2\0abc\0");
	assert_int_equal(gs_kmsg_watch(msg.nlh, &w, &err), -EPROTO);
}

/* Any bit may be wrong: never a crash, a leak or an answer that is neither yes nor no. */
static void test_noise(void **state)
{
	uint64_t x = 88172645463325252ULL;

	for (int round = 0; round < 20000; round++) {
		size_t i = (size_t)round % GS_ARRAY_SIZE(all), len;

		all[i].make();
		len = msg.nlh->nlmsg_len;
		for (int bits = 1 + round % 7; bits; bits--) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			msg.buf[NLMSG_HDRLEN + x % (len - NLMSG_HDRLEN)] ^=
				(char)(1 << (x >> 60) % 8);
		}
		(void)decode_copy(all[i].decode, msg.nlh, len);
	}
}

static void test_state(void **state)
{
	cleanup_kstate struct gs_kstate s = { 0 };
	static const char *const names[] = { "h" };
	struct nlattr *counts;

	make_node();
	assert_int_equal(gs_kmsg_add(msg.nlh, &s, &err), 0);
	make_holding();
	assert_int_equal(gs_kmsg_add(msg.nlh, &s, &err), 0);
	make_watch();
	assert_int_equal(gs_kmsg_add(msg.nlh, &s, &err), 0);
	/* A member with touches of the holding's devices and of another one. */
	start(GS_CMD_WATCH);
	mnl_attr_put_strz(msg.nlh, GS_A_NAME, "m");
	mnl_attr_put_u8(msg.nlh, GS_A_ROLE, GS_MEMBER);
	put_names(names, 1);
	counts = mnl_attr_nest_start(msg.nlh, GS_A_COUNTS);
	put_count(0xc300, 2);
	put_count(0xc301, 3);
	put_count(0xc302, 100);
	mnl_attr_nest_end(msg.nlh, counts);
	assert_int_equal(gs_kmsg_add(msg.nlh, &s, &err), 0);
	/* A command that is not known, and one without what it needs. */
	start(GS_CMD_MAX + 1);
	assert_int_equal(gs_kmsg_add(msg.nlh, &s, &err), 0);
	start(GS_CMD_HOLDING);
	assert_int_equal(gs_kmsg_add(msg.nlh, &s, &err), -EPROTO);

	assert_int_equal(s.n_nodes, 1);
	assert_int_equal(s.n_holdings, 1);
	assert_int_equal(s.n_watches, 2);
	assert_ptr_equal(gs_kstate_holding(&s, "h"), &s.holdings[0]);
	assert_null(gs_kstate_holding(&s, "w"));
	assert_ptr_equal(gs_kstate_watch(&s, "m"), &s.watches[1]);
	assert_null(gs_kstate_watch(&s, "h"));
	assert_ptr_equal(gs_kstate_node(&s, 0xc3ff), &s.nodes[0]);
	assert_null(gs_kstate_node(&s, 0xc300));
	/* The borrower's are not its own. */
	assert_int_equal(gs_kstate_touches(&s, gs_kstate_holding(&s, "h")), 5);
}

static void test_dev(void **state)
{
	static const struct {
		unsigned int major, minor;
		uint32_t dev;
	} known[] = {
		{ 195, 0, 0xc300 },    { 195, 255, 0xc3ff }, { 226, 128, 0xe280 },
		{ 10, 256, 0x100a00 }, { 511, 5, 0x1ff05 },  { 4095, 1048575, 0xffffffff },
	};

	for (size_t i = 0; i < GS_ARRAY_SIZE(known); i++) {
		assert_int_equal(gs_kdev(known[i].major, known[i].minor), known[i].dev);
		assert_int_equal(gs_kdev_major(known[i].dev), known[i].major);
		assert_int_equal(gs_kdev_minor(known[i].dev), known[i].minor);
		assert_int_equal(gs_kdev_of(makedev(known[i].major, known[i].minor)), known[i].dev);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_watch),	  cmocka_unit_test(test_holding),
		cmocka_unit_test(test_node),	  cmocka_unit_test(test_event),
		cmocka_unit_test(test_status),	  cmocka_unit_test(test_cut_short),
		cmocka_unit_test(test_missing),	  cmocka_unit_test(test_wrong_length),
		cmocka_unit_test(test_newer),	  cmocka_unit_test(test_long_names),
		cmocka_unit_test(test_bad_nests), cmocka_unit_test(test_noise),
		cmocka_unit_test(test_state),	  cmocka_unit_test(test_dev),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
