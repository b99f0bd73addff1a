// SPDX-License-Identifier: Apache-2.0
/* A client of the Kubernetes API in a loop of its own, against tests/k8s/apiserver.py. */
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
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/xalloc.h"
#include "tests/unit/kubeclient.h"
#include "tests/unit/tmpdir.h"

#define DEADLINE_MS 10000

void kubeclient_start(struct kubeclient *client, bool tls)
{
	char *port;

	(void)signal(SIGPIPE, SIG_IGN);
	client->dir = tmpdir_make();
	tmpdir_write(client->dir, "token", "first\n");
	client->pid = fork();
	assert_true(client->pid >= 0);
	if (client->pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		/* by its whole path: Python looks for its library by the name that it is called */
		(void)execl("/usr/bin/python3", "/usr/bin/python3", "tests/k8s/apiserver.py",
			    client->dir, tls ? "--tls" : NULL, NULL);
		_exit(127);
	}
	for (int i = 0; !tmpdir_has(client->dir, "port"); i++) {
		assert_true(i < 2000);
		assert_int_equal(waitpid(client->pid, NULL, WNOHANG), 0);
		(void)usleep(10000);
	}
	port = tmpdir_read(client->dir, "port");
	client->config = (struct kube_config){
		.server = gs_asprintf("%s://127.0.0.1:%s/", tls ? "https" : "http", port),
		.ca_file = tls ? gs_strdup(tmpdir_path(client->dir, "ca.crt")) : NULL,
		.token_file = gs_strdup(tmpdir_path(client->dir, "token")),
		.node = gs_strdup("node-1"),
	};
	free(port);
}

void kubeclient_stop(struct kubeclient *client)
{
	(void)kill(client->pid, SIGKILL);
	(void)waitpid(client->pid, NULL, 0);
	kube_config_free(&client->config);
	tmpdir_remove(client->dir);
}

/* ---- The server. */

static char *ask(struct kubeclient *client, const char *fmt, va_list ap)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct gs_buf answer = { 0 };
	char *text, buf[4096];
	ssize_t n;

	assert_true(vasprintf(&text, fmt, ap) >= 0);
	for (char *c = text; *c; c++)
		if (*c == '\'')
			*c = '"';
	(void)snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/admin.sock", client->dir);
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(write(fd, "\n", 1), 1);
	while ((n = read(fd, buf, sizeof(buf))) > 0)
		gs_buf_add(&answer, buf, (size_t)n);
	(void)close(fd);
	/* the server did not understand it */
	assert_true(answer.len > 0);
	free(text);
	return gs_buf_steal(&answer);
}

char *kubeclient_ask(struct kubeclient *client, const char *fmt, ...)
{
	va_list ap;
	char *answer;

	va_start(ap, fmt);
	answer = ask(client, fmt, ap);
	va_end(ap);
	return answer;
}

void kubeclient_tell(struct kubeclient *client, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	free(ask(client, fmt, ap));
	va_end(ap);
}

void kubeclient_put(struct kubeclient *client, const char *key, const char *uid, const char *phase,
		    const char *more)
{
	const char *slash = strchr(key, '/');

	kubeclient_tell(client,
			"{'op':'put','pod':{'metadata':{'namespace':'%.*s','name':'%s','uid':'%s'"
			"%s},'spec':{'nodeName':'node-1'},'status':{'phase':'%s'}}}",
			(int)(slash - key), key, slash + 1, uid, more, phase);
}

unsigned int kubeclient_asked(struct kubeclient *client, const char *what)
{
	char *log = kubeclient_ask(client, "{'op':'log'}");
	unsigned int n = 0;

	for (const char *c = log; (c = strstr(c, what)); c++)
		n++;
	free(log);
	return n;
}

void kubeclient_until_asked(struct kubeclient *client, const char *what, unsigned int n)
{
	for (int i = 0; kubeclient_asked(client, what) < n; i++) {
		if (i == DEADLINE_MS / 20)
			fail_msg("the server was not asked '%s' %u times", what, n);
		kubeclient_run(client, 20);
	}
}

/* ---- What the client tells. */

