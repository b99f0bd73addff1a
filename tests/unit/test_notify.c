// SPDX-License-Identifier: Apache-2.0
/* What systemd hears of the agent. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/notify.h"
#include "tests/unit/tmpdir.h"

struct scene {
	char *dir;
	uv_loop_t loop;
	struct notify *notify;
	int fd; /* systemd's end */
};

static int setup(void **state)
{
	struct scene *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	s->dir = tmpdir_make();
	s->fd = -1;
	assert_int_equal(uv_loop_init(&s->loop), 0);
	(void)unsetenv("NOTIFY_SOCKET");
	(void)unsetenv("WATCHDOG_USEC");
	(void)unsetenv("WATCHDOG_PID");
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	notify_free(s->notify);
	assert_int_equal(uv_run(&s->loop, UV_RUN_DEFAULT), 0);
	assert_int_equal(uv_loop_close(&s->loop), 0);
	if (s->fd >= 0)
		(void)close(s->fd);
	tmpdir_remove(s->dir);
	free(s);
	return 0;
}

/* Listens at @name ("@..." is an abstract one) as systemd would. */
static void listen_at(struct scene *s, const char *name)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct timeval patience = { .tv_sec = 5 };
	size_t len = strlen(name);

	memcpy(addr.sun_path, name, len);
	if (name[0] == '@')
		addr.sun_path[0] = '\0';
	s->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(s->fd, (struct sockaddr *)&addr,
			      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)),
			 0);
	assert_int_equal(setsockopt(s->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)),
			 0);
	(void)setenv("NOTIFY_SOCKET", name, 1);
}

static void new_notify(struct scene *s)
{
	struct gs_err err = { 0 };

	if (notify_new(&s->loop, &s->notify, &err) < 0)
		fail_msg("%s", err.msg);
}

static void heard(struct scene *s, const char *want)
{
	char text[1024];
	ssize_t n = recv(s->fd, text, sizeof(text) - 1, 0);

	assert_true(n >= 0);
	text[n] = '\0';
	assert_string_equal(text, want);
}

