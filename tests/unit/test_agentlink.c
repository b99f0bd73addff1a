// SPDX-License-Identifier: Apache-2.0
/* Asking the agent, with a child that plays the agent well, badly or not at all. */
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
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/agentlink.h"
#include "common/cleanup.h"
#include "common/proc.h"
#include "gpushare/agent.h"
#include "tests/unit/tmpdir.h"

static pid_t agent;

static int setup(void **state)
{
	*state = tmpdir_make();
	agent = 0;
	return 0;
}

static void stop_agent(void)
{
	if (agent <= 0)
		return;
	(void)kill(agent, SIGKILL);
	(void)waitpid(agent, NULL, 0);
	agent = 0;
}

static int teardown(void **state)
{
	stop_agent();
	tmpdir_remove(*state);
	return 0;
}

/* A listening socket at dir/agent.sock. */
static int listen_at(const char *dir, int type, int backlog)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, type, 0);

	(void)snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/%s", dir, GS_AGENT_SOCKET);
	if (fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 ||
	    chmod(addr.sun_path, 0600) < 0 || listen(fd, backlog) < 0)
		return -1;
	return fd;
}

/* What the child does with one connection. */
typedef void (*behaviour)(int conn);

/* Forks an agent that serves connections one after another, after it listens. */
static void start_agent(const char *dir, behaviour serve)
{
	int fd = listen_at(dir, SOCK_SEQPACKET, 4);

	assert_true(fd >= 0);
	agent = fork();
	assert_true(agent >= 0);
	if (agent == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;) {
			int conn = accept(fd, NULL, NULL);

			if (conn < 0)
				_exit(1);
			serve(conn);
			(void)close(conn);
		}
	}
	(void)close(fd);
}

/* Reads the request and answers with @text. */
static void answer(int conn, const char *text)
{
	char buf[GS_AGENT_PACKET_MAX];

	if (recv(conn, buf, sizeof(buf), 0) > 0)
		(void)send(conn, text, strlen(text), MSG_NOSIGNAL);
}

static int ask(const char *dir, unsigned int ms, json_t **ret, struct gs_err *err)
{
	cleanup_json json_t *request =
		json_pack("{s:i,s:s,s:s}", "v", 1, "op", GS_OP_WATCHED, "container", "c1");

	*err = (struct gs_err){ 0 };
	return gs_agent_ask(dir, request, gs_boottime_ms() + ms, ret, err);
}

static void expect(const char *dir, int code, const char *words)
{
	struct gs_err err;
	json_t *got = NULL;
	int r = ask(dir, 3000, &got, &err);

	if (r != code || err.code != -code || !strstr(err.msg, words) || got)
		fail_msg("%d, \"%s\"", r, err.msg);
}

static void serve_echo(int conn)
{
	char buf[300], out[400];
	ssize_t n = recv(conn, buf, sizeof(buf) - 1, 0);

	buf[n > 0 ? n : 0] = '\0';
	(void)snprintf(out, sizeof(out), "{\"v\":1,\"ok\":true,\"more\":[1],\"got\":%s}", buf);
	(void)send(conn, out, strlen(out), MSG_NOSIGNAL);
}

static void an_answer_comes_back(void **state)
{
	cleanup_json json_t *got = NULL;
	struct gs_err err;
	json_t *request;

	start_agent(*state, serve_echo);
	assert_int_equal(ask(*state, 3000, &got, &err), 0);
	assert_true(json_is_true(json_object_get(got, "ok")));
	/* The request was what we meant to send. */
	request = json_object_get(got, "got");
	assert_int_equal(json_integer_value(json_object_get(request, "v")), 1);
	assert_string_equal(json_string_value(json_object_get(request, "op")), "watched");
	assert_string_equal(json_string_value(json_object_get(request, "container")), "c1");
	assert_int_equal(ask(*state, 3000, NULL, &err), 0);
}

static void serve_refusal(int conn)
{
	answer(conn, "{\"v\":1,\"ok\":false,\"error\":\"card 3 is\\u001b[31m\\nbusy\"}");
}

static void a_refusal_is_its_own_sentence(void **state)
{
	struct gs_err err;

	start_agent(*state, serve_refusal);
	assert_int_equal(ask(*state, 3000, NULL, &err), -EREMOTEIO);
	assert_string_equal(err.msg, "card 3 is?[31m?busy");
}

