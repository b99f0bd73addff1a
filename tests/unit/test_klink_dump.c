// SPDX-License-Identifier: Apache-2.0
/* Dumps of the kernel module's state, whole, disturbed and cut off. */
#include <errno.h>
#include <linux/genetlink.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "common/klink.h"
#include "tests/unit/fakekernel.h"

static struct gs_klink *kmod;
static struct gs_err err;
static struct fk_msg msg;

static int setup(void **state)
{
	fk_reset();
	err = (struct gs_err){ 0 };
	return gs_klink_open(&kmod, &err);
}

static int teardown(void **state)
{
	gs_klink_close(kmod);
	kmod = NULL;
	return 0;
}

static bool is_dump(const struct nlmsghdr *req)
{
	const struct genlmsghdr *genl = mnl_nlmsg_get_payload(req);

	if (genl->cmd != GS_CMD_DUMP)
		return false;
	assert_int_equal(req->nlmsg_flags & NLM_F_DUMP, NLM_F_DUMP);
	return true;
}

static void start(const struct nlmsghdr *req, uint8_t cmd, uint16_t flags)
{
	fk_start(&msg, req, fk.family, cmd, NLM_F_MULTI | flags);
}

static void send_node(int fd, const struct nlmsghdr *req, uint32_t dev, uint16_t flags)
{
	start(req, GS_CMD_NODE, flags);
	mnl_attr_put_u32(msg.nlh, GS_A_DEV, dev);
	fk_send(fd, &msg);
}

static void send_holding(int fd, const struct nlmsghdr *req, const char *name)
{
	start(req, GS_CMD_HOLDING, 0);
	mnl_attr_put_strz(msg.nlh, GS_A_NAME, name);
	mnl_attr_put_u8(msg.nlh, GS_A_STATE, GS_IDLE);
	fk_send(fd, &msg);
}

static void send_watch(int fd, const struct nlmsghdr *req, const char *name)
{
	start(req, GS_CMD_WATCH, 0);
	mnl_attr_put_strz(msg.nlh, GS_A_NAME, name);
	mnl_attr_put_u8(msg.nlh, GS_A_ROLE, GS_MEMBER);
	fk_send(fd, &msg);
}

static bool whole(int fd, const struct nlmsghdr *req)
{
	if (!is_dump(req))
		return false;
	send_node(fd, req, 0xc300, 0);
	send_node(fd, req, 0xc3ff, 0);
	send_holding(fd, req, "h");
	start(req, GS_CMD_MAX + 1, 0); /* a newer module's */
	fk_send(fd, &msg);
	send_watch(fd, req, "w");
	fk_done(fd, req, 0, NULL, 0);
	return true;
}

static void test_whole(void **state)
{
	cleanup_kstate struct gs_kstate s = { 0 };

	fk.answer = whole;
	fk.event_seq = 41;
	assert_int_equal(gs_klink_dump(kmod, &s, &err), 0);
	assert_int_equal(s.n_nodes, 2);
	assert_int_equal(s.n_holdings, 1);
	assert_int_equal(s.n_watches, 1);
	assert_non_null(gs_kstate_node(&s, 0xc3ff));
	assert_int_equal(gs_kstate_holding(&s, "h")->state, GS_IDLE);
	assert_non_null(gs_kstate_watch(&s, "w"));
	assert_int_equal(s.status.event_seq, 41);
	assert_int_equal(fk.asked[GS_CMD_DUMP], 1);
}

static bool empty(int fd, const struct nlmsghdr *req)
{
	if (!is_dump(req))
		return false;
	fk_done(fd, req, 0, NULL, 0);
	return true;
}

static void test_empty(void **state)
{
	struct gs_kstate s = { 0 };

	fk.answer = empty;
	assert_int_equal(gs_klink_dump(kmod, &s, &err), 0);
	assert_int_equal(s.n_nodes + s.n_holdings + s.n_watches, 0);
	gs_kstate_free(&s);
}

/* Something changes during the first two: once within, once at the very end. */
static bool disturbed_twice(int fd, const struct nlmsghdr *req)
{
	if (!is_dump(req))
		return false;
	send_node(fd, req, fk.asked[GS_CMD_DUMP], fk.asked[GS_CMD_DUMP] == 1 ? NLM_F_DUMP_INTR : 0);
	send_holding(fd, req, "h");
	fk_done(fd, req, 0, NULL, fk.asked[GS_CMD_DUMP] == 2 ? NLM_F_DUMP_INTR : 0);
	return true;
}

static void test_disturbed(void **state)
{
	cleanup_kstate struct gs_kstate s = { 0 };

	fk.answer = disturbed_twice;
	assert_int_equal(gs_klink_dump(kmod, &s, &err), 0);
	assert_int_equal(fk.asked[GS_CMD_DUMP], 3);
	/* Nothing of the first two is left. */
	assert_int_equal(s.n_nodes, 1);
	assert_int_equal(s.nodes[0].dev, 3);
	assert_int_equal(s.n_holdings, 1);
}

