// SPDX-License-Identifier: Apache-2.0
/* Listening: events in order, lost, late, and a module that comes and goes. */
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
#include "common/kevent.h"
#include "tests/unit/fakekernel.h"

static struct gs_kevents *events;
static struct gs_err err;
static struct fk_msg msg;
static struct gs_kevent e;

/* A module whose last event was number 100. */
static int setup(void **state)
{
	fk_reset();
	fk.event_seq = 100;
	err = (struct gs_err){ 0 };
	memset(&e, 0, sizeof(e));
	return gs_kevents_open(0, &events, &err);
}

static int teardown(void **state)
{
	gs_kevents_close(events);
	events = NULL;
	return 0;
}

static void send_event(uint64_t seq)
{
	fk_start_event(&msg, GS_EV_DRAINED, seq);
	fk_send(gs_kevents_fd(events), &msg);
}

static enum gs_kevent_what next(void)
{
	enum gs_kevent_what what = 99;

	assert_int_equal(gs_kevent_next(events, 5, &what, &e, &err), 0);
	return what;
}

static void expect(uint64_t seq)
{
	assert_int_equal(next(), GS_KEVENT_GOT);
	assert_int_equal(e.event_seq, seq);
}

static void test_in_order(void **state)
{
	assert_true(gs_kevents_loaded(events));
	assert_int_equal(fk.joined, fk.group);
	assert_int_equal(next(), GS_KEVENT_NONE);
	assert_int_equal(fk.polls, 1);
	send_event(101);
	send_event(102);
	expect(101);
	assert_int_equal(e.event, GS_EV_DRAINED);
	expect(102);
	assert_int_equal(next(), GS_KEVENT_NONE);
}

/* Several messages in one datagram, with one that is not ours between. */
static void test_together(void **state)
{
	static char all[4096];
	size_t used = 0;

	for (uint64_t seq = 101; seq <= 103; seq++) {
		fk_start_event(&msg, GS_EV_DRAINED, seq);
		if (seq == 102)
			msg.nlh->nlmsg_type = fk.family + 1;
		memcpy(all + used, msg.buf, msg.nlh->nlmsg_len);
		used += msg.nlh->nlmsg_len;
	}
	fk_send_raw(gs_kevents_fd(events), all, used);
	expect(101);
	assert_int_equal(next(), GS_KEVENT_LOST);
	expect(103);
	assert_int_equal(next(), GS_KEVENT_NONE);
}

static void test_gap(void **state)
{
	/* Already the first one that is missed shows. */
	send_event(102);
	assert_int_equal(next(), GS_KEVENT_LOST);
	expect(102);
	send_event(103);
	expect(103);
	send_event(200);
	send_event(201);
	assert_int_equal(next(), GS_KEVENT_LOST);
	expect(200);
	expect(201);
	assert_int_equal(next(), GS_KEVENT_NONE);
}

/* Sent between joining and asking for the last number: not lost, and no reason for an alarm. */
static void test_early(void **state)
{
	send_event(99);
	send_event(100);
	send_event(101);
	expect(99);
	expect(100);
	expect(101);
}

static void test_enobufs(void **state)
{
	unsigned int lookups = fk.lookups;

	send_event(101);
	expect(101);
	fk_send_errno(gs_kevents_fd(events), ENOBUFS);
	send_event(150);
	fk.event_seq = 160;
	send_event(161);
	assert_int_equal(next(), GS_KEVENT_LOST);
	/* It joined again, for a notice may have been among what was lost. */
	assert_true(fk.lookups > lookups);
	expect(150);
	expect(161);
	/* What was dropped while it read these, nobody told. */
	fk.event_seq = 161;
	assert_int_equal(next(), GS_KEVENT_LOST);
	assert_int_equal(next(), GS_KEVENT_NONE);
	send_event(162);
	expect(162);
	assert_int_equal(next(), GS_KEVENT_NONE);
}

static void test_reload(void **state)
{
	int fd = gs_kevents_fd(events);

	send_event(101);
	fk_notice(fd, CTRL_CMD_DELFAMILY, "other", fk.family);
	fk_notice(fd, CTRL_CMD_NEWFAMILY, "other", 99);
	fk_notice(fd, CTRL_CMD_DELFAMILY, GS_GENL_NAME, fk.family);
	expect(101);
	assert_int_equal(next(), GS_KEVENT_UNLOADED);
	assert_false(gs_kevents_loaded(events));
	assert_int_equal(next(), GS_KEVENT_NONE);

	fk.family = 44;
	fk.group = 9;
	fk.event_seq = 0;
	fk_notice(fd, CTRL_CMD_NEWFAMILY, GS_GENL_NAME, fk.family);
	send_event(1);
	assert_int_equal(next(), GS_KEVENT_LOADED);
	assert_true(gs_kevents_loaded(events));
	assert_int_equal(fk.joined, 9);
	expect(1);
	/* A second notice of the same module is no news. */
	fk_notice(fd, CTRL_CMD_NEWFAMILY, GS_GENL_NAME, fk.family);
	assert_int_equal(next(), GS_KEVENT_NONE);
}

/* Loaded, and unloaded before we looked. */
static void test_came_and_went(void **state)
{
	int fd = gs_kevents_fd(events);

	fk_notice(fd, CTRL_CMD_DELFAMILY, GS_GENL_NAME, fk.family);
	fk.loaded = false;
	fk_notice(fd, CTRL_CMD_NEWFAMILY, GS_GENL_NAME, 44);
	fk_notice(fd, CTRL_CMD_DELFAMILY, GS_GENL_NAME, 44);
	assert_int_equal(next(), GS_KEVENT_UNLOADED);
	assert_int_equal(next(), GS_KEVENT_NONE);
	assert_false(gs_kevents_loaded(events));
}