static void serve_bare_refusal(int conn)
{
	answer(conn, "{\"v\":1,\"ok\":false,\"error\":7}");
}

static void a_refusal_without_words(void **state)
{
	start_agent(*state, serve_bare_refusal);
	expect(*state, -EREMOTEIO, "without a reason");
}

static void serve_nothing(int conn)
{
	char buf[GS_AGENT_PACKET_MAX];

	(void)recv(conn, buf, sizeof(buf), 0);
	(void)pause();
}

static void expect_timeout(const char *dir, unsigned int ms)
{
	uint64_t before = gs_boottime_ms(), took;
	struct gs_err err;

	assert_int_equal(ask(dir, ms, NULL, &err), -ETIMEDOUT);
	took = gs_boottime_ms() - before;
	if (took + 50 < ms || took > ms + 3000)
		fail_msg("%u ms became %llu", ms, (unsigned long long)took);
}

static void a_hang_ends_at_the_deadline(void **state)
{
	start_agent(*state, serve_nothing);
	expect_timeout(*state, 200);
	/* It has not come back to accept(2) either. */
	expect_timeout(*state, 50);
	expect_timeout(*state, 0);
}

static void on_alarm(int sig)
{
	(void)sig;
}

/* Signals without SA_RESTART, again and again, neither end the wait nor make it longer. */
static void signals_do_not_disturb(void **state)
{
	struct sigaction act = { .sa_handler = on_alarm }, old;
	struct itimerval timer = { { 0, 3000 }, { 0, 3000 } }, off = { { 0, 0 }, { 0, 0 } };

	start_agent(*state, serve_nothing);
	assert_int_equal(sigaction(SIGALRM, &act, &old), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &timer, NULL), 0);
	expect_timeout(*state, 300);
	assert_int_equal(setitimer(ITIMER_REAL, &off, NULL), 0);
	assert_int_equal(sigaction(SIGALRM, &old, NULL), 0);
}

static void serve_late(int conn)
{
	(void)usleep(150000);
	answer(conn, "{\"v\":1,\"ok\":true}");
}

static void a_late_answer_counts(void **state)
{
	struct gs_err err;

	start_agent(*state, serve_late);
	assert_int_equal(ask(*state, 5000, NULL, &err), 0);
}

static void serve_hang_up(int conn)
{
}

static void serve_read_and_hang_up(int conn)
{
	char buf[GS_AGENT_PACKET_MAX];

	(void)recv(conn, buf, sizeof(buf), 0);
}

static void no_answer_at_all(void **state)
{
	start_agent(*state, serve_hang_up);
	expect(*state, -EPROTO, "hung up");
	stop_agent();
	assert_int_equal(unlink(tmpdir_path(*state, GS_AGENT_SOCKET)), 0);
	start_agent(*state, serve_read_and_hang_up);
	expect(*state, -EPROTO, "hung up");
}

static const char *bad_answer;

static void serve_bad(int conn)
{
	answer(conn, bad_answer);
}

static void answers_that_are_none(void **state)
{
	static const char *const bad[] = {
		"garbage",
		"[]",
		"true",
		"{",
		"{}",
		"{\"ok\":true}",
		"{\"v\":1}",
		"{\"v\":2,\"ok\":true}",
		"{\"v\":\"1\",\"ok\":true}",
		"{\"v\":1,\"ok\":1}",
		"{\"v\":1,\"ok\":\"true\"}",
		"{\"v\":1,\"ok\":null}",
		"{\"v\":1,\"ok\":true}{}",
		"{\"v\":1,\"ok\":true,\"ok\":true}",
		"\xff\xfe",
	};

	for (size_t i = 0; i < GS_ARRAY_SIZE(bad); i++) {
		bad_answer = bad[i];
		start_agent(*state, serve_bad);
		expect(*state, -EPROTO, "agent's answer");
		stop_agent();
		assert_int_equal(unlink(tmpdir_path(*state, GS_AGENT_SOCKET)), 0);
	}
}

/* A packet of just @size bytes: {"v":1,"ok":true,"pad":"xxx"}. */
static void serve_size(int conn, size_t size)
{
	static const char head[] = "{\"v\":1,\"ok\":true,\"pad\":\"";
	char *text = malloc(size + 1), buf[GS_AGENT_PACKET_MAX];

	if (recv(conn, buf, sizeof(buf), 0) <= 0 || !text)
		return;
	(void)memset(text, 'x', size);
	(void)memcpy(text, head, sizeof(head) - 1);
	text[size - 2] = '"';
	text[size - 1] = '}';
	(void)send(conn, text, size, MSG_NOSIGNAL);
	free(text);
}

