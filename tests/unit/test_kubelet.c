// SPDX-License-Identifier: Apache-2.0
/* Against another implementation of gRPC and protobuf: tests/k8s/kubelet.py plays the kubelet. */
#include <errno.h>
#include <jansson.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/kubelet.h"
#include "agent/plugin.h"
#include "common/cleanup.h"
#include "common/xalloc.h"
#include "tests/unit/rpcloop.h"
#include "tests/unit/tmpdir.h"

struct scene {
	struct rpcloop loop;
	char *dir;
	const char *plugins, *pods; /* the kubelet's sockets */
	struct plugin *plugin;
	pid_t pid;
	int fd; /* its stdin and stdout */
	char text[65536]; /* what it said, as far as nobody heard it */
	size_t len;
	bool started, ended, done;
	size_t watching;
	int code;
	struct gs_err err;
	struct gs_buf uses;
};

static int allocate(const struct plugin_snapshot *snapshot, const struct gs_strv *ids,
		    struct plugin_answer *answer, void *arg, struct gs_err *err)
{
	cleanup_free char *all = gs_strv_join(ids);

	plugin_annotate(answer, "gpushare.k8s.io/grant", all);
	return 0;
}

static int prefer(const struct plugin_snapshot *snapshot, const struct plugin_wish *wish,
		  struct gs_strv *ret, void *arg, struct gs_err *err)
{
	for (size_t i = 0; i < wish->size; i++)
		gs_strv_add(ret, wish->available.v[i]);
	return 0;
}

static void on_started(int code, const struct gs_err *err, void *arg)
{
	assert_int_equal(code, 0);
	((struct scene *)arg)->started = true;
}

static void on_watched(size_t n, void *arg)
{
	((struct scene *)arg)->watching = n;
}

static void on_ended(void *arg)
{
	((struct scene *)arg)->ended = true;
}

/* The next line that the kubelet says, without its end. */
static void hear(struct scene *s, char *line, size_t size)
{
	char *end;
	ssize_t n;

	for (int i = 0; !(end = memchr(s->text, '\n', s->len)); i++) {
		assert_true(i < RPCLOOP_MS / 10);
		if (!rpcloop_step(&s->loop, s->fd, 10))
			continue;
		n = read(s->fd, s->text + s->len, sizeof(s->text) - s->len);
		assert_true(n > 0);
		s->len += n;
	}
	n = end - s->text;
	assert_true((size_t)n < size);
	(void)memcpy(line, s->text, n);
	line[n] = '\0';
	s->len -= n + 1;
	(void)memmove(s->text, end + 1, s->len);
}

/* @text and what is heard are JSON with ' for ". */
static void hears(struct scene *s, const char *text)
{
	char line[8192];

	hear(s, line, sizeof(line));
	for (char *c = line; *c; c++)
		if (*c == '"')
			*c = '\'';
	assert_string_equal(line, text);
}

static void tell(struct scene *s, const char *text)
{
	cleanup_free char *line = gs_asprintf("%s\n", text);

	for (char *c = line; *c; c++)
		if (*c == '\'')
			*c = '"';
	assert_int_equal(write(s->fd, line, strlen(line)), strlen(line));
}

static int setup(void **state)
{
	struct scene *s = gs_calloc(1, sizeof(*s));
	int fds[2];

	(void)signal(SIGPIPE, SIG_IGN);
	s->dir = tmpdir_make();
	s->plugins = tmpdir_path(s->dir, "kubelet.sock");
	s->pods = tmpdir_path(s->dir, "pods.sock");
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	s->pid = fork();
	assert_true(s->pid >= 0);
	if (s->pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)dup2(fds[1], STDIN_FILENO);
		(void)dup2(fds[1], STDOUT_FILENO);
		/* by its whole path: Python looks for its library by the name that it is called */
		(void)execl("/usr/bin/python3", "/usr/bin/python3", "tests/k8s/kubelet.py", s->dir,
			    NULL);
		_exit(127);
	}
	(void)close(fds[1]);
	s->fd = fds[0];
	rpcloop_begin(&s->loop);
	hears(s, "{'ready': true}");
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	rpcloop_end(&s->loop);
	(void)kill(s->pid, SIGKILL);
	(void)waitpid(s->pid, NULL, 0);
	(void)close(s->fd);
	tmpdir_remove(s->dir);
	gs_buf_free(&s->uses);
	free(s);
	return 0;
}