static void on_pod(const struct kube_pod *pod, bool gone, void *arg)
{
	struct kubeclient *client = arg;

	gs_buf_addf(&client->told, "%s %s/%s %s", gone ? "gone" : "pod", pod->namespace, pod->name,
		    pod->uid);
	if (!gone)
		gs_buf_addf(&client->told, " %s%s", pod->phase, pod->deleting ? " deleting" : "");
	gs_buf_addc(&client->told, '\n');
}

static void on_synced(void *arg)
{
	gs_buf_adds(&((struct kubeclient *)arg)->told, "synced\n");
}

static void on_health(bool ok, const char *why, void *arg)
{
	struct kubeclient *client = arg;

	if (ok)
		gs_buf_adds(&client->told, "well\n");
	else
		gs_buf_addf(&client->told, "bad: %s\n", why);
}

static void on_note(const char *what, void *arg)
{
	gs_buf_addf(&((struct kubeclient *)arg)->told, "note: %s\n", what);
}

void kubeclient_done(int result, const struct gs_err *err, void *arg)
{
	struct kubeclient *client = arg;

	gs_buf_addf(&client->told, "done: %d %s\n", result, err ? err->msg : "");
}

/* ---- The loop. */

void kubeclient_open(struct kubeclient *client)
{
	const struct kube_ops ops = { on_pod, on_synced, on_health, on_note, client };
	struct kube_tune *tune;
	struct gs_err err;

	kubeclient_tell(client, "{'op':'reset'}");
	tmpdir_write(client->dir, "token", "first\n");
	assert_int_equal(uv_loop_init(&client->loop), 0);
	assert_int_equal(kube_new(&client->loop, &client->config, &ops, &client->kube, &err), 0);
	tune = &client->kube->tune;
	tune->backoff_min_ms = 20;
	tune->backoff_max_ms = 100;
	tune->forbidden_ms = 0;
	tune->stall_ms = 5000;
	tune->event_gap_ms = 0;
	tune->watch_short_ms = 200;
}

void kubeclient_close(struct kubeclient *client)
{
	kube_free(client->kube);
	client->kube = NULL;
	(void)uv_run(&client->loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&client->loop), 0);
	gs_buf_free(&client->told);
	client->seen = 0;
}

static void on_tick(uv_timer_t *timer)
{
	(void)timer;
}

/* Behind what was waited for already; NULL: not told. */
static const char *told(const struct kubeclient *client, const char *what)
{
	return client->told.len > 0 ? strstr(client->told.data + client->seen, what) : NULL;
}

void kubeclient_until(struct kubeclient *client, const char *what)
{
	const char *at;
	uv_timer_t tick;
	uint64_t end;

	(void)uv_timer_init(&client->loop, &tick);
	(void)uv_timer_start(&tick, on_tick, 20, 20);
	uv_update_time(&client->loop);
	end = uv_now(&client->loop) + DEADLINE_MS;
	while (!told(client, what) && uv_now(&client->loop) < end)
		(void)uv_run(&client->loop, UV_RUN_ONCE);
	uv_close((uv_handle_t *)&tick, NULL);
	(void)uv_run(&client->loop, UV_RUN_NOWAIT);
	at = told(client, what);
	if (!at)
		fail_msg("'%s' was not told within %d s, but this: %s", what, DEADLINE_MS / 1000,
			 client->told.data ? client->told.data + client->seen : "nothing");
	client->seen = (size_t)(at - client->told.data) + strlen(what);
}

unsigned int kubeclient_told(const struct kubeclient *client, const char *what)
{
	unsigned int n = 0;

	for (const char *c = client->told.data; c && (c = strstr(c, what)); c++)
		n++;
	return n;
}

void kubeclient_run(struct kubeclient *client, unsigned int ms)
{
	uv_timer_t tick;
	uint64_t end;

	(void)uv_timer_init(&client->loop, &tick);
	(void)uv_timer_start(&tick, on_tick, 10, 10);
	uv_update_time(&client->loop);
	end = uv_now(&client->loop) + ms;
	while (uv_now(&client->loop) < end)
		(void)uv_run(&client->loop, UV_RUN_ONCE);
	uv_close((uv_handle_t *)&tick, NULL);
	(void)uv_run(&client->loop, UV_RUN_NOWAIT);
}
