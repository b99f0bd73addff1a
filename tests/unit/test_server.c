// SPDX-License-Identifier: Apache-2.0
/* The agent's socket, served by a child, with answers of every length. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/server.h"
#include "common/agentlink.h"
#include "common/cleanup.h"
#include "common/json.h"
#include "common/proc.h"
#include "common/xalloc.h"
#include "gpushare/agent.h"
#include "tests/unit/tmpdir.h"

#define LONG_MS 20000
#define SHORT_MS 300
/* Of {"v":1,"ok":true,"pad":""}. */
#define FRAME 26
/* More than the agent has room for. */
#define MANY 600

static pid_t child;

/*
 * ---- What the child answers: "pad" with as many letters as the request asks for. "wait" waits
 * for a "change", which answers how many were served within server_changed(). With "starve" it may
 * open nothing more, for so many milliseconds; "busy" tells how many of them it worked since then.
 * "unwatched": so many clients more are such that the kernel has no room to watch.
 */

static bool changed;
static unsigned int served;

static bool is_op(const json_t *request, const char *op)
{
	return strcmp(json_string_value(json_object_get(request, "op")), op) == 0;
}

static uv_timer_t fed;
static clock_t hungry;

static unsigned int busy_ms(void)
{
	return (unsigned int)((clock() - hungry) * 1000 / CLOCKS_PER_SEC);
}

static void limit_files(rlim_t n)
{
	struct rlimit limit;

	(void)getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = n ? n : limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

static void on_fed(uv_timer_t *timer)
{
	limit_files(0);
}

/* The number of who asks for it, the last one, is the first that it may not have again. */
static void starve(struct agent *agent, size_t ms)
{
	int next = dup(0);

	(void)close(next);
	(void)uv_timer_init(agent->loop, &fed);
	(void)uv_timer_start(&fed, on_fed, ms, 0);
	hungry = clock();
	limit_files((rlim_t)next - 1);
}

bool __wrap_ops_ready(const struct agent *agent, const json_t *request);
bool __wrap_ops_ready(const struct agent *agent, const json_t *request)
{
	return changed || !is_op(request, "wait");
}

static size_t unwatched; /* so many of the next can't be watched */

int __real_uv_poll_init(uv_loop_t *loop, uv_poll_t *handle, int fd);
int __wrap_uv_poll_init(uv_loop_t *loop, uv_poll_t *handle, int fd);
int __wrap_uv_poll_init(uv_loop_t *loop, uv_poll_t *handle, int fd)
{
	if (!unwatched)
		return __real_uv_poll_init(loop, handle, fd);
	unwatched--;
	return UV_ENOSPC;
}

void __wrap_ops_serve(struct agent *agent, struct waiting *waiting, const json_t *request,
		      bool first);
void __wrap_ops_serve(struct agent *agent, struct waiting *waiting, const json_t *request,
		      bool first)
{
	size_t n = (size_t)json_integer_value(json_object_get(request, "letters"));
	cleanup_free char *pad = NULL;
	unsigned int before = ++served;

	if (is_op(request, "change")) {
		changed = true;
		server_changed(agent);
		n = served - before;
	}
	if (is_op(request, "unwatched"))
		unwatched = n;
	else if (is_op(request, "starve"))
		starve(agent, n);
	else if (is_op(request, "busy"))
		n = busy_ms();
	pad = gs_calloc(n + 1, 1);
	(void)memset(pad, 'x', n);
	server_answer(waiting, json_pack("{s:s}", "pad", pad), NULL);
}

static void serve(char *dir)
{
	struct agent agent = { .loop = uv_default_loop(), .config.run_dir = dir };
	struct gs_err err;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)signal(SIGPIPE, SIG_IGN);
	if (server_start(&agent, &err) < 0)
		_exit(1);
	(void)uv_run(agent.loop, UV_RUN_DEFAULT);
	_exit(2);
}

/* ---- Those who ask. */

static int ask_op(const char *dir, const char *op, size_t letters, unsigned int ms, json_t **ret,
		  struct gs_err *err)
{
	cleanup_json json_t *request = json_pack("{s:i, s:s, s:I}", "v", GS_AGENT_VERSION, "op", op,
						 "letters", (json_int_t)letters);

	*err = (struct gs_err){ 0 };
	return gs_agent_ask(dir, request, gs_boottime_ms() + ms, ret, err);
}

static int ask(const char *dir, size_t letters, unsigned int ms, json_t **ret, struct gs_err *err)
{
	return ask_op(dir, "status", letters, ms, ret, err);
}

static void expect(const char *dir, size_t letters)
{
	cleanup_json json_t *got = NULL;
	struct gs_err err;
	int r = ask(dir, letters, LONG_MS, &got, &err);

	if (r < 0)
		fail_msg("%zu letters: %d, \"%s\"", letters, r, err.msg);
	assert_int_equal(json_string_length(json_object_get(got, "pad")), letters);
}