static void on_registered(int code, const struct gs_err *err, void *arg)
{
	struct scene *s = arg;

	s->done = true;
	s->code = code;
	s->err = *err;
}

static void serve(struct scene *s)
{
	const struct plugin_ops ops = {
		.prefer = prefer,
		.allocate = allocate,
		.started = on_started,
		.watched = on_watched,
		.ended = on_ended,
		.arg = s,
	};

	s->plugin = plugin_new(s->loop.rpc, tmpdir_path(s->dir, "spot.sock"), &ops);
	rpcloop_until(&s->loop, &s->started);
}

static void enroll(struct scene *s)
{
	s->done = false;
	kubelet_register(s->loop.rpc, s->plugins, "spot.sock", "gpushare/spot-gpu", true, 10000,
			 on_registered, s);
	hears(s, "{'registered': {'endpoint': 'spot.sock', 'options': "
		 "{'get_preferred_allocation_available': true}, "
		 "'resource_name': 'gpushare/spot-gpu', 'version': 'v1beta1'}}");
	rpcloop_until(&s->loop, &s->done);
}

static void until_watching(struct scene *s, size_t n)
{
	for (int i = 0; s->watching != n; i++) {
		assert_true(i < RPCLOOP_MS / 10);
		(void)rpcloop_step(&s->loop, -1, 10);
	}
}

#define LISTED_A "{'ID': 'a', 'health': 'Healthy', 'topology': {'nodes': [{'ID': '1'}]}}"

static void lists_and_allocates(void **state)
{
	struct scene *s = *state;
	char line[256];
	int heard = 0;

	serve(s);
	plugin_publish(s->plugin, rpcloop_snapshot("a@1 b!"));
	enroll(s);
	assert_int_equal(s->code, 0);
	hears(s, "{'devices': [" LISTED_A ", {'ID': 'b', 'health': 'Unhealthy'}]}");
	until_watching(s, 1);
	tell(s,
	     "{'call': 'Allocate', 'request': {'container_requests': [{'devices_ids': ['a']}]}}");
	hears(s, "{'answer': {'container_responses': [{'annotations': "
		 "{'gpushare.k8s.io/grant': 'a'}}]}}");
	tell(s,
	     "{'call': 'Allocate', 'request': {'container_requests': [{'devices_ids': ['b']}]}}");
	hears(s, "{'error': 'FAILED_PRECONDITION', 'message': 'device b is not to be had now'}");
	/* The same again is not told again; the next change is. */
	plugin_publish(s->plugin, rpcloop_snapshot("a@1 b!"));
	plugin_publish(s->plugin, rpcloop_snapshot("a@1 b"));
	hears(s, "{'devices': [" LISTED_A ", {'ID': 'b', 'health': 'Healthy'}]}");
	tell(s, "{'call': 'GetPreferredAllocation', 'request': {'container_requests': "
		"[{'available_deviceIDs': ['b', 'a'], 'allocation_size': 1}]}}");
	hears(s, "{'answer': {'container_responses': [{'deviceIDs': ['b']}]}}");
	tell(s, "{'call': 'GetDevicePluginOptions', 'request': {}}");
	hears(s, "{'answer': {'get_preferred_allocation_available': true}}");
	/* Faster than it can be told: it may miss some, and never the last. */
	for (int i = 0; i < 500; i++)
		plugin_publish(s->plugin, rpcloop_snapshot(i % 2 ? "a b" : "a"));
	plugin_publish(s->plugin, rpcloop_snapshot("last"));
	do {
		hear(s, line, sizeof(line));
		heard++;
	} while (!strstr(line, "last"));
	assert_true(heard < 500);
	plugin_publish(s->plugin, rpcloop_snapshot(""));
	hears(s, "{'devices': []}");
	/* The kubelet goes, and comes again. */
	tell(s, "{'leave': true}");
	hears(s, "{'ended': 'CANCELLED'}");
	until_watching(s, 0);
	plugin_publish(s->plugin, rpcloop_snapshot("a@1"));
	enroll(s);
	hears(s, "{'devices': [" LISTED_A "]}");
	/* We go: it sees the end at once, of the call or of the connection. */
	plugin_free(s->plugin);
	rpcloop_until(&s->loop, &s->ended);
	hear(s, line, sizeof(line));
	assert_non_null(strstr(line, "ended"));
}