static bool always_disturbed(int fd, const struct nlmsghdr *req)
{
	if (!is_dump(req))
		return false;
	send_node(fd, req, 1, NLM_F_DUMP_INTR);
	fk_done(fd, req, 0, NULL, NLM_F_DUMP_INTR);
	return true;
}

static void test_always_disturbed(void **state)
{
	struct gs_kstate s = { .n_nodes = 77 };

	fk.answer = always_disturbed;
	assert_int_equal(gs_klink_dump(kmod, &s, &err), -EAGAIN);
	assert_true(fk.asked[GS_CMD_DUMP] > 3 && fk.asked[GS_CMD_DUMP] < 100);
	assert_int_equal(s.n_nodes, 77);
}

static bool refused_late(int fd, const struct nlmsghdr *req)
{
	if (!is_dump(req))
		return false;
	send_node(fd, req, 1, 0);
	fk_done(fd, req, ENOMEM, "no room", 0);
	return true;
}

static bool refused_at_once(int fd, const struct nlmsghdr *req)
{
	if (!is_dump(req))
		return false;
	fk_ack(fd, req, EPERM, "not the initial PID namespace", 0);
	return true;
}

static void test_refused(void **state)
{
	struct gs_kstate s = { 0 };

	fk.answer = refused_late;
	assert_int_equal(gs_klink_dump(kmod, &s, &err), -ENOMEM);
	assert_string_equal(err.msg, "the module refused: no room");
	fk.answer = refused_at_once;
	assert_int_equal(gs_klink_dump(kmod, &s, &err), -EPERM);
	assert_string_equal(err.msg, "the module refused: not the initial PID namespace");
}

/* A message that is none: the rest is read, so that the dump does not stay open in the kernel. */
static bool malformed(int fd, const struct nlmsghdr *req)
{
	if (!is_dump(req))
		return false;
	start(req, GS_CMD_HOLDING, 0);
	fk_send(fd, &msg);
	send_node(fd, req, 1, 0);
	fk_done(fd, req, 0, NULL, 0);
	return true;
}

/* The last word never comes. */
static bool endless(int fd, const struct nlmsghdr *req)
{
	if (!is_dump(req))
		return false;
	send_node(fd, req, 1, 0);
	return true;
}

static void test_cut_off(void **state)
{
	struct gs_kstate s = { 0 };
	struct gs_kstatus status;

	fk.answer = malformed;
	assert_int_equal(gs_klink_dump(kmod, &s, &err), -EPROTO);
	assert_non_null(strstr(err.msg, "has no name"));

	fk.answer = endless;
	assert_int_equal(gs_klink_dump(kmod, &s, &err), -ETIMEDOUT);
	/* Another socket: the dump would have stayed open with the first one. */
	fk.answer = NULL;
	assert_int_equal(fk.opened, 1);
	assert_int_equal(gs_klink_status(kmod, &status, &err), 0);
	assert_int_equal(fk.opened, 2);
	fk.answer = whole;
	assert_int_equal(gs_klink_dump(kmod, &s, &err), 0);
	gs_kstate_free(&s);
}

/* The largest watch that the limits allow, in one message; many of them in one datagram. */
static bool large(int fd, const struct nlmsghdr *req)
{
	static char all[65536];
	char name[GS_NAME_MAX + 1];
	struct nlattr *nest;
	size_t used = 0;

	if (!is_dump(req))
		return false;
	memset(name, 'x', GS_NAME_MAX);
	name[GS_NAME_MAX] = '\0';
	start(req, GS_CMD_WATCH, 0);
	mnl_attr_put_strz(msg.nlh, GS_A_NAME, name);
	mnl_attr_put_u8(msg.nlh, GS_A_ROLE, GS_MEMBER);
	nest = mnl_attr_nest_start(msg.nlh, GS_A_HOLDINGS);
	for (int i = 0; i < GS_LINKS_MAX; i++)
		mnl_attr_put_strz(msg.nlh, GS_A_NAME, name);
	mnl_attr_nest_end(msg.nlh, nest);
	for (; used + msg.nlh->nlmsg_len < sizeof(all); used += msg.nlh->nlmsg_len)
		memcpy(all + used, msg.buf, msg.nlh->nlmsg_len);
	fk_send_raw(fd, all, used);
	fk_done(fd, req, 0, NULL, 0);
	return true;
}

static void test_large(void **state)
{
	cleanup_kstate struct gs_kstate s = { 0 };

	fk.answer = large;
	assert_int_equal(gs_klink_dump(kmod, &s, &err), 0);
	assert_true(s.n_watches >= 5);
	for (size_t i = 0; i < s.n_watches; i++) {
		assert_int_equal(s.watches[i].holdings.n, GS_LINKS_MAX);
		assert_int_equal(strlen(s.watches[i].holdings.v[GS_LINKS_MAX - 1]), GS_NAME_MAX);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_whole, setup, teardown),
		cmocka_unit_test_setup_teardown(test_empty, setup, teardown),
		cmocka_unit_test_setup_teardown(test_disturbed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_always_disturbed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cut_off, setup, teardown),
		cmocka_unit_test_setup_teardown(test_large, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