static int setup(void **state)
{
	struct gs_err err;

	*state = tmpdir_make();
	child = fork();
	if (child == 0)
		serve(*state);
	for (int i = 0; i < 1000 && ask(*state, 0, LONG_MS, NULL, &err) < 0; i++)
		(void)usleep(10000);
	return 0;
}

static int teardown(void **state)
{
	(void)kill(child, SIGKILL);
	(void)waitpid(child, NULL, 0);
	tmpdir_remove(*state);
	return 0;
}

/* A client that has not asked anything; its socket. */
static int come(const char *dir)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	(void)snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/%s", dir, GS_AGENT_SOCKET);
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}

/* A client that sends a request and does not read; its socket. */
static int ask_only(const char *dir, size_t letters)
{
	int fd = come(dir);
	char text[100];

	(void)snprintf(text, sizeof(text), "{\"v\":1,\"op\":\"status\",\"letters\":%zu}", letters);
	assert_int_equal(send(fd, text, strlen(text), 0), strlen(text));
	return fd;
}

static void answers_of_every_length(void **state)
{
	const size_t full = GS_AGENT_PACKET_MAX - FRAME;

	expect(*state, 0);
	expect(*state, 1000);
	for (size_t letters = full - 2; letters <= full + 2; letters++)
		expect(*state, letters);
	for (size_t letters = full - 2; letters <= full + 2; letters++)
		expect(*state, letters + GS_AGENT_PACKET_MAX * 9);
	/* more than a socket holds at once, several times */
	expect(*state, GS_AGENT_ANSWER_MAX - FRAME - 1);
	/* an answer that just fills the last packet has a byte more */
	expect(*state, GS_AGENT_ANSWER_MAX - FRAME - GS_AGENT_PACKET_MAX);
}

static void answers_have_a_bound(void **state)
{
	struct gs_err err;

	assert_int_equal(ask(*state, GS_AGENT_ANSWER_MAX, LONG_MS, NULL, &err), -EPROTO);
	assert_non_null(strstr(err.msg, "larger"));
	expect(*state, 10);
}

/* Clients that do not read keep nobody waiting, whether they stay or go. */
static void nobody_waits_for_who_does_not_read(void **state)
{
	int fds[20];

	for (int i = 0; i < 20; i++)
		fds[i] = ask_only(*state, GS_AGENT_ANSWER_MAX / 2);
	expect(*state, GS_AGENT_PACKET_MAX * 5);
	for (int i = 0; i < 20; i += 2)
		assert_int_equal(close(fds[i]), 0);
	expect(*state, GS_AGENT_PACKET_MAX * 5);
	for (int i = 1; i < 20; i += 2)
		assert_int_equal(close(fds[i]), 0);
	expect(*state, 10);
	assert_int_equal(waitpid(child, NULL, WNOHANG), 0);
}

/* What such a client asks for next is served when it has read; one answer follows the other. */
static void requests_wait_for_the_answer_before(void **state)
{
	char *packet = malloc(GS_AGENT_PACKET_MAX);
	int fd = ask_only(*state, GS_AGENT_PACKET_MAX * 8);
	const char *next = "{\"v\":1,\"op\":\"status\",\"letters\":1}";
	size_t sum = 0;
	ssize_t n;

	assert_non_null(packet);
	(void)usleep(SHORT_MS * 1000);
	assert_int_equal(send(fd, next, strlen(next), 0), strlen(next));
	do {
		n = recv(fd, packet, GS_AGENT_PACKET_MAX, 0);
		assert_true(n > 0);
		sum += (size_t)n;
	} while (n == GS_AGENT_PACKET_MAX);
	assert_int_equal(sum, GS_AGENT_PACKET_MAX * 8 + FRAME);
	n = recv(fd, packet, GS_AGENT_PACKET_MAX, 0);
	assert_int_equal(n, FRAME + 1);
	assert_int_equal(close(fd), 0);
	free(packet);
}

/*
 * Who waits is served when something changes, but not amid the change: to serve may be to look at
 * everything anew, and to free what the one who changes it is working at.
 */
/* Who has come and asks nothing must not take the place of those who ask; who waits keeps his. */
static void who_asks_nothing_makes_room(void **state)
{
	static const char wait[] = "{\"v\":1,\"op\":\"wait\",\"letters\":3}";
	int waiting = come(*state), fds[MANY];
	struct gs_err err;
	char answer[64];

	assert_int_equal(send(waiting, wait, strlen(wait), 0), strlen(wait));
	for (size_t i = 0; i < GS_ARRAY_SIZE(fds); i++)
		fds[i] = come(*state);
	expect(*state, 5);
	/* the one that came last has not been sent away, the first has */
	assert_int_equal(recv(fds[0], answer, sizeof(answer), 0), 0);
	assert_int_equal(recv(fds[MANY - 1], answer, sizeof(answer), MSG_DONTWAIT), -1);
	assert_int_equal(ask_op(*state, "change", 0, LONG_MS, NULL, &err), 0);
	assert_int_equal(recv(waiting, answer, sizeof(answer), 0), FRAME + 3);
	for (size_t i = 0; i < GS_ARRAY_SIZE(fds); i++)
		(void)close(fds[i]);
	(void)close(waiting);
}