/* The notices themselves were lost. */
static void test_lost_notices(void **state)
{
	int fd = gs_kevents_fd(events);
	uint16_t old = fk.family;

	fk.family = 44;
	fk.event_seq = 7;
	fk_send_errno(fd, ENOBUFS);
	fk_notice(fd, CTRL_CMD_DELFAMILY, GS_GENL_NAME, old); /* this one was still in the queue */
	send_event(8);
	assert_int_equal(next(), GS_KEVENT_LOADED);
	expect(8);
	assert_int_equal(next(), GS_KEVENT_LOST);
	assert_int_equal(next(), GS_KEVENT_NONE);
	assert_true(gs_kevents_loaded(events));

	fk.loaded = false;
	fk_send_errno(fd, ENOBUFS);
	assert_int_equal(next(), GS_KEVENT_UNLOADED);
	fk_send_errno(fd, ENOBUFS);
	assert_int_equal(next(), GS_KEVENT_NONE);
}

static void test_loaded_later(void **state)
{
	struct gs_kevents *first = events;

	fk.loaded = false;
	events = NULL;
	assert_int_equal(gs_kevents_open(4096, &events, &err), 0);
	assert_false(gs_kevents_loaded(events));
	assert_int_equal(next(), GS_KEVENT_NONE);
	fk.loaded = true;
	fk_notice(gs_kevents_fd(events), CTRL_CMD_NEWFAMILY, GS_GENL_NAME, fk.family);
	assert_int_equal(next(), GS_KEVENT_LOADED);
	gs_kevents_close(first);
}

static void test_other_abi(void **state)
{
	enum gs_kevent_what what;
	int fd = gs_kevents_fd(events);

	fk_notice(fd, CTRL_CMD_DELFAMILY, GS_GENL_NAME, fk.family);
	assert_int_equal(next(), GS_KEVENT_UNLOADED);
	fk.abi = GS_ABI_VERSION + 1;
	fk_notice(fd, CTRL_CMD_NEWFAMILY, GS_GENL_NAME, 44);
	fk.family = 44;
	send_event(101);
	assert_int_equal(gs_kevent_next(events, 5, &what, &e, &err), -EPROTONOSUPPORT);
	/* What it says is not listened to. */
	assert_int_equal(next(), GS_KEVENT_NONE);
}

static void test_malformed(void **state)
{
	static const char padding[1000];
	enum gs_kevent_what what;
	int fd = gs_kevents_fd(events);

	fk_start(&msg, NULL, fk.family, GS_CMD_EVENT, 0);
	fk_send(fd, &msg);
	fk_send_raw(fd, "no message", 10);
	send_event(101);
	assert_int_equal(gs_kevent_next(events, 5, &what, &e, &err), -EPROTO);
	expect(101);
	/* Larger than anything of ours. */
	fk_start_event(&msg, GS_EV_DRAINED, 102);
	while (msg.nlh->nlmsg_len < 70000)
		mnl_attr_put(msg.nlh, GS_A_MAX + 1, sizeof(padding), padding);
	fk_send(fd, &msg);
	send_event(103);
	assert_int_equal(next(), GS_KEVENT_LOST);
	expect(103);
}

static void test_others(void **state)
{
	/* Not an event, and not from the kernel. */
	fk_start(&msg, NULL, fk.family, GS_CMD_NODE, 0);
	fk_send(gs_kevents_fd(events), &msg);
	fk_start_event(&msg, GS_EV_DRAINED, 500);
	fk_send_from(gs_kevents_fd(events), &msg, 4711);
	send_event(101);
	expect(101);
}

static void test_refused(void **state)
{
	struct gs_kevents *other = NULL;

	fk.join_errno = EPERM;
	assert_int_equal(gs_kevents_open(0, &other, &err), -EPERM);
	assert_null(other);
	assert_non_null(strstr(err.msg, "CAP_NET_ADMIN"));
	fk.join_errno = 0;
	fk.abi = 9;
	assert_int_equal(gs_kevents_open(0, &other, NULL), -EPROTONOSUPPORT);
	fk.abi = GS_ABI_VERSION;
	fk.group = 0;
	assert_int_equal(gs_kevents_open(0, &other, &err), -EPROTO);
}

static void test_socket_error(void **state)
{
	enum gs_kevent_what what;

	fk_send_errno(gs_kevents_fd(events), EIO);
	assert_int_equal(gs_kevent_next(events, 0, &what, &e, &err), -EIO);
	fk_send_errno(gs_kevents_fd(events), EINTR);
	assert_int_equal(gs_kevent_next(events, -1, &what, &e, &err), -EINTR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_in_order, setup, teardown),
		cmocka_unit_test_setup_teardown(test_together, setup, teardown),
		cmocka_unit_test_setup_teardown(test_gap, setup, teardown),
		cmocka_unit_test_setup_teardown(test_early, setup, teardown),
		cmocka_unit_test_setup_teardown(test_enobufs, setup, teardown),
		cmocka_unit_test_setup_teardown(test_reload, setup, teardown),
		cmocka_unit_test_setup_teardown(test_came_and_went, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lost_notices, setup, teardown),
		cmocka_unit_test_setup_teardown(test_loaded_later, setup, teardown),
		cmocka_unit_test_setup_teardown(test_other_abi, setup, teardown),
		cmocka_unit_test_setup_teardown(test_malformed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_others, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_socket_error, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