static void is_refused(void **state)
{
	struct scene *s = *state;

	serve(s);
	tell(s, "{'refuse': 'no such version'}");
	enroll(s);
	assert_int_equal(s->code, -EINVAL);
	assert_non_null(strstr(s->err.msg, "no such version"));
	assert_int_equal(s->watching, 0);
}

static void on_uses(int code, const struct kubelet_uses *uses, const struct gs_err *err, void *arg)
{
	struct scene *s = arg;

	on_registered(code, err, arg);
	gs_buf_free(&s->uses);
	gs_buf_adds(&s->uses, "");
	for (size_t i = 0; uses && i < uses->pods.n; i++)
		gs_buf_addf(&s->uses, "%s;", uses->pods.v[i]);
	for (size_t i = 0; uses && i < uses->n; i++) {
		const struct kubelet_use *use = &uses->v[i];
		cleanup_free char *ids = gs_strv_join(&use->ids);

		if (use->pod)
			gs_buf_addf(&s->uses, "%s/%s/%s ", use->namespace, use->pod,
				    use->container);
		gs_buf_addf(&s->uses, "%s=%s;", use->resource, ids);
	}
}

static void who_holds_what(void **state)
{
	struct scene *s = *state;

	tell(s, "{'pods': {'pod_resources': ["
		"{'name': 'p', 'namespace': 'n', 'containers': [{'name': 'main', 'devices': ["
		"{'resource_name': 'nvidia.com/gpu', 'device_ids': ['GPU-1', 'GPU-2'],"
		" 'topology': {'nodes': [{'ID': 0}]}},"
		"{'resource_name': 'nvidia.com/mig-1g.10gb', 'device_ids': ['MIG-1']},"
		"{'resource_name': 'nvidia.com/gpu', 'device_ids': ['GPU-2', 'GPU-3'],"
		" 'topology': {'nodes': [{'ID': 1}]}}],"
		" 'cpu_ids': [2, 3], 'memory': [{'memory_type': 'memory', 'size': 4096}]},"
		" {'name': 'side', 'devices': [{'resource_name': 'nvidia.com/gpu',"
		" 'device_ids': ['GPU-4']}]}]},"
		"{'name': 'q', 'namespace': 'n', 'containers': [{'name': 'none'}]}]},"
		"'allocatable': {'devices': [{'resource_name': 'nvidia.com/gpu',"
		" 'device_ids': ['GPU-1']}], 'cpu_ids': [1]}}");
	/* It has taken that when it answers what came later. */
	serve(s);
	enroll(s);
	kubelet_uses(s->loop.rpc, s->pods, 10000, on_uses, s);
	s->done = false;
	rpcloop_until(&s->loop, &s->done);
	assert_int_equal(s->code, 0);
	assert_string_equal(s->uses.data, "n/p;n/q;n/p/main nvidia.com/gpu=GPU-1,GPU-2,GPU-3;"
					  "n/p/main nvidia.com/mig-1g.10gb=MIG-1;"
					  "n/p/side nvidia.com/gpu=GPU-4;");
	kubelet_allocatable(s->loop.rpc, s->pods, 10000, on_uses, s);
	s->done = false;
	rpcloop_until(&s->loop, &s->done);
	assert_string_equal(s->uses.data, "nvidia.com/gpu=GPU-1;");
}

