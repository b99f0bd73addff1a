// SPDX-License-Identifier: Apache-2.0
/* Requests to the kernel module and its answers, with a kernel of our own. */
#include <errno.h>
#include <linux/genetlink.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "common/klink.h"
#include "common/proc.h"
#include "tests/unit/fakekernel.h"

static struct gs_klink *kmod;
static struct gs_err err;

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

static uint32_t asked_u32(uint16_t type)
{
	assert_non_null(fk_asked_attr(type));
	assert_int_equal(mnl_attr_get_payload_len(fk_asked_attr(type)), 4);
	return mnl_attr_get_u32(fk_asked_attr(type));
}

static uint64_t asked_u64(uint16_t type)
{
	assert_non_null(fk_asked_attr(type));
	assert_int_equal(mnl_attr_get_payload_len(fk_asked_attr(type)), 8);
	return mnl_attr_get_u64(fk_asked_attr(type));
}

static const char *asked_str(uint16_t type)
{
	assert_non_null(fk_asked_attr(type));
	assert_int_equal(mnl_attr_validate(fk_asked_attr(type), MNL_TYPE_NUL_STRING), 0);
	return mnl_attr_get_str(fk_asked_attr(type));
}

/* ---- What is sent. */

static void test_hook_add(void **state)
{
	static const uint32_t passive[] = { 0xc0204601, 0xc0204602 };

	assert_int_equal(gs_klink_hook_add(kmod, 5, "nvidia", passive, 2, false, NULL, &err), 0);
	assert_int_equal(fk.asked[GS_CMD_HOOK_ADD], 1);
	assert_int_equal(asked_u32(GS_A_FD), 5);
	assert_string_equal(asked_str(GS_A_DRIVER), "nvidia");
	assert_int_equal(mnl_attr_get_payload_len(fk_asked_attr(GS_A_PASSIVE)), sizeof(passive));
	assert_memory_equal(mnl_attr_get_payload(fk_asked_attr(GS_A_PASSIVE)), passive,
			    sizeof(passive));

	assert_int_equal(gs_klink_hook_add(kmod, -1, NULL, NULL, 0, false, NULL, &err), 0);
	assert_int_equal((int)asked_u32(GS_A_FD), -1);
	assert_null(fk_asked_attr(GS_A_DRIVER));
	assert_null(fk_asked_attr(GS_A_PASSIVE));
	assert_null(fk_asked_attr(GS_A_REVOCABLE));

	assert_int_equal(gs_klink_hook_add(kmod, 5, NULL, NULL, 0, true, NULL, &err), 0);
	assert_non_null(fk_asked_attr(GS_A_REVOCABLE));
}

static void test_names(void **state)
{
	assert_int_equal(gs_klink_hook_del(kmod, gs_kdev(195, 255), &err), 0);
	assert_int_equal(fk.asked[GS_CMD_HOOK_DEL], 1);
	assert_int_equal(asked_u32(GS_A_DEV), 0xc3ff);
	assert_int_equal(gs_klink_holding_del(kmod, "h1", &err), 0);
	assert_int_equal(fk.asked[GS_CMD_HOLDING_DEL], 1);
	assert_string_equal(asked_str(GS_A_NAME), "h1");
	assert_int_equal(gs_klink_watch_del(kmod, "w1", &err), 0);
	assert_int_equal(fk.asked[GS_CMD_WATCH_DEL], 1);
	assert_string_equal(asked_str(GS_A_NAME), "w1");
	assert_int_equal(gs_klink_withdraw(kmod, "h2", &err), 0);
	assert_int_equal(fk.asked[GS_CMD_WITHDRAW], 1);
	assert_string_equal(asked_str(GS_A_NAME), "h2");
	assert_int_equal(gs_klink_lend(kmod, "h3", 1ULL << 50, &err), 0);
	assert_int_equal(fk.asked[GS_CMD_LEND], 1);
	assert_true(asked_u64(GS_A_SEQ) == 1ULL << 50);
	assert_int_equal(gs_klink_sample(kmod, "h5", 7, &err), 0);
	assert_int_equal(fk.asked[GS_CMD_SAMPLE], 1);
	assert_string_equal(asked_str(GS_A_NAME), "h5");
	assert_int_equal(asked_u64(GS_A_SEQ), 7);
	assert_int_equal(gs_klink_release(kmod, "h4", 9, &err), 0);
	assert_int_equal(fk.asked[GS_CMD_RELEASE], 1);
	assert_string_equal(asked_str(GS_A_NAME), "h4");
	assert_int_equal(asked_u64(GS_A_SEQ), 9);
	assert_int_equal(gs_klink_heartbeat(kmod, &err), 0);
	assert_int_equal(fk.asked[GS_CMD_HEARTBEAT], 1);
}