static void heard_nothing(struct scene *s)
{
	char text[16];

	assert_int_equal(recv(s->fd, text, sizeof(text), MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
}

static void all_states(struct scene *s)
{
	notify_status(s->notify, "%d cards,\n%s", 8, "READY=1");
	heard(s, "STATUS=8 cards, READY=1");
	notify_ready(s->notify);
	heard(s, "READY=1");
	notify_stopping(s->notify);
	heard(s, "STOPPING=1");
	assert_null(getenv("NOTIFY_SOCKET"));
}

static void at_a_path(void **state)
{
	struct scene *s = *state;

	listen_at(s, tmpdir_path(s->dir, "notify"));
	new_notify(s);
	all_states(s);
}

static void at_an_abstract_name(void **state)
{
	struct scene *s = *state;
	char name[64];

	(void)snprintf(name, sizeof(name), "@gpushare-test-%d", (int)getpid());
	listen_at(s, name);
	new_notify(s);
	all_states(s);
}

static void long_status_is_cut(void **state)
{
	struct scene *s = *state;
	char word[1000], text[1024];

	listen_at(s, tmpdir_path(s->dir, "notify"));
	new_notify(s);
	memset(word, 'w', sizeof(word) - 1);
	word[sizeof(word) - 1] = '\0';
	notify_status(s->notify, "%s", word);
	assert_int_equal(recv(s->fd, text, sizeof(text), 0), 511);
}

/* Nobody reads: we go on all the same. */
static void never_waits(void **state)
{
	struct scene *s = *state;

	listen_at(s, tmpdir_path(s->dir, "notify"));
	new_notify(s);
	for (int i = 0; i < 100000; i++)
		notify_status(s->notify, "here");
	heard(s, "STATUS=here");
}

static void nobody_listens(void **state)
{
	struct scene *s = *state;

	(void)setenv("WATCHDOG_USEC", "1000", 1);
	new_notify(s);
	notify_ready(s->notify);
	notify_status(s->notify, "x");
	notify_stopping(s->notify);
	assert_int_equal(uv_run(&s->loop, UV_RUN_DEFAULT), 0);
}

static void bad_environment(void **state)
{
	static const struct {
		const char *name, *value, *msg;
	} cases[] = {
		{ "NOTIFY_SOCKET", "run/notify",
		  "NOTIFY_SOCKET=run/notify: neither a path nor an @name" },
		{ "NOTIFY_SOCKET", "@", "NOTIFY_SOCKET=@: neither a path nor an @name" },
		{ "NOTIFY_SOCKET", "/nonexistent/notify",
		  "NOTIFY_SOCKET=/nonexistent/notify: No such file or directory" },
		{ "WATCHDOG_USEC", "soon", "WATCHDOG_USEC=soon: no time in microseconds" },
		{ "WATCHDOG_USEC", "0", "WATCHDOG_USEC=0: no time in microseconds" },
		{ "WATCHDOG_USEC", "-5", "WATCHDOG_USEC=-5: no time in microseconds" },
		{ "WATCHDOG_USEC", "5s", "WATCHDOG_USEC=5s: no time in microseconds" },
	};
	struct scene *s = *state;
	struct gs_err err;
	char name[200];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		(void)setenv(cases[i].name, cases[i].value, 1);
		assert_true(notify_new(&s->loop, &s->notify, &err) < 0);
		assert_string_equal(err.msg, cases[i].msg);
		(void)unsetenv(cases[i].name);
	}
	memset(name, 'x', sizeof(name) - 1);
	name[0] = '/';
	name[sizeof(name) - 1] = '\0';
	(void)setenv("NOTIFY_SOCKET", name, 1);
	assert_int_equal(notify_new(&s->loop, &s->notify, &err), -EINVAL);
	assert_null(s->notify);
}

static void end(uv_timer_t *timer)
{
	uv_stop(timer->loop);
	uv_close((uv_handle_t *)timer, NULL);
}

/* How often the watchdog heard of us in this time. */
static int kicks(struct scene *s, unsigned int ms)
{
	uv_timer_t timer;
	char text[64];
	int n = 0;
	ssize_t len;

	(void)uv_timer_init(&s->loop, &timer);
	(void)uv_timer_start(&timer, end, ms, 0);
	(void)uv_run(&s->loop, UV_RUN_DEFAULT);
	(void)uv_run(&s->loop, UV_RUN_NOWAIT);
	while ((len = recv(s->fd, text, sizeof(text), MSG_DONTWAIT)) > 0) {
		assert_int_equal(len, strlen("WATCHDOG=1"));
		assert_memory_equal(text, "WATCHDOG=1", (size_t)len);
		n++;
	}
	return n;
}

static void watchdog(void **state)
{
	struct scene *s = *state;
	char pid[16];
	int n;

	listen_at(s, tmpdir_path(s->dir, "notify"));
	(void)snprintf(pid, sizeof(pid), "%d", (int)getpid());
	(void)setenv("WATCHDOG_PID", pid, 1);
	(void)setenv("WATCHDOG_USEC", "400000", 1);
	new_notify(s);
	assert_null(getenv("WATCHDOG_USEC"));
	assert_null(getenv("WATCHDOG_PID"));
	/* each 200 ms; fewer on a slow machine, but each 400 ms would be six */
	n = kicks(s, 2000);
	assert_in_range(n, 7, 11);
	/* nothing else to do: the loop ends in spite of it */
	assert_int_equal(uv_run(&s->loop, UV_RUN_DEFAULT), 0);
}

static void a_watchdog_of_somebody_else(void **state)
{
	struct scene *s = *state;

	listen_at(s, tmpdir_path(s->dir, "notify"));
	(void)setenv("WATCHDOG_PID", "1", 1);
	(void)setenv("WATCHDOG_USEC", "200000", 1);
	new_notify(s);
	assert_int_equal(kicks(s, 500), 0);
	heard_nothing(s);
}

static void none(void **state)
{
	notify_free(NULL);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(at_a_path),	  TEST(at_an_abstract_name),
		TEST(long_status_is_cut), TEST(never_waits),
		TEST(nobody_listens),	  TEST(bad_environment),
		TEST(watchdog),		  TEST(a_watchdog_of_somebody_else),
		cmocka_unit_test(none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