/* A kubelet's maps have another order each time. */
static void whatever_the_order(void **state)
{
	struct scene *s = *state;

	tell(s, "{'pods': {'pod_resources': ["
		"{'name': 'q', 'namespace': 'n', 'containers': [{'name': 'main', 'devices': ["
		"{'resource_name': 'nvidia.com/gpu', 'device_ids': ['GPU-3']},"
		"{'resource_name': 'a.com/x', 'device_ids': ['9']},"
		"{'resource_name': 'nvidia.com/gpu', 'device_ids': ['GPU-2', 'GPU-3']}]}]},"
		"{'name': 'p', 'namespace': 'n', 'containers': [{'name': 'main', 'devices': ["
		"{'resource_name': 'nvidia.com/gpu', 'device_ids': ['GPU-1']}]}]}]},"
		"'allocatable': {'devices': [{'resource_name': 'nvidia.com/gpu',"
		" 'device_ids': ['GPU-3']}, {'resource_name': 'a.com/x', 'device_ids': ['9']},"
		"{'resource_name': 'nvidia.com/gpu', 'device_ids': ['GPU-1']}]}}");
	serve(s);
	enroll(s);
	kubelet_uses(s->loop.rpc, s->pods, 10000, on_uses, s);
	s->done = false;
	rpcloop_until(&s->loop, &s->done);
	assert_string_equal(s->uses.data, "n/p;n/q;n/p/main nvidia.com/gpu=GPU-1;"
					  "n/q/main a.com/x=9;"
					  "n/q/main nvidia.com/gpu=GPU-2,GPU-3;");
	kubelet_allocatable(s->loop.rpc, s->pods, 10000, on_uses, s);
	s->done = false;
	rpcloop_until(&s->loop, &s->done);
	assert_string_equal(s->uses.data, "a.com/x=9;nvidia.com/gpu=GPU-1,GPU-3;");
}

/* A call that the kubelet gave up is none of a program that ends: that one is asked no more. */
static void gives_up(void **state)
{
	struct scene *s = *state;

	tell(s, "{'cancel': 'context canceled'}");
	/* It has taken that when it answers what came later. */
	serve(s);
	enroll(s);
	kubelet_uses(s->loop.rpc, s->pods, 10000, on_uses, s);
	s->done = false;
	rpcloop_until(&s->loop, &s->done);
	assert_int_equal(s->code, -ECONNABORTED);
	assert_non_null(strstr(s->err.msg, "context canceled"));
}

static void nobody_to_ask(void **state)
{
	struct scene *s = *state;

	kubelet_uses(s->loop.rpc, tmpdir_path(s->dir, "none.sock"), 10000, on_uses, s);
	s->done = false;
	rpcloop_until(&s->loop, &s->done);
	assert_int_equal(s->code, -ECONNREFUSED);
	/* Another service than this one is asked for what it does not have. */
	kubelet_uses(s->loop.rpc, s->plugins, 10000, on_uses, s);
	s->done = false;
	rpcloop_until(&s->loop, &s->done);
	assert_int_equal(s->code, -EOPNOTSUPP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(lists_and_allocates, setup, teardown),
		cmocka_unit_test_setup_teardown(is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(who_holds_what, setup, teardown),
		cmocka_unit_test_setup_teardown(whatever_the_order, setup, teardown),
		cmocka_unit_test_setup_teardown(gives_up, setup, teardown),
		cmocka_unit_test_setup_teardown(nobody_to_ask, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