static void test_holding(void **state)
{
	static const uint32_t devs[] = { 0xc300, 0xc3ff };
	struct gs_kholding_set set = { .name = "h",
				       .devs = devs,
				       .n_devs = 2,
				       .lend_after_ms = GS_KTIME_NONE,
				       .hold_max_ms = UINT32_MAX,
				       .settle_ms = 0 };

	assert_int_equal(gs_klink_holding_set(kmod, &set, &err), 0);
	assert_string_equal(asked_str(GS_A_NAME), "h");
	assert_int_equal(mnl_attr_get_payload_len(fk_asked_attr(GS_A_DEVS)), sizeof(devs));
	assert_memory_equal(mnl_attr_get_payload(fk_asked_attr(GS_A_DEVS)), devs, sizeof(devs));
	assert_null(fk_asked_attr(GS_A_LEND_AFTER_MS));
	assert_int_equal(asked_u32(GS_A_HOLD_MAX_MS), UINT32_MAX);
	assert_int_equal(asked_u32(GS_A_SETTLE_MS), 0);

	set.lend_after_ms = 1LL << 32;
	assert_int_equal(gs_klink_holding_set(kmod, &set, &err), -ERANGE);
	assert_int_equal(fk.asked[GS_CMD_HOLDING_SET], 1);
}

static void test_watch(void **state)
{
	static const char *const holdings[] = { "a", "b" };
	struct gs_kwatch_set set = { .name = "w",
				     .role = GS_BORROWER,
				     .who = { .pid = 7, .start_time = 8 },
				     .holdings = holdings,
				     .n_holdings = 2,
				     .kill_on_return = true };
	const struct nlattr *attr;
	size_t n = 0;

	assert_int_equal(gs_klink_watch_set(kmod, &set, &err), 0);
	assert_string_equal(asked_str(GS_A_NAME), "w");
	assert_int_equal(mnl_attr_get_u8(fk_asked_attr(GS_A_ROLE)), GS_BORROWER);
	assert_int_equal(asked_u32(GS_A_PID), 7);
	assert_int_equal(asked_u64(GS_A_START_TIME), 8);
	assert_null(fk_asked_attr(GS_A_CGROUP_ID));
	assert_non_null(fk_asked_attr(GS_A_KILL_ON_RETURN));
	assert_true(fk_asked_attr(GS_A_HOLDINGS)->nla_type & NLA_F_NESTED);
	mnl_attr_for_each_nested(attr, fk_asked_attr(GS_A_HOLDINGS)) {
		assert_true(n < GS_ARRAY_SIZE(holdings));
		assert_int_equal(mnl_attr_get_type(attr), GS_A_NAME);
		assert_string_equal(mnl_attr_get_str(attr), holdings[n]);
		n++;
	}
	assert_int_equal(n, 2);

	set = (struct gs_kwatch_set){ .name = "w",
				      .role = GS_EXEMPT,
				      .who = { .cgroup_id = 9, .cgroup_v1 = true } };
	assert_int_equal(gs_klink_watch_set(kmod, &set, &err), 0);
	assert_int_equal(asked_u64(GS_A_CGROUP_ID), 9);
	assert_non_null(fk_asked_attr(GS_A_CGROUP_V1));
	assert_null(fk_asked_attr(GS_A_PID));
	assert_null(fk_asked_attr(GS_A_START_TIME));
	assert_null(fk_asked_attr(GS_A_HOLDINGS));
	assert_null(fk_asked_attr(GS_A_KILL_ON_RETURN));
}