static void changes_are_told_from_the_loop(void **state)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	const char *text = "{\"v\":1,\"op\":\"wait\"}";
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	cleanup_json json_t *got = NULL;
	struct gs_err err;
	char packet[100];

	(void)snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/%s", (char *)*state,
		       GS_AGENT_SOCKET);
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(send(fd, text, strlen(text), 0), strlen(text));
	expect(*state, 1);
	assert_int_equal(recv(fd, packet, sizeof(packet), MSG_DONTWAIT), -1);
	assert_int_equal(ask_op(*state, "change", 0, LONG_MS, &got, &err), 0);
	assert_int_equal(json_string_length(json_object_get(got, "pad")), 0);
	assert_int_equal(recv(fd, packet, sizeof(packet), 0), FRAME);
	assert_int_equal(close(fd), 0);
}

/* Also one that finds no socket: the other may be about to make it. */
/* Who comes then is told at once, and nothing goes round and round meanwhile. */
static void there_is_nothing_left_to_answer_with(void **state)
{
	uint64_t end = gs_boottime_ms() + SHORT_MS * 4;
	unsigned int turned_away = 0;
	json_t *got = NULL;
	struct gs_err err;

	assert_int_equal(ask_op(*state, "starve", SHORT_MS * 4, LONG_MS, &got, &err), 0);
	json_decref(gs_steal(got));
	while (gs_boottime_ms() < end - SHORT_MS) {
		int r = ask(*state, 1, LONG_MS, &got, &err);

		if (gs_boottime_ms() < end - SHORT_MS)
			assert_int_equal(r, -EPROTO);
		json_decref(gs_steal(got));
		turned_away++;
		(void)usleep(50000);
	}
	assert_true(turned_away > 1);
	(void)usleep(SHORT_MS * 3 * 1000);
	assert_int_equal(ask_op(*state, "busy", 0, LONG_MS, &got, &err), 0);
	assert_true(json_string_length(json_object_get(got, "pad")) < SHORT_MS);
	json_decref(got);
}

/* fs.epoll.max_user_watches are those of all containers that run as root, too. */
static void who_can_not_be_watched_is_sent_away(void **state)
{
	struct gs_err err;

	assert_int_equal(ask_op(*state, "unwatched", 2, LONG_MS, NULL, &err), 0);
	assert_int_equal(ask(*state, 1, LONG_MS, NULL, &err), -EPROTO);
	assert_int_equal(ask(*state, 1, LONG_MS, NULL, &err), -EPROTO);
	expect(*state, 5);
}

static void there_is_one_agent(void **state)
{
	struct agent agent = { .loop = uv_default_loop(), .config.run_dir = *state };
	struct gs_err err = { 0 };
	siginfo_t info;

	assert_int_equal(server_start(&agent, &err), -EADDRINUSE);
	assert_int_equal(unlink(tmpdir_path(*state, GS_AGENT_SOCKET)), 0);
	assert_int_equal(server_start(&agent, &err), -EADDRINUSE);
	assert_non_null(strstr(err.msg, "another agent"));
	assert_false(tmpdir_has(*state, GS_AGENT_SOCKET));
	/* when it is dead, however that came, there is room */
	(void)kill(child, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(server_start(&agent, &err), 0);
	server_stop(&agent);
	(void)uv_run(agent.loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(agent.loop), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(answers_of_every_length, setup, teardown),
		cmocka_unit_test_setup_teardown(answers_have_a_bound, setup, teardown),
		cmocka_unit_test_setup_teardown(nobody_waits_for_who_does_not_read, setup,
						teardown),
		cmocka_unit_test_setup_teardown(requests_wait_for_the_answer_before, setup,
						teardown),
		cmocka_unit_test_setup_teardown(who_asks_nothing_makes_room, setup, teardown),
		cmocka_unit_test_setup_teardown(changes_are_told_from_the_loop, setup, teardown),
		cmocka_unit_test_setup_teardown(there_is_nothing_left_to_answer_with, setup,
						teardown),
		cmocka_unit_test_setup_teardown(who_can_not_be_watched_is_sent_away, setup,
						teardown),
		cmocka_unit_test_setup_teardown(there_is_one_agent, setup, teardown),
	};

	return cmocka_run_group_tests_name("server", tests, NULL, NULL);
}