static void serve_too_large(int conn)
{
	serve_size(conn, GS_AGENT_PACKET_MAX + 1);
}

/* A full packet, and then the rest, which is a space. */
static void serve_full(int conn)
{
	serve_size(conn, GS_AGENT_PACKET_MAX);
	(void)send(conn, " ", 1, MSG_NOSIGNAL);
}

static void serve_full_alone(int conn)
{
	serve_size(conn, GS_AGENT_PACKET_MAX);
}

static void serve_without_end(int conn)
{
	static char text[GS_AGENT_PACKET_MAX];
	ssize_t n = recv(conn, text, sizeof(text), 0);

	(void)memset(text, ' ', sizeof(text));
	while (n > 0)
		n = send(conn, text, sizeof(text), MSG_NOSIGNAL);
}

static void restart_agent(const char *dir, behaviour serve)
{
	stop_agent();
	(void)unlink(tmpdir_path(dir, GS_AGENT_SOCKET));
	start_agent(dir, serve);
}

static void packets_have_a_bound(void **state)
{
	cleanup_json json_t *request = json_object();
	struct gs_err err;
	char *big = malloc(GS_AGENT_PACKET_MAX + 1);

	restart_agent(*state, serve_too_large);
	expect(*state, -EPROTO, "packet is larger");
	/* Nor do we send what the other end could not take. */
	assert_non_null(big);
	(void)memset(big, 'y', GS_AGENT_PACKET_MAX);
	big[GS_AGENT_PACKET_MAX] = '\0';
	assert_int_equal(json_object_set_new(request, "pad", json_string(big)), 0);
	free(big);
	assert_int_equal(gs_agent_ask(*state, request, gs_boottime_ms() + 1000, NULL, &err),
			 -EINVAL);
}

static void long_answers_come_in_packets(void **state)
{
	cleanup_json json_t *got = NULL;
	struct gs_err err;

	restart_agent(*state, serve_full);
	assert_int_equal(ask(*state, 3000, &got, &err), 0);
	assert_true(json_string_length(json_object_get(got, "pad")) > GS_AGENT_PACKET_MAX - 100);
	restart_agent(*state, serve_full_alone);
	expect(*state, -EPROTO, "hung up");
	restart_agent(*state, serve_without_end);
	expect(*state, -EPROTO, "answer is larger");
}

static void nobody_there(void **state)
{
	const char *path = tmpdir_path(*state, GS_AGENT_SOCKET);
	int fd;

	expect(*state, -ENOENT, "no agent at");
	expect("/nonexistent", -ENOENT, "no agent at /nonexistent/agent.sock");
	/* A socket that an agent left when it died. */
	fd = listen_at(*state, SOCK_SEQPACKET, 1);
	assert_true(fd >= 0);
	(void)close(fd);
	expect(*state, -ENOENT, "refused");
	assert_int_equal(unlink(path), 0);
	/* Another kind of socket. */
	fd = listen_at(*state, SOCK_STREAM, 1);
	assert_true(fd >= 0);
	expect(*state, -ENOENT, "no agent");
	(void)close(fd);
	assert_int_equal(unlink(path), 0);
	/* What is no socket at all. */
	tmpdir_write(*state, GS_AGENT_SOCKET, "");
	expect(*state, -ENOENT, "no socket");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink("elsewhere", path), 0);
	expect(*state, -ENOENT, "no socket");
}

static void serve_ok(int conn)
{
	answer(conn, "{\"v\":1,\"ok\":true}");
}

static void only_roots_socket(void **state)
{
	const char *path = tmpdir_path(*state, GS_AGENT_SOCKET);
	struct gs_err err;

	start_agent(*state, serve_ok);
	assert_int_equal(ask(*state, 3000, NULL, &err), 0);
	assert_int_equal(chmod(path, 0620), 0);
	expect(*state, -ENOENT, "others than root");
	assert_int_equal(chmod(path, 0602), 0);
	expect(*state, -ENOENT, "others than root");
	assert_int_equal(chmod(path, 0600), 0);
	assert_int_equal(chown(path, 1000, 0), 0);
	expect(*state, -ENOENT, "not root's");
}