static void test_too_large(void **state)
{
	static char name[1024 * 1024];
	struct gs_kholding_set set = { .name = "h", .n_devs = sizeof(name) / sizeof(uint32_t) };
	const char *many[1000];
	struct gs_kwatch_set watch = { .name = "w", .holdings = many, .n_holdings = 1000 };

	memset(name, 'n', sizeof(name) - 1);
	set.devs = (const void *)name;
	for (size_t i = 0; i < GS_ARRAY_SIZE(many); i++)
		many[i] = "a name of some length";
	assert_int_equal(gs_klink_withdraw(kmod, name, &err), -EMSGSIZE);
	name[65535 - 4] = '\0'; /* would just fit into nla_len, by wrapping */
	assert_int_equal(gs_klink_withdraw(kmod, name, &err), -EMSGSIZE);
	assert_int_equal(gs_klink_holding_set(kmod, &set, &err), -EMSGSIZE);
	assert_int_equal(gs_klink_watch_set(kmod, &watch, &err), -EMSGSIZE);
	assert_int_equal(fk.asked[GS_CMD_WITHDRAW] + fk.asked[GS_CMD_HOLDING_SET] +
				 fk.asked[GS_CMD_WATCH_SET],
			 0);
	/* A name that is only too long for the module is the module's to refuse. */
	name[200] = '\0';
	assert_int_equal(gs_klink_withdraw(kmod, name, &err), 0);
	assert_int_equal(strlen(asked_str(GS_A_NAME)), 200);
}

/* ---- What is answered. */

static struct fk_msg msg;

static bool answer_node(int fd, const struct nlmsghdr *req)
{
	fk_start_answer(&msg, req, GS_CMD_NODE);
	mnl_attr_put_u32(msg.nlh, GS_A_DEV, 0xc300);
	mnl_attr_put_strz(msg.nlh, GS_A_MODULE, "m");
	fk_send(fd, &msg);
	return false;
}

static void test_node(void **state)
{
	struct gs_knode node;

	fk.answer = answer_node;
	assert_int_equal(gs_klink_hook_add(kmod, 5, "d", NULL, 0, false, &node, &err), 0);
	assert_int_equal(node.dev, 0xc300);
	assert_string_equal(node.module, "m");
}

static bool refuse_with_words(int fd, const struct nlmsghdr *req)
{
	fk_ack(fd, req, EBUSY, "gpushare: the holding is lent", 0);
	return true;
}

static bool refuse_silently(int fd, const struct nlmsghdr *req)
{
	fk_ack(fd, req, EBUSY, NULL, 0);
	return true;
}

static bool refuse_unknown(int fd, const struct nlmsghdr *req)
{
	fk_ack(fd, req, ENOENT, "no such holding", 0);
	return true;
}

/* The offset of GS_A_SEQ, behind GS_A_NAME "h". */
static bool refuse_attribute(int fd, const struct nlmsghdr *req)
{
	fk_ack(fd, req, ERANGE, "integer out of range", NLMSG_HDRLEN + GENL_HDRLEN + 8);
	return true;
}

static bool refuse_nonsense(int fd, const struct nlmsghdr *req)
{
	fk_ack(fd, req, EINVAL, "what", 1000000);
	return true;
}

static void test_refusals(void **state)
{
	unsigned int lookups = fk.lookups;

	fk.answer = refuse_with_words;
	assert_int_equal(gs_klink_holding_del(kmod, "h", &err), -EBUSY);
	assert_string_equal(err.msg, "the module refused: the holding is lent");
	assert_int_equal(err.code, EBUSY);
	fk.answer = refuse_silently;
	assert_int_equal(gs_klink_heartbeat(kmod, &err), -EBUSY);
	assert_string_equal(err.msg, "the module refused: Device or resource busy");
	fk.answer = refuse_attribute;
	assert_int_equal(gs_klink_lend(kmod, "h", 1, &err), -ERANGE);
	assert_string_equal(err.msg, "the module refused: integer out of range (seq)");
	fk.answer = refuse_nonsense;
	assert_int_equal(gs_klink_lend(kmod, "h", 1, &err), -EINVAL);
	assert_string_equal(err.msg, "the module refused: what");
	/* That is no sign of another module. */
	fk.answer = refuse_unknown;
	assert_int_equal(gs_klink_withdraw(kmod, "h", &err), -ENOENT);
	assert_string_equal(err.msg, "the module refused: no such holding");
	assert_int_equal(fk.asked[GS_CMD_WITHDRAW], 1);
	assert_true(gs_klink_loaded(kmod));
	assert_int_equal(fk.lookups, lookups);
	/* Nobody needs to want the words. */
	assert_int_equal(gs_klink_withdraw(kmod, "h", NULL), -ENOENT);
}

static bool no_rights(int fd, const struct nlmsghdr *req)
{
	fk_ack(fd, req, EPERM, NULL, 0);
	return true;
}

static void test_no_rights(void **state)
{
	struct gs_klink *other = NULL;

	fk.answer = no_rights;
	assert_int_equal(gs_klink_open(&other, &err), -EPERM);
	assert_null(other);
	assert_non_null(strstr(err.msg, "CAP_NET_ADMIN"));
}

static void test_not_loaded(void **state)
{
	struct gs_klink *other = NULL;

	fk.loaded = false;
	assert_int_equal(gs_klink_open(&other, &err), -ENOENT);
	assert_null(other);
	assert_string_equal(err.msg, "kernel module gpushare is not loaded");

	/* The link stays good for the module that comes. */
	assert_int_equal(gs_klink_heartbeat(kmod, &err), -ENOENT);
	assert_string_equal(err.msg, "kernel module gpushare is not loaded");
	assert_false(gs_klink_loaded(kmod));
	fk.loaded = true;
	fk.family++;
	assert_int_equal(gs_klink_heartbeat(kmod, &err), 0);
	assert_true(gs_klink_loaded(kmod));
}

static void test_reload(void **state)
{
	fk.family = 55;
	assert_int_equal(gs_klink_lend(kmod, "h", 1, &err), 0);
	assert_int_equal(fk.asked[GS_CMD_LEND], 1);
	/* One of another ABI. */
	fk.family = 56;
	fk.abi = GS_ABI_VERSION + 1;
	assert_int_equal(gs_klink_lend(kmod, "h", 1, &err), -EPROTONOSUPPORT);
	assert_int_equal(fk.asked[GS_CMD_LEND], 1);
	assert_false(gs_klink_loaded(kmod));
	fk.abi = GS_ABI_VERSION;
	assert_int_equal(gs_klink_lend(kmod, "h", 1, &err), 0);
}

static bool refuse_enoent_silently(int fd, const struct nlmsghdr *req)
{
	const struct genlmsghdr *genl = mnl_nlmsg_get_payload(req);

	if (genl->cmd == GS_CMD_STATUS)
		return false;
	fk_ack(fd, req, ENOENT, NULL, 0);
	return true;
}

/* The module itself says so, twice. */
static void test_silent_enoent(void **state)
{
	fk.answer = refuse_enoent_silently;
	assert_int_equal(gs_klink_lend(kmod, "h", 1, &err), -ENOENT);
	assert_string_equal(err.msg, "the module refused: No such file or directory");
	assert_int_equal(fk.asked[GS_CMD_LEND], 2);
}

static void test_abi(void **state)
{
	struct gs_klink *other = NULL;

	fk.abi = 77;
	assert_int_equal(gs_klink_open(&other, &err), -EPROTONOSUPPORT);
	assert_non_null(strstr(err.msg, "ABI 77"));
	assert_null(other);
	fk.family = 0;
	assert_int_equal(gs_klink_open(&other, &err), -EPROTO);
	assert_non_null(strstr(err.msg, "no number"));
}

/* ---- Answers that are none. */

static bool no_answer(int fd, const struct nlmsghdr *req)
{
	return true;
}

static bool half_ack(int fd, const struct nlmsghdr *req)
{
	struct nlmsghdr nlh = { .nlmsg_len = NLMSG_HDRLEN,
				.nlmsg_type = NLMSG_ERROR,
				.nlmsg_seq = req->nlmsg_seq };

	fk_send_raw(fd, &nlh, sizeof(nlh));
	return true;
}

static bool no_message(int fd, const struct nlmsghdr *req)
{
	fk_send_raw(fd, "no message", 10);
	return true;
}

static bool too_large(int fd, const struct nlmsghdr *req)
{
	static const char padding[1000];

	fk_start_answer(&msg, req, GS_CMD_STATUS);
	while (msg.nlh->nlmsg_len < 70000)
		mnl_attr_put(msg.nlh, GS_A_MAX + 1, sizeof(padding), padding);
	fk_send(fd, &msg);
	return true;
}

static bool malformed(int fd, const struct nlmsghdr *req)
{
	fk_start_answer(&msg, req, GS_CMD_STATUS);
	mnl_attr_put_u8(msg.nlh, GS_A_ABI, 1);
	fk_send(fd, &msg);
	return false;
}

static bool fails(int fd, const struct nlmsghdr *req)
{
	fk_send_errno(fd, ENOBUFS);
	return true;
}