/* The file may be root's while the one who listens is not: it was put in its place. */
static void only_a_peer_that_is_root(void **state)
{
	int ready[2];
	char c;

	assert_int_equal(pipe(ready), 0);
	assert_int_equal(chmod(*state, 0777), 0);
	agent = fork();
	assert_true(agent >= 0);
	if (agent == 0) {
		int fd;

		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (setresuid(65534, 65534, 65534) < 0)
			_exit(1);
		fd = listen_at(*state, SOCK_SEQPACKET, 4);
		if (fd < 0 || write(ready[1], "", 1) != 1)
			_exit(1);
		for (;;) {
			int conn = accept(fd, NULL, NULL);

			serve_ok(conn);
			(void)close(conn);
		}
	}
	assert_int_equal(read(ready[0], &c, 1), 1);
	(void)close(ready[0]);
	(void)close(ready[1]);
	assert_int_equal(chown(tmpdir_path(*state, GS_AGENT_SOCKET), 0, 0), 0);
	expect(*state, -ENOENT, "its owner is not root");
}

/* Connects until the listener's queue is full; gives how many, and their descriptors. */
static int fill(const char *dir, int fds[64])
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int n;

	(void)snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/%s", dir, GS_AGENT_SOCKET);
	for (n = 0; n < 64; n++) {
		fds[n] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		if (connect(fds[n], (struct sockaddr *)&addr, sizeof(addr)) < 0) {
			assert_int_equal(errno, EAGAIN);
			(void)close(fds[n]);
			return n;
		}
	}
	return n;
}

static void a_full_queue_is_waited_for(void **state)
{
	int fd = listen_at(*state, SOCK_SEQPACKET, 1), fds[64], n;
	struct gs_err err;

	assert_true(fd >= 0);
	n = fill(*state, fds);
	assert_true(n > 0 && n < 64);
	expect_timeout(*state, 100);
	/* Somebody begins to serve while we wait. */
	agent = fork();
	assert_true(agent >= 0);
	if (agent == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)usleep(100000);
		for (int i = 0; i < n; i++)
			(void)close(fds[i]);
		for (;;) {
			int conn = accept(fd, NULL, NULL);

			serve_ok(conn);
			(void)close(conn);
		}
	}
	for (int i = 0; i < n; i++)
		(void)close(fds[i]);
	assert_int_equal(ask(*state, 5000, NULL, &err), 0);
	(void)close(fd);
}

static void leaves_no_descriptor_behind(void **state)
{
	int before = tmpdir_count("/proc/self", "fd");

	start_agent(*state, serve_ok);
	expect("/nonexistent", -ENOENT, "");
	for (int i = 0; i < 3; i++) {
		struct gs_err err;

		assert_int_equal(ask(*state, 3000, NULL, &err), 0);
	}
	stop_agent();
	expect(*state, -ENOENT, "");
	assert_int_equal(tmpdir_count("/proc/self", "fd"), before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(an_answer_comes_back, setup, teardown),
		cmocka_unit_test_setup_teardown(a_refusal_is_its_own_sentence, setup, teardown),
		cmocka_unit_test_setup_teardown(a_refusal_without_words, setup, teardown),
		cmocka_unit_test_setup_teardown(a_hang_ends_at_the_deadline, setup, teardown),
		cmocka_unit_test_setup_teardown(signals_do_not_disturb, setup, teardown),
		cmocka_unit_test_setup_teardown(a_late_answer_counts, setup, teardown),
		cmocka_unit_test_setup_teardown(no_answer_at_all, setup, teardown),
		cmocka_unit_test_setup_teardown(answers_that_are_none, setup, teardown),
		cmocka_unit_test_setup_teardown(packets_have_a_bound, setup, teardown),
		cmocka_unit_test_setup_teardown(long_answers_come_in_packets, setup, teardown),
		cmocka_unit_test_setup_teardown(nobody_there, setup, teardown),
		cmocka_unit_test_setup_teardown(only_roots_socket, setup, teardown),
		cmocka_unit_test_setup_teardown(only_a_peer_that_is_root, setup, teardown),
		cmocka_unit_test_setup_teardown(a_full_queue_is_waited_for, setup, teardown),
		cmocka_unit_test_setup_teardown(leaves_no_descriptor_behind, setup, teardown),
	};

	return cmocka_run_group_tests_name("agentlink", tests, NULL, NULL);
}