static void test_no_answer(void **state)
{
	static const struct {
		bool (*answer)(int fd, const struct nlmsghdr *req);
		int code;
		const char *words;
	} bad[] = {
		{ no_answer, ETIMEDOUT, "did not answer" },
		{ half_ack, EPROTO, "cut short" },
		{ no_message, EPROTO, "cut short" },
		{ too_large, EMSGSIZE, "larger than" },
		{ malformed, EPROTO, "abi" },
		{ fails, ENOBUFS, "No buffer space" },
	};
	struct gs_kstatus status = { .abi = 99 };

	for (size_t i = 0; i < GS_ARRAY_SIZE(bad); i++) {
		fk.answer = bad[i].answer;
		assert_int_equal(gs_klink_status(kmod, &status, &err), -bad[i].code);
		assert_int_equal(err.code, bad[i].code);
		assert_non_null(strstr(err.msg, bad[i].words));
		assert_int_equal(status.abi, 99);
		/* The next one is none the worse for it. */
		fk.answer = NULL;
		assert_int_equal(gs_klink_heartbeat(kmod, &err), 0);
	}
}

/* What somebody gave up waiting for comes before the answer, and so does what others write. */
static bool after_others(int fd, const struct nlmsghdr *req)
{
	struct nlmsghdr old = *req;

	old.nlmsg_seq--;
	fk_ack(fd, &old, EBUSY, "old", 0);
	fk_send_errno(fd, EINTR);
	fk_start_answer(&msg, req, GS_CMD_STATUS);
	mnl_attr_put_u32(msg.nlh, GS_A_ABI, 66);
	fk_send_from(fd, &msg, 4711);
	return false;
}

static void test_others(void **state)
{
	struct gs_kstatus status;

	fk.answer = after_others;
	assert_int_equal(gs_klink_status(kmod, &status, &err), 0);
	assert_int_equal(status.abi, GS_ABI_VERSION);
}

/* Answer and ack in one datagram, as some kernel may do. */
static bool together(int fd, const struct nlmsghdr *req)
{
	struct nlmsgerr ok = { .msg = *req };
	struct nlmsghdr *ack;

	fk_start_answer(&msg, req, GS_CMD_STATUS);
	mnl_attr_put_u32(msg.nlh, GS_A_ABI, 5);
	ack = mnl_nlmsg_put_header(msg.buf + msg.nlh->nlmsg_len);
	ack->nlmsg_type = NLMSG_ERROR;
	ack->nlmsg_seq = req->nlmsg_seq;
	memcpy(mnl_nlmsg_put_extra_header(ack, sizeof(ok)), &ok, sizeof(ok));
	fk_send_raw(fd, msg.buf, msg.nlh->nlmsg_len + ack->nlmsg_len);
	return true;
}

static void test_together(void **state)
{
	struct gs_kstatus status;

	fk.answer = together;
	assert_int_equal(gs_klink_status(kmod, &status, &err), 0);
	assert_int_equal(status.abi, 5);
}

/* ---- Who is watched. */

static void test_who(void **state)
{
	struct gs_kwho who = { 0 };
	uint64_t start;

	assert_int_equal(gs_kwho_pid(getpid(), &who, &err), 0);
	assert_int_equal(who.pid, getpid());
	assert_int_equal(gs_proc_start(getpid(), &start, &err), 0);
	assert_true(who.start_time == start);
	assert_int_equal(gs_kwho_pid(0, &who, &err), -ESRCH);
	assert_int_equal(gs_kwho_pid(-1, &who, &err), -ESRCH);
	assert_int_equal(gs_kwho_cgroup("/proc/self", &who, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "/proc/self is no cgroup"));
	assert_int_equal(gs_kwho_cgroup("/nowhere", &who, &err), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_hook_add, setup, teardown),
		cmocka_unit_test_setup_teardown(test_names, setup, teardown),
		cmocka_unit_test_setup_teardown(test_holding, setup, teardown),
		cmocka_unit_test_setup_teardown(test_watch, setup, teardown),
		cmocka_unit_test_setup_teardown(test_too_large, setup, teardown),
		cmocka_unit_test_setup_teardown(test_node, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refusals, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_rights, setup, teardown),
		cmocka_unit_test_setup_teardown(test_not_loaded, setup, teardown),
		cmocka_unit_test_setup_teardown(test_reload, setup, teardown),
		cmocka_unit_test_setup_teardown(test_silent_enoent, setup, teardown),
		cmocka_unit_test_setup_teardown(test_abi, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_answer, setup, teardown),
		cmocka_unit_test_setup_teardown(test_others, setup, teardown),
		cmocka_unit_test_setup_teardown(test_together, setup, teardown),
		cmocka_unit_test_setup_teardown(test_who, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
